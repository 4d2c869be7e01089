"""Output of the deliver loop: lines, and a live list below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from reactivex import Observable

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
    NoProgress,
    QuotaLifted,
    QuotaWaiting,
    RateLimited,
    SessionEnded,
    Thinking,
    ToolCall,
    ToolResult,
)
from cuggino.runs.words import Words, full_duration, quota_wait_words, standing
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.deliver_debug import debug_line, sent_line
from cuggino_cli.screen.event_lines import own_words
from cuggino_cli.screen.format import format_event, fragments_of, lines_of
from cuggino_cli.screen.fragments import Fragment, Label, Verbosity
from cuggino_cli.screen.partial import Partial, Printed
from cuggino_cli.screen.render import Screen, shown_on
from cuggino_cli.screen.stamps import Stamps
from cuggino_cli.screen.status import RunStatus, cut_row, special_row, total_rows

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


_COMPLAINTS = frozenset({"warning", "failure", "problem", "error"})
"""Labels of lines that go to standard error (AUT-251)."""


class Piece(NamedTuple):
    """Fragments printed together."""

    fragments: list[Fragment]
    is_literal: bool = False
    """Autonoe's line, which has no time stamp elsewhere than on a terminal."""

    @property
    def is_complaint(self) -> bool:
        """Return whether they go to standard error."""
        return any(fragment.label in _COMPLAINTS for fragment in self.fragments)


class Wording:
    """The lines of one run, in the order of its events.

    Args:
        opening: the first lines; printed with the first event, so that a run that fails to start
            prints none.
        instruction: returns the instruction of a session; if given, everything sent and received
            is printed, for debugging.
        words: show the agent's messages, not only with `VERBOSE`.
    """

    def __init__(
        self,
        verbosity: Verbosity,
        *,
        opening: Iterable[str] = (),
        instruction: Callable[[DeliverInstruction], str] | None = None,
        words: bool = False,
    ) -> None:
        self.verbosity = verbosity
        self._opening = tuple(opening)
        self._instruction = instruction
        self._words = words
        self._waits = False
        self._partial = Partial()
        self._printed = Printed()
        self._listed: DeliverablesListed | None = None

    def pieces(self, event: Event) -> Iterator[Piece]:
        """Yield the pieces to print for the event."""
        opening, self._opening = self._opening, ()
        for line in opening:
            yield _piece(Words("", line, "info"))
        if self._instruction is not None and (received := debug_line(event)):
            yield _debug(received)
        yield from map(_piece, self._lines(event))
        if self._instruction is not None and isinstance(event, DeliverSessionStarted):
            yield _debug(sent_line(self._instruction(event.instruction)))
        if not isinstance(event, QuotaWaiting | DeliverEvent) and not _is_reported_later(event):
            fragments = self._fragments(event)
            if fragments is not None:
                yield Piece(fragments, is_literal=isinstance(event, AgentMessage))

    def _lines(self, event: Event) -> Iterable[Words]:
        """Return the sentences of an event of the loop, and of a wait."""
        repeated, self._waits = self._waits, isinstance(event, QuotaWaiting)
        match event:
            case QuotaWaiting():
                # Printed once; the panel counts down.
                return () if repeated else quota_wait_words(event).lines
            case DeliverablesListed():
                before, self._listed = self._listed, event
                # Listed after each session.
                return () if event == before else lines_of(event, self.verbosity)
            case DeliverEvent():
                return lines_of(self._printed.read(event), self.verbosity)
            case _:
                return ()

    def _fragments(self, event: Event) -> list[Fragment] | None:
        """Format the event; messages line by line while they are streamed."""
        if isinstance(event, AgentMessage) and self.verbosity >= (
            Verbosity.NORMAL if self._words else Verbosity.VERBOSE
        ):
            self._printed.add(event)
        if self._words and self.verbosity == Verbosity.NORMAL and type(event) is AgentMessage:
            return own_words(event)
        shown = self._partial.read(event) if self.verbosity >= Verbosity.VERBOSE else event
        return None if shown is None else format_event(shown, verbosity=self.verbosity)


def _piece(line: Words) -> Piece:
    return Piece(fragments_of(line) if line.text else [Fragment("plain", "")], is_literal=True)


def _debug(text: str) -> Piece:
    return Piece([Fragment("debug", f"[debug] {text}")], is_literal=True)


def _is_reported_later(event: Event) -> bool:
    """Return whether the end of the session or run covers the event."""
    match event:
        case SessionEnded() | NoProgress() | RateLimited(status="rejected", overage=False):
            return True
        case _:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverStatus(RunStatus):
    """The status of a deliver loop: its deliverables, its activity, and the totals."""

    panel: Panel

    def add(self, event: Event, *, at: datetime) -> DeliverStatus:
        """Return the status with one more event."""
        added = RunStatus.add(self, event, at=at)
        return replace(added, panel=self.panel.add(event, at))

    def rows(self, now: datetime, *, columns: int, height: int) -> list[list[Fragment]]:
        """Return the rows, each short of the last column."""
        is_waiting = self.activity.state == "waiting"  # the panel counts down
        special = [] if is_waiting else special_row(self.activity, now, columns)
        totals = total_rows(self, now, columns)
        rows = [*self.panel.lines(now, height=height - 2 * len(totals)), special, *totals]
        return [cut_row(row, columns) for row in rows if row]


def with_deliver_output(
    controls: Controls, wording: Wording, *, project: str | None = None, stamps: bool = True
) -> Callable[[Observable[DeliverStreamEvent]], Observable[DeliverStreamEvent]]:
    """Print each event, behind a time stamp with `stamps`, then emit it unchanged.

    Elsewhere than on a terminal, the lines of the loop and the agent's messages are Autonoe's,
    without a stamp. On a terminal the deliverables, the agent's activity and the totals are shown
    below the lines. They are erased before completion, error and disposal. Errors: as
    `with_cli_output`.
    """

    def screen(clock: Callable[[], datetime]) -> Screen:
        return DeliverScreen(controls, wording, clock, project=project, stamps=stamps)

    return shown_on(controls.lines, screen)


class DeliverScreen:
    """The output of one subscription to a deliver loop."""

    def __init__(
        self,
        controls: Controls,
        wording: Wording,
        clock: Callable[[], datetime],
        *,
        project: str | None,
        stamps: bool,
    ) -> None:
        self._controls = controls
        self._lines = controls.lines
        self._wording = wording
        self._clock = clock
        self._stamps = Stamps(on_terminal=self._lines.is_terminal) if stamps else None
        if self._lines.is_live:
            panel = Panel(since=clock())
            controls.begin(DeliverStatus(panel=panel, project=project or ""), clock())

    def show(self, event: Event) -> None:
        at, lines, controls = self._clock(), self._lines, self._controls
        columns = lines.columns() if lines.is_terminal else None
        self._wording.verbosity = controls.verbosity
        for piece in self._wording.pieces(event):
            fragments = piece.fragments
            if self._stamps is not None and (lines.is_terminal or not piece.is_literal):
                fragments = self._stamps.stamped(fragments, at, columns=columns)
            lines.print(fragments, is_complaint=piece.is_complaint)
        controls.add(event, at)
        controls.show()

    def end(self) -> None:
        self._lines.show(None)
