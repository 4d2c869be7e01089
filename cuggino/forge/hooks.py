"""Hooks: commands that run when something happens in a watch (`hooks` in the configuration)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

from reactivex import Observable, defer, operators as ops, timer

from cuggino.config import Config, HookName
from cuggino.errors import ConfigError, CugginoError, LineTooLong, ProcessFailed, SpawnFailed
from cuggino.events import (
    Event,
    HookFailed,
    LoopSpecIssue,
    WatchBacklogWaiting,
    WatchItemCompleted,
    WatchItemImported,
    WatchItemParked,
    WatchLanded,
    WatchProcessingItem,
    WatchProposed,
    WatchSentBack,
    dump_event,
)
from cuggino.loops import Companion
from cuggino.operators import Flow, StateRef, ask, emit, flow, interrupt_when, pause
from cuggino.operators.alongside import alongside
from cuggino.sandbox import views_of
from cuggino.stages import shell_input

WAITING_LIMIT = 100
"""Calls that wait for their turn; more are dropped, and reported."""

LAST_LINE = 500
"""Characters of a failed command's last line."""

NAMES: tuple[HookName, ...] = get_args(HookName)

LONGEST_S = 60.0
"""Seconds that a hook's command may take."""


@dataclass(frozen=True, kw_only=True)
class HookCall:
    """A command that is about to run."""

    hook: HookName
    command: str
    line: str
    """The event as a line of JSON."""
    env: Mapping[str, str]
    """Variables that are added to the environment."""


RunHook = Callable[[HookCall], Observable[bytes]]
"""Runs a command, and emits its output; fails as `process_lines` does."""


def hooked(
    hooks: Mapping[HookName, str] | Mapping[str, str],
    run: RunHook,
    *,
    timeout: float = LONGEST_S,
    url_of: Callable[[str], str] = lambda _item: "",
) -> Companion:
    """Return a watch companion that runs a command after each event with a hook.

    ::

        events:     --a---b------|
        command:    --#
        hooked:     ----F---F-----     F: HookFailed

    Commands run one at a time, in the order of the events. If more than `WAITING_LIMIT` wait, the
    latest are dropped. A failure is emitted as an event without a hook of its own. A command still
    running when the watch ends is terminated. `url_of` returns the page of an item's issue.

    Raises:
        ConfigError: the name of a hook is unknown.
    """
    if unknown := [name for name in hooks if name not in NAMES]:
        raise ConfigError(
            f'there is no hook "{unknown[0]}"', hint=f"the hooks are {', '.join(NAMES)}"
        )

    def companion(events: Observable[Event]) -> Observable[Event]:
        def begun() -> Observable[Event]:
            calls = _Calls({str(name): hook for name, hook in hooks.items()}, url_of)
            taken = events.pipe(ops.do_action(calls.add), ops.ignore_elements())
            return flow(lambda: _story(calls, run, timeout)).pipe(alongside(taken))

        return defer(lambda _: begun())

    return companion


def hooks_of(
    config: Config,
    project: Path,
    *,
    timeout: float = LONGEST_S,
    url_of: Callable[[str], str] = lambda _item: "",
) -> Companion | None:
    """Return the hooks of a project, or None without any.

    Their commands run in the project like check commands: in the implementer's view where the
    system supports one, and without forge logins.
    """
    if not config.hooks:
        return None
    views = views_of(config)

    def run(call: HookCall) -> Observable[bytes]:
        return shell_input(
            call.command,
            project,
            f"{call.line}\n".encode(),
            env=call.env,
            views=views,
            show=config.sandbox_show,
        )

    return hooked(config.hooks, run, timeout=timeout, url_of=url_of)


class _Occasion(NamedTuple):
    hook: HookName
    item: str = ""
    url: str = ""


class _Calls:
    """The hook calls of a watch that wait for their turn."""

    def __init__(self, hooks: Mapping[str, str], url_of: Callable[[str], str]) -> None:
        self._hooks = hooks
        self._url_of = url_of
        self._item = ""
        self._landed: set[str] = set()
        self.waiting: StateRef[tuple[HookCall, ...]] = StateRef(())
        self.dropped: Counter[str] = Counter()

    def add(self, event: Event) -> None:
        occasion = self._occasion(event)
        command = self._hooks.get(occasion.hook, "") if occasion is not None else ""
        if occasion is None or not command.strip():
            return
        if len(self.waiting.value) >= WAITING_LIMIT:
            self.dropped[occasion.hook] += 1
            return
        hook, item, url = occasion
        shown = event.of_item(item) if item else event
        url = url or (self._url_of(item) if item else "")
        env = {"CUGGINO_HOOK": hook, "CUGGINO_ITEM": item, "CUGGINO_URL": url}
        line = dump_event(shown)
        call = HookCall(hook=hook, command=command, line=line, env=env)
        self.waiting.update(lambda waiting: (*waiting, call))

    def _occasion(self, event: Event) -> _Occasion | None:
        match event:
            case WatchItemImported(filename=item, change="new", url=url):
                return _Occasion("item.imported", item, url)
            case WatchProcessingItem(filename=item):
                self._item = item
                self._landed.discard(item)
                return _Occasion("item.begun", item)
            case LoopSpecIssue(item=item):  # the event has no item without slots
                return _Occasion("item.question", item or self._item)
            case WatchSentBack(filename=item):
                return _Occasion("item.sent-back", item)
            case WatchProposed(filename=item, url=url):
                return _Occasion("item.proposed", item, url)
            case WatchLanded(filename=item, url=url):
                self._landed.add(item)
                return _Occasion("item.landed", item, url)
            case WatchItemCompleted(filename=item):
                if item in self._landed:
                    self._landed.discard(item)
                    return None
                return _Occasion("item.landed", item)
            case WatchItemParked(filename=item):
                return _Occasion("item.parked", item)
            case WatchBacklogWaiting():
                return _Occasion("watch.idle")
            case _:
                return None


def _story(calls: _Calls, run: RunHook, timeout: float) -> Flow[None]:
    while True:
        if not calls.waiting.value:
            yield from ask(calls.waiting.changes.pipe(ops.first(bool)))
            yield from pause(0)  # so that all subscribers see the event before its hook runs
        call, *_ = calls.waiting.value
        calls.waiting.update(lambda waiting: waiting[1:])
        failure = yield from _called(call, run, timeout)
        if failure is not None:
            yield from emit(failure)
        if calls.dropped and len(calls.waiting.value) < WAITING_LIMIT:
            dropped, calls.dropped = calls.dropped, Counter()
            for hook, count in dropped.items():
                what = "event was" if count == 1 else "events were"
                text = f"{count} {what} dropped, as {WAITING_LIMIT} others were waiting"
                yield from emit(HookFailed(hook=hook, message=text))


def _called(call: HookCall, run: RunHook, timeout: float) -> Flow[HookFailed | None]:
    """Run a command to completion; return its failure, if any."""
    last = ""
    late = False

    def see(output: bytes | None) -> None:
        nonlocal last, late
        if output is None:
            late = True
        elif lines := output[-8 * LAST_LINE :].split(b"\n"):
            last = next((text for line in reversed(lines) if (text := _shown(line))), last)

    ended: Observable[Any] = run(call).pipe(interrupt_when(timer(timeout), None))
    message, code = "", None
    try:
        yield from ask(ended.pipe(ops.do_action(see)))
        if late:
            message = f"did not end within {timeout:g} s"
    except ProcessFailed as error:
        code = error.child_exit_code
        message = f"exited with {code}"
    except SpawnFailed:
        message = "could not be started"
    except LineTooLong:
        message = "printed an endless line"
    except CugginoError as error:
        message = error.message
    if not message:
        return None
    text = f"{message}: {last}" if last else message
    return HookFailed(hook=call.hook, message=text, exit_code=code)


def _shown(line: bytes) -> str:
    """Return a line of output without control characters, cut to `LAST_LINE`."""
    text = line.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()[:LAST_LINE]
