"""The status of the deliver loop: the list of deliverables, and the agent's activity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from cuggino import events as ev
from cuggino.runs.words import full_duration, standing
from cuggino_cli.screen.fragments import Fragment, Label
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


def list_lines(listed: ev.DeliverablesListed, *, height: int) -> list[list[Fragment]]:
    """Return the deliverables in order, in at most half the height of the terminal.

    If not all fit, open ones come first and the others are counted. Empty without deliverables or
    without room.
    """
    items = listed.deliverables
    room = height // _SHARE - _BESIDES
    if not items or room < 1:
        return []
    shown: Sequence[ev.DeliverableState] = items
    if len(items) > room:
        first = sorted(range(len(items)), key=lambda at: (_rank(items[at], listed), at))
        shown = [items[at] for at in sorted(first[: room - 1])]
    lines = [[Fragment("prose", standing(listed))], *map(_item, shown)]
    if len(shown) < len(items):
        lines.append([Fragment("prose", f"  ... and {len(items) - len(shown)} more")])
    return lines


def _rank(item: ev.DeliverableState, listed: ev.DeliverablesListed) -> int:
    """Return the rank of the deliverable; lower ranks are shown first."""
    if item.status == "pending":
        return 0
    if item.status == "blocked":
        return 2
    return 1 if listed.verified and not item.verified else 3


def _item(item: ev.DeliverableState) -> list[Fragment]:
    icon, label = _LOOKS[item.status]
    verified = [Fragment("success", " verified")] if item.verified else []
    name = [Fragment(label, f"  {icon}"), *verified, Fragment("plain", f" {item.id} ")]
    return [*name, Fragment("prose", item.description)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The drawn lines, as an immutable fold over the events."""

    since: datetime | None = None
    """The start of the current activity; None for that of the run."""
    activity: str = "Starting"
    tools: int = 0
    """Tool calls in the running session."""
    listed: ev.DeliverablesListed = field(default_factory=ev.DeliverablesListed)
    until: datetime | None = None
    """The end of a wait."""
    resets_at: datetime | None = None

    def add(self, event: ev.Event, now: datetime) -> Panel:
        match event:
            case ev.DeliverablesListed():
                return replace(self, listed=event)
            case ev.DeliverSessionStarted():
                return replace(self, since=now, activity="Thinking", tools=0, until=None)
            case ev.DeliverSessionEnded():
                return replace(self, since=now, activity="Pausing", tools=0, until=None)
            case ev.Thinking() | ev.ToolResult() | ev.QuotaLifted():
                return replace(self, activity="Thinking", until=None)
            case ev.AgentMessage():
                return replace(self, activity="Responding", until=None)
            case ev.ToolCall(name=name):
                running = f"Running {name.rpartition('__')[2] or name}"
                return replace(self, activity=running, tools=self.tools + 1, until=None)
            case ev.AgentFellBack():
                return replace(self, activity="Starting", until=None)
            case ev.AgentRetry():
                return replace(self, activity="Retrying", until=None)
            case ev.QuotaWaiting(remaining=remaining, resets_at=resets_at):
                return replace(self, until=now + timedelta(seconds=remaining), resets_at=resets_at)
            case _:
                return self

    def lines(self, now: datetime, *, height: int, began: datetime) -> list[list[Fragment]]:
        """Return the list and the activity line of a run that began then."""
        if self.until is not None:
            last = waiting_line((self.until - now).total_seconds(), self.resets_at)
        else:
            elapsed = now - (self.since or began)
            last = activity_line(elapsed.total_seconds(), self.activity, self.tools)
        return [*list_lines(self.listed, height=height), [Fragment("plain", last)]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverStatus(RunStatus):
    """The status of a deliver loop: its deliverables, its activity, and the totals."""

    panel: Panel = field(default_factory=Panel)

    def add(self, event: ev.Event, *, at: datetime) -> DeliverStatus:
        added = RunStatus.add(self, event, at=at)
        return replace(added, panel=self.panel.add(event, at))

    def rows(self, now: datetime, *, columns: int, height: int) -> list[list[Fragment]]:
        """Return the rows, each short of the last column."""
        is_waiting = self.activity.state == "waiting"  # the panel counts down
        special = [] if is_waiting else special_row(self.activity, now, columns)
        totals, began = total_rows(self, now, columns), self.activity.began or now
        rows = [
            *self.panel.lines(now, height=height - 2 * len(totals), began=began),
            special,
            *totals,
        ]
        return [cut_row(row, columns) for row in rows if row]
