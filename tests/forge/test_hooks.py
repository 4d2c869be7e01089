"""Hooks of a watch: their events, order, failures and processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from reactivex import Observable, concat, just, never, of, operators as ops, throw, timer

import cuggino
from cuggino import Config, events as ev
from cuggino.errors import ConfigError, ProcessFailed, SpawnFailed
from cuggino.events import Event, HookFailed, WatchItemParked
from cuggino.forge import HookCall, hooked
from cuggino.forge.hooks import LONGEST_S, NAMES, WAITING_LIMIT, hooks_of
from cuggino.testing import Marbles, VirtualRuntime, no_leaks
from tests.loops.slot_watching import SlotWatching
from tests.sandbox.arena import needs_bubblewrap

ALL = {name: f"run {name}" for name in NAMES}
BEGUN = ev.WatchProcessingItem(filename="a.md", title="A")
LANDED = ev.WatchLanded(filename="a.md", commit="c", trunk_was="0")
PARKED = ev.WatchItemParked(filename="a.md", reason="no")


OCCASIONS: list[tuple[ev.Event, str, str, str]] = [
    (
        ev.WatchItemImported(filename="a.md", source="s", change="new", url="u"),
        "item.imported",
        "a.md",
        "u",
    ),
    (BEGUN, "item.begun", "a.md", "page of a.md"),
    (
        ev.LoopSpecIssue(iteration=1, content="?", filename="q.md", item="a.md"),
        "item.question",
        "a.md",
        "page of a.md",
    ),
    (
        ev.WatchSentBack(filename="a.md", reason="check", returns=1),
        "item.sent-back",
        "a.md",
        "page of a.md",
    ),
    (
        ev.WatchProposed(
            filename="a.md", number=1, url="pr", branch="b", commit="c", candidate="c"
        ),
        "item.proposed",
        "a.md",
        "pr",
    ),
    (LANDED, "item.landed", "a.md", "page of a.md"),
    (ev.WatchItemCompleted(filename="a.md"), "item.landed", "a.md", "page of a.md"),
    (PARKED, "item.parked", "a.md", "page of a.md"),
    (ev.WatchBacklogWaiting(), "watch.idle", "", ""),
]


class Commands:
    """Commands in virtual time: each takes some seconds and ends as scripted."""

    def __init__(self, seconds: float = 1.0, *ends: Observable[bytes]) -> None:
        self.calls: list[HookCall] = []
        self.began: list[tuple[float, str]] = []
        self.running = 0
        self.t = Marbles()
        self._seconds = seconds
        self._ends = list(ends)

    def run(self, call: HookCall) -> Observable[bytes]:
        self.calls.append(call)
        self.began.append((self.t.now, call.hook))
        self.running += 1
        end = self._ends.pop(0) if self._ends else None
        passed: Observable[Any] = timer(self._seconds).pipe(ops.ignore_elements())
        return concat(passed, *([end] if end else [])).pipe(ops.finally_action(self._ended))

    def _ended(self) -> None:
        self.running -= 1

    def failures(self, *told: ev.Event, until: float = 1e5, **given: Any) -> list[ev.HookFailed]:
        """Return the failures of the hooks on these events, which are emitted at once."""
        stream = hooked(ALL, self.run, **given)(concat(of(*told), never()))
        seen = self.t.record(stream, until=until)
        assert {kind for _, kind, _ in seen} <= {"next"}
        return [value for _, _, value in seen]


def _of(event: ev.Event, *before: ev.Event) -> HookCall:
    commands = Commands()
    assert commands.failures(*before, event, url_of=lambda item: f"page of {item}") == []
    return commands.calls[-1]


@pytest.mark.parametrize(("event", "hook", "item", "url"), OCCASIONS)
def test_each_occasion_has_its_event(event: ev.Event, hook: str, item: str, url: str) -> None:
    """The command gets the event as a line of JSON, and the item in its environment."""
    call = _of(event)
    assert (call.hook, call.command) == (hook, f"run {hook}")
    assert call.env == {"CUGGINO_HOOK": hook, "CUGGINO_ITEM": item, "CUGGINO_URL": url}
    assert json.loads(call.line)["_tag"] == event.tag
    assert "\n" not in call.line


def test_all_hooks_are_covered() -> None:
    """No hook can be configured that never runs."""
    assert {hook for _, hook, *_ in OCCASIONS} == set(NAMES)


def test_a_question_without_slots_is_one_of_the_item_at_work() -> None:
    call = _of(ev.LoopSpecIssue(iteration=1, content="?", filename="q.md"), BEGUN)
    assert call.env["CUGGINO_ITEM"] == "a.md"
    assert json.loads(call.line)["item"] == "a.md"


def test_an_item_lands_once() -> None:
    """With slots an item has two events; when it lands again later, it has them again."""
    commands = Commands()
    done = ev.WatchItemCompleted(filename="a.md")
    commands.failures(LANDED, done, BEGUN, LANDED, BEGUN, done)
    hooks = [call.hook for call in commands.calls]
    assert hooks == ["item.landed", "item.begun", "item.landed", "item.begun", "item.landed"]


def test_changes_of_imported_items_have_no_hook() -> None:
    commands = Commands()
    for change in ("updated", "held", "released", "removed"):
        event = ev.WatchItemImported.model_validate(
            {"filename": "a.md", "source": "s", "change": change}
        )
        assert commands.failures(event) == []
    assert commands.calls == []


def test_one_command_runs_at_a_time_in_order() -> None:
    commands = Commands(10)
    commands.failures(BEGUN, LANDED, PARKED)
    assert commands.began == [(0, "item.begun"), (10, "item.landed"), (20, "item.parked")]


def test_only_configured_hooks_run() -> None:
    commands = Commands()
    stream = hooked({"item.parked": "p", "item.landed": " "}, commands.run)(of(BEGUN, LANDED))
    commands.t.record(concat(stream, never()), until=10)
    assert commands.calls == []


def test_a_failure_is_an_event_and_the_next_hook_runs() -> None:
    """The message ends with what the command has printed last, without escape sequences."""
    failed = throw(ProcessFailed("sh", 3, ""))
    commands = Commands(1, concat(of(b"one\n", b"no \x1b[31mtoken\n \n"), failed))
    (failure,) = commands.failures(LANDED, PARKED)
    assert failure.hook == "item.landed"
    assert failure.exit_code == 3
    assert failure.message == "exited with 3: no  [31mtoken"
    assert len(commands.calls) == 2


def test_a_command_that_cannot_start() -> None:
    commands = Commands(0, throw(SpawnFailed("sh", OSError("no"))))
    (failure,) = commands.failures(LANDED)
    assert failure == ev.HookFailed(hook="item.landed", message="could not be started")


def test_a_hanging_command_is_released() -> None:
    commands = Commands(1, concat(just(b"waiting\n"), never()))
    (failure,) = commands.failures(LANDED, timeout=30)
    assert failure.message == "did not end within 30 s: waiting"
    assert failure.exit_code is None
    assert commands.running == 0


def test_an_own_failure_has_no_hook() -> None:
    """Failing hooks do not follow one another."""
    commands = Commands()
    assert commands.failures(ev.HookFailed(hook="item.landed", message="no")) == []
    assert commands.calls == []


def test_too_many_are_dropped_and_counted() -> None:
    """The queue is limited while a command hangs; dropped events are counted."""
    commands = Commands(1)
    told = [BEGUN] * (WAITING_LIMIT + 1) + [PARKED, LANDED, LANDED]
    failures = commands.failures(*told)
    # the first call waits, too, until all have seen its event
    assert {failure.hook: failure.message for failure in failures} == {
        "item.begun": "1 event was dropped, as 100 others were waiting",
        "item.parked": "1 event was dropped, as 100 others were waiting",
        "item.landed": "2 events were dropped, as 100 others were waiting",
    }
    assert len(commands.calls) == WAITING_LIMIT


def test_nothing_runs_after_the_end_of_the_watch() -> None:
    commands = Commands(1, never())
    stream = hooked(ALL, commands.run)(concat(of(BEGUN, LANDED), never()))
    commands.t.record(stream, until=100, dispose_at=5)
    assert commands.running == 0
    assert [call.hook for call in commands.calls] == ["item.begun"]


def test_in_a_watch(tmp_path: Path) -> None:
    """A watch with slots goes on while a hook fails, and reports it."""
    commands = Commands(1, throw(ProcessFailed("sh", 1, "")))
    watch = SlotWatching(tmp_path / "p", companions=[hooked({"item.landed": "x"}, commands.run)])
    watch.write("1.md")
    watch.write("2.md")
    story = [tag for _, tag, *_ in watch.story(60)]
    assert story.count("HookFailed") == 1
    assert story.index("WatchLanded") < story.index("HookFailed")
    assert [call.env["CUGGINO_ITEM"] for call in commands.calls] == ["1.md", "2.md"]


def test_an_unknown_hook_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'there is no hook "item\.merged"'):
        hooked({"item.merged": "x"}, lambda call: never())
    with pytest.raises(ValidationError, match="hooks"):
        Config.model_validate({"hooks": {"item.merged": "x"}})


def test_without_hooks_there_is_no_companion(tmp_path: Path) -> None:
    assert hooks_of(Config(), tmp_path) is None


PARKED_ITEM = WatchItemParked(filename="a.md", reason="it's `no`; $(touch evil)\n<DONE>")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    (project / ".specs").mkdir(parents=True)
    (project / ".specs/a.md").write_text("spec\n")
    monkeypatch.setenv("GH_TOKEN", "secret")
    return project


def _failure(
    project: Path, command: str, *, timeout: float = LONGEST_S, **given: object
) -> HookFailed:
    """Return the failure of the command, with which it reports that it has ended."""
    config = Config.model_validate({"hooks": {"item.parked": command}, **given})
    companion = hooks_of(
        config, project, timeout=timeout, url_of=lambda item: f"https://forge/{item}"
    )
    assert companion is not None
    events = concat(of(PARKED_ITEM), never())
    last: Event | None = cuggino.run(companion(events).pipe(ops.take(1)))
    assert isinstance(last, HookFailed)
    return last


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_command_gets_the_event_and_no_login(project: Path, sandbox: str) -> None:
    """Nothing of the event is part of the command line."""
    command = "cat >told; env >env; echo done; exit 7"
    failure = _failure(project, command, sandbox=sandbox)
    assert failure == HookFailed(hook="item.parked", message="exited with 7: done", exit_code=7)
    told = (project / "told").read_text()
    assert json.loads(told)["reason"] == PARKED_ITEM.reason
    assert told.count("\n") == 1
    variables = (project / "env").read_text()
    assert "CUGGINO_URL=https://forge/a.md\n" in variables
    assert "CUGGINO_ITEM=a.md\n" in variables
    assert "secret" not in variables
    assert not (project / "evil").exists()


def test_a_command_runs_in_the_view_of_checks(project: Path, tmp_path: Path) -> None:
    """It writes the project, but neither the specifications nor anything outside."""
    needs_bubblewrap(project)
    outside = tmp_path / "outside"
    failure = _failure(project, f"echo x >made; echo x >.specs/a.md; echo x >{outside}; exit 3")
    assert failure.exit_code == 3
    assert (project / ".specs/a.md").read_text() == "spec\n"
    assert not outside.exists()
    assert (project / "made").exists()


@pytest.mark.parametrize("sandbox", ["auto", "off"])
def test_a_hanging_command_ends_with_its_children(project: Path, sandbox: str) -> None:
    with no_leaks():
        command = "echo begun; (trap '' TERM INT; sleep 600) & sleep 600"
        failure = _failure(project, command, sandbox=sandbox, timeout=0.5)
    assert failure.message.startswith("did not end within 0.5 s")


def test_endless_output_takes_no_memory(project: Path) -> None:
    failure = _failure(project, "tr '\\0' x </dev/zero")
    assert failure.message == "printed an endless line"


def test_hooks_of_a_runtime(tmp_path: Path) -> None:
    """The configuration of a project is enough for its watch to have them."""
    runtime = VirtualRuntime(
        tmp_path / "p", {}, config=Config(hooks={"watch.idle": "cat >told; exit 4"}), git=True
    )
    story = runtime.watch(until="1h")
    assert "HookFailed" in story.tags()
    assert json.loads((tmp_path / "p/told").read_text())["_tag"] == "WatchBacklogWaiting"
