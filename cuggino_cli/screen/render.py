"""The operator that prints a stream as it passes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from cuggino.events import (
    AgentMessage,
    Event,
    MessageDelta,
    PingEvent,
    QuotaWaiting,
)
from cuggino.operators import Managed, attach, events_in, unopened
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Fragment, Verbosity
from cuggino_cli.screen.spinner import Spinner
from cuggino_cli.screen.terminal import Terminal

_IDLE = frozenset({"WatchAuditEnded", "WatchBacklogWaiting", "WatchSpecIssueWaiting"})
"""The tags of events after which a watch is idle."""


@dataclass
class _Text:
    """The text of a message since its last complete part."""

    message_id: str
    given: list[str] = field(default_factory=list)
    """The lines already returned, each with its newline."""
    line: list[str] = field(default_factory=list)
    """The pieces of the unfinished line."""


class Partial:
    """Messages line by line as they arrive, then the rest of each when it is complete.

    Only whole lines are returned, so that lines of several agents can mix. In total the text equals
    the complete messages. The unfinished line of a retracted message is dropped.
    """

    def __init__(self) -> None:
        self._texts: dict[str | None, _Text] = {}
        """The unfinished texts by the tool call of their sub-agent."""

    def read(self, event: Event) -> Event | None:
        """Return the event to show in place of this one; None shows nothing.

        A delta becomes the lines it completes, without the last newline; a message becomes its
        rest. Any other event is returned unchanged.
        """
        match event:
            case MessageDelta():
                return self._lines(event)
            case AgentMessage():
                return self._rest(event)
            case _:
                return event

    def _lines(self, delta: MessageDelta) -> AgentMessage | None:
        text = self._texts.get(delta.parent_tool_use_id)
        if text is None or text.message_id != delta.message_id:
            text = self._texts[delta.parent_tool_use_id] = _Text(delta.message_id)
        head, newline, tail = delta.text.rpartition("\n")
        if not newline:
            text.line.append(tail)
            return None
        lines = "".join([*text.line, head])
        text.given.append(lines + newline)
        text.line = [tail]
        return AgentMessage(
            text=lines.removesuffix("\r"),
            message_id=delta.message_id,
            parent_tool_use_id=delta.parent_tool_use_id,
        )

    def _rest(self, part: AgentMessage) -> AgentMessage | None:
        text = self._texts.pop(part.parent_tool_use_id, None)
        if text is None or text.message_id != part.message_id:
            return part
        given = "".join(text.given)
        written = given + "".join(text.line)
        if len(part.text) < len(written) and written.startswith(part.text):
            # One of several parts that were streamed together: the others follow.
            after = given[len(part.text) :].lstrip()
            left = written[len(part.text) :].lstrip()
            following = _Text(text.message_id, [after], [left[len(after) :]])
            self._texts[part.parent_tool_use_id] = following
            given = given[: len(part.text)]
        if not given or not part.text.startswith(given):
            return part
        rest = part.text[len(given) :]
        return part.model_copy(update={"text": rest}) if rest else None


E = TypeVar("E", bound=Event)


def with_cli_output(
    terminal: Terminal, *, verbosity: Verbosity, bell: bool = True
) -> Callable[[Observable[E]], Observable[E]]:
    """Print each event, then emit it unchanged (CUG-130).

    With `VERBOSE`, messages are printed line by line while they are streamed.

    On an interactive terminal a spinner is drawn below the lines, by the scheduler given at
    `subscribe`; without a scheduler there is none. It shows the time since the last event other
    than a ping (CUG-134) and stops while the watch waits. It is erased before completion, error
    and disposal, and no timer remains. `bell` lets the terminal's bell ring when a person is
    needed.

    Errors: an error of the terminal (BrokenPipeError) disposes the source and goes to `on_error`.
    """

    def screen(
        scheduler: abc.SchedulerBase | None, on_error: Callable[[Exception], None]
    ) -> Screen:
        return _LoopScreen(terminal, verbosity, scheduler, bell=bell, on_error=on_error)

    return shown_on(terminal, screen)


class Screen(Protocol):
    """The output of one subscription."""

    def show(self, event: Event) -> None:
        """Print the event, if it shows anything."""

    def end(self) -> None:
        """Erase drawn lines and stop timers."""

    def close(self) -> None:
        """Do the same after another error; errors of the terminal are ignored."""


MakeScreen = Callable[[abc.SchedulerBase | None, Callable[[Exception], None]], Screen]
"""Make the screen of a subscription from its scheduler and a handler for terminal errors."""


def shown_on(
    terminal: Terminal, make_screen: MakeScreen
) -> Callable[[Observable[E]], Observable[E]]:
    """Show each event on a screen of its own per subscription, then emit it unchanged.

    Events that came at once are written to the terminal at once. The screen ends before completion,
    error and disposal. Its errors dispose the source and go to `on_error`.
    """

    def operator(source: Observable[E]) -> Observable[E]:
        def subscribe(
            observer: abc.ObserverBase[E], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            upstream = SingleAssignmentDisposable()

            def fail(error: Exception) -> None:
                screen.close()
                upstream.dispose()
                observer.on_error(error)

            def on_next(event: E) -> None:
                try:
                    with terminal.at_once():
                        for each in events_in(event):
                            screen.show(each)
                except Exception as error:
                    fail(error)
                else:
                    observer.on_next(event)

            def on_completed() -> None:
                try:
                    screen.end()
                except Exception as error:
                    fail(error)
                else:
                    observer.on_completed()

            def dispose() -> None:
                screen.close()
                upstream.dispose()

            screen = make_screen(scheduler, fail)
            upstream.disposable = attach(source, on_next, fail, on_completed, scheduler=scheduler)
            return Disposable(dispose)

        return Managed(subscribe)

    return unopened(operator)


class _LoopScreen:
    """The lines of one subscription, and its spinner."""

    def __init__(
        self,
        terminal: Terminal,
        verbosity: Verbosity,
        scheduler: abc.SchedulerBase | None,
        *,
        bell: bool,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._terminal = terminal
        self._verbosity = verbosity
        self._bell = bell
        self._waits = False
        self._partial = Partial()
        self._spinner: Spinner | None = None
        if terminal.interactive and scheduler is not None:
            self._spinner = Spinner(terminal, scheduler, on_error=on_error)
            self._spinner.start()

    def show(self, event: Event) -> None:
        fragments = self._fragments(event)
        # A wait is printed once; the spinner counts down.
        waits = type(event) is QuotaWaiting
        if fragments is not None and not (waits and self._waits):
            if not self._bell:
                fragments = [f for f in fragments if f.label != "bell"]
            self._terminal.print(fragments)
        self._waits = waits
        if self._spinner is not None and not isinstance(event, PingEvent | MessageDelta):
            self._follow(event, self._spinner)

    def _fragments(self, event: Event) -> list[Fragment] | None:
        shown = self._partial.read(event) if self._verbosity >= Verbosity.VERBOSE else event
        return None if shown is None else format_event(shown, verbosity=self._verbosity)

    def _follow(self, event: Event, spinner: Spinner) -> None:
        spinner.restart_time()
        match event:
            case _ if event.tag in _IDLE:
                spinner.stop()  # idle until a file changes
                self._terminal.clear()
            case QuotaWaiting(remaining=remaining):
                spinner.count_down(remaining)
                spinner.start()
            case _:
                spinner.start()

    def end(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
        self._terminal.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.end()
