"""Output of the deliverables loop: lines, and a live list below them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from reactivex import Observable, abc

from cuggino.events import (
    AgentFellBack,
    AgentMessage,
    AgentRetry,
    DeliverablesListed,
    DeliverableState,
    DeliverEvent,
    DeliverInstruction,
    DeliverSessionEnded,
    DeliverSessionStarted,
    DeliverStreamEvent,
    Event,
    MessageDelta,
    NoProgress,
    PingEvent,
    QuotaLifted,
    QuotaWaiting,
    RateLimited,
    SessionEnded,
    Thinking,
    ToolCall,
    ToolResult,
)
from cuggino_cli.screen.deliver_text import (
    Line,
    debug_line,
    deliver_lines,
    sent_line,
    standing,
    waiting_lines,
)
from cuggino_cli.screen.format import format_event
from cuggino_cli.screen.fragments import Fragment, Label, Verbosity
from cuggino_cli.screen.render import Partial, Screen, shown_on
from cuggino_cli.screen.spinner import Ticker
from cuggino_cli.screen.terminal import Terminal
from cuggino_cli.screen.text import full_duration

_LOOKS: dict[str, tuple[str, Label]] = {
    "passed": ("✓", "success"),
    "blocked": ("✗", "warning"),
    "pending": ("○", "plain"),
}
_SHARE = 2
"""The list takes at most one part in this many of the terminal's height."""
_BESIDES = 2
"""The line above the list and the activity below it."""


def activity_line(elapsed_s: float, activity: str, tools: int) -> str:
    """Return `⚡ 12s Running Bash... (1 tool)`."""
    used = f" ({tools} tool{'' if tools == 1 else 's'})" if tools else ""
    return f"⚡ {full_duration(elapsed_s)} {activity}...{used}"


def waiting_line(left_s: float, resets_at: datetime | None) -> str:
    """Return `⏳ Waiting... 2h 44m remaining (resets at 6:00 PM UTC)`."""
    until = ""
    if resets_at is not None:
        at = resets_at.astimezone(UTC) if resets_at.tzinfo else resets_at
        half = "AM" if at.hour < 12 else "PM"
        until = f" (resets at {at.hour % 12 or 12}:{at:%M} {half} UTC)"
    return f"⏳ Waiting... {full_duration(left_s)} remaining{until}"


def list_lines(listed: DeliverablesListed, *, height: int) -> list[list[Fragment]]:
    """Return the deliverables in order, in at most half the height of the terminal.

    If not all fit, open ones come first and the others are counted. Empty without deliverables or
    without room.
    """
    items = listed.deliverables
    room = height // _SHARE - _BESIDES
    if not items or room < 1:
        return []
    shown: Sequence[DeliverableState] = items
    if len(items) > room:
        first = sorted(range(len(items)), key=lambda at: (_rank(items[at], listed), at))
        shown = [items[at] for at in sorted(first[: room - 1])]
    lines = [[Fragment("prose", standing(listed))], *map(_item, shown)]
    if len(shown) < len(items):
        lines.append([Fragment("prose", f"  ... and {len(items) - len(shown)} more")])
    return lines


def _rank(item: DeliverableState, listed: DeliverablesListed) -> int:
    """Return the rank of the deliverable; lower ranks are shown first."""
    if item.status == "pending":
        return 0
    if item.status == "blocked":
        return 2
    return 1 if listed.verified and not item.verified else 3


def _item(item: DeliverableState) -> list[Fragment]:
    icon, label = _LOOKS[item.status]
    verified = [Fragment("success", " verified")] if item.verified else []
    name = [Fragment(label, f"  {icon}"), *verified, Fragment("plain", f" {item.id} ")]
    return [*name, Fragment("prose", item.description)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The drawn lines, as an immutable fold over the events."""

    since: datetime
    """The start of the current activity."""
    activity: str = "Starting"
    tools: int = 0
    """Tool calls in the running session."""
    listed: DeliverablesListed = field(default_factory=DeliverablesListed)
    until: datetime | None = None
    """The end of a wait."""
    resets_at: datetime | None = None

    def add(self, event: Event, now: datetime) -> Panel:
        match event:
            case DeliverablesListed():
                return replace(self, listed=event)
            case DeliverSessionStarted():
                return replace(self, since=now, activity="Thinking", tools=0, until=None)
            case DeliverSessionEnded():
                return replace(self, since=now, activity="Pausing", tools=0, until=None)
            case Thinking() | ToolResult() | QuotaLifted():
                return replace(self, activity="Thinking", until=None)
            case AgentMessage():
                return replace(self, activity="Responding", until=None)
            case ToolCall(name=name):
                running = f"Running {name.rpartition('__')[2] or name}"
                return replace(self, activity=running, tools=self.tools + 1, until=None)
            case AgentFellBack():
                return replace(self, activity="Starting", until=None)
            case AgentRetry():
                return replace(self, activity="Retrying", until=None)
            case QuotaWaiting(remaining=remaining, resets_at=resets_at):
                return replace(self, until=now + timedelta(seconds=remaining), resets_at=resets_at)
            case _:
                return self

    def lines(self, now: datetime, *, height: int) -> list[list[Fragment]]:
        if self.until is not None:
            last = waiting_line((self.until - now).total_seconds(), self.resets_at)
        else:
            last = activity_line((now - self.since).total_seconds(), self.activity, self.tools)
        return [*list_lines(self.listed, height=height), [Fragment("plain", last)]]


_COMPLAINTS = frozenset({"warning", "failure", "problem"})
"""Labels of lines that go to standard error (AUT-251)."""


class Piece(NamedTuple):
    """Fragments printed together, and their destination."""

    fragments: list[Fragment]
    is_complaint: bool = False


class Wording:
    """The lines of one run, in the order of its events.

    Args:
        opening: the first lines; printed with the first event, so that a run that fails to start
            prints none.
        instruction: returns the instruction of a session; if given, everything sent and received
            is printed, for debugging.
    """

    def __init__(
        self,
        verbosity: Verbosity,
        *,
        opening: Iterable[Line] = (),
        instruction: Callable[[DeliverInstruction], str] | None = None,
    ) -> None:
        self._verbosity = verbosity
        self._opening = tuple(opening)
        self._instruction = instruction
        self._waits = False
        self._partial = Partial()
        self._listed: DeliverablesListed | None = None

    def pieces(self, event: Event) -> Iterator[Piece]:
        """Yield the pieces to print for the event."""
        opening, self._opening = self._opening, ()
        lines = [*opening, *self._received(event)]
        repeated = self._waits
        self._waits = isinstance(event, QuotaWaiting)
        match event:
            case QuotaWaiting():
                # Printed once; the panel counts down.
                lines += [] if repeated else waiting_lines(event)
            case DeliverablesListed() if event == self._listed:
                pass  # unchanged; listed after each session
            case DeliverEvent():
                lines += deliver_lines(event, self._verbosity)
            case _:
                pass
        lines += self._sent(event)
        self._listed = event if isinstance(event, DeliverablesListed) else self._listed
        for line in lines:
            yield Piece(line.fragments, line.is_complaint)
        if not isinstance(event, QuotaWaiting | DeliverEvent) and not _is_reported_later(event):
            fragments = self._fragments(event)
            if fragments is not None:
                yield Piece(fragments, any(f.label in _COMPLAINTS for f in fragments))

    def _fragments(self, event: Event) -> list[Fragment] | None:
        """Format the event; messages line by line while they are streamed."""
        shown = self._partial.read(event) if self._verbosity >= Verbosity.VERBOSE else event
        return None if shown is None else format_event(shown, verbosity=self._verbosity)

    def _received(self, event: Event) -> list[Line]:
        line = debug_line(event) if self._instruction is not None else None
        return [line] if line is not None else []

    def _sent(self, event: Event) -> list[Line]:
        if self._instruction is None or not isinstance(event, DeliverSessionStarted):
            return []
        return [sent_line(self._instruction(event.instruction))]


def _is_reported_later(event: Event) -> bool:
    """Return whether the end of the session or run covers the event."""
    match event:
        case SessionEnded() | NoProgress() | RateLimited(status="rejected"):
            return True
        case _:
            return False


def with_deliver_output(
    terminal: Terminal, wording: Wording
) -> Callable[[Observable[DeliverStreamEvent]], Observable[DeliverStreamEvent]]:
    """Print each event, then emit it unchanged.

    On an interactive terminal the deliverables and the agent's activity are drawn below the lines,
    by the scheduler given at `subscribe`. They are erased before completion, error and disposal,
    and no timer remains. Errors: as `with_cli_output`.
    """

    def screen(
        scheduler: abc.SchedulerBase | None, on_error: Callable[[Exception], None]
    ) -> Screen:
        return _DeliverScreen(terminal, wording, scheduler, on_error=on_error)

    return shown_on(terminal, screen)


class _DeliverScreen:
    """The output of one subscription."""

    def __init__(
        self,
        terminal: Terminal,
        wording: Wording,
        scheduler: abc.SchedulerBase | None,
        *,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._terminal = terminal
        self._wording = wording
        self._scheduler = scheduler
        self._ticker: Ticker | None = None
        if terminal.interactive and scheduler is not None:
            self._panel = Panel(since=scheduler.now)
            self._ticker = Ticker(self._draw, scheduler, on_error=on_error)
            self._ticker.start()

    def show(self, event: Event) -> None:
        printed = False
        for piece in self._wording.pieces(event):
            self._terminal.print(piece.fragments, is_complaint=piece.is_complaint)
            printed = True
        if self._ticker is not None and self._scheduler is not None:
            if not isinstance(event, PingEvent | MessageDelta):
                self._panel = self._panel.add(event, self._scheduler.now)
            if printed:
                self._draw()  # at once, to avoid blinking

    def _draw(self) -> None:
        assert self._scheduler is not None
        now, height = self._scheduler.now, self._terminal.height()
        self._terminal.draw(self._panel.lines(now, height=height))

    def end(self) -> None:
        if self._ticker is not None:
            self._ticker.stop()
        self._terminal.clear()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.end()
