"""The live list of deliverables, and below it what the agent is doing (AUT-253)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from cuggino.events import (
    AgentFellBack,
    AgentMessage,
    AgentRetry,
    DeliverablesListed,
    DeliverableState,
    DeliverSessionEnded,
    DeliverSessionStarted,
    Event,
    QuotaLifted,
    QuotaWaiting,
    Thinking,
    ToolCall,
    ToolResult,
)
from cuggino_cli.output.deliver import standing
from cuggino_cli.output.durations import full_duration
from cuggino_cli.output.theme import Fragment, Label

_LOOKS: dict[str, tuple[str, Label]] = {
    "passed": ("✓", "success"),
    "blocked": ("✗", "warning"),
    "pending": ("○", "plain"),
}
_SHARE = 2
"""The list takes at most this part of the terminal's height."""
_BESIDES = 2
"""Lines that are no deliverables: the one above the list, and the activity below it."""


def activity_line(elapsed_s: float, activity: str, tools: int) -> str:
    """`⚡ 12s Running Bash... (1 tool)`."""
    used = f" ({tools} tool{'' if tools == 1 else 's'})" if tools else ""
    return f"⚡ {full_duration(elapsed_s)} {activity}...{used}"


def waiting_line(left_s: float, resets_at: datetime | None) -> str:
    """`⏳ Waiting... 2h 44m remaining (resets at 6:00 PM UTC)`."""
    until = ""
    if resets_at is not None:
        at = resets_at.astimezone(UTC) if resets_at.tzinfo else resets_at
        half = "AM" if at.hour < 12 else "PM"
        until = f" (resets at {at.hour % 12 or 12}:{at:%M} {half} UTC)"
    return f"⏳ Waiting... {full_duration(left_s)} remaining{until}"


def list_lines(listed: DeliverablesListed, *, height: int) -> list[list[Fragment]]:
    """The deliverables in their order, in at most half of a terminal that is so high.

    Of more than fit, what is still to be done is shown, and how many others there are. Nothing
    when there is none, or room for none.
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
    """The smaller, the sooner it is shown."""
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
    """What is shown below the lines, as a fold over the events; a new value for each."""

    since: datetime
    """When what is going on began."""
    activity: str = "Starting"
    tools: int = 0
    """Calls of tools in the running session."""
    listed: DeliverablesListed = field(default_factory=DeliverablesListed)
    until: datetime | None = None
    """When a wait is over."""
    resets_at: datetime | None = None

    def add(self, event: Event, now: datetime) -> Panel:
        """The panel with one more event."""
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
        """What is shown on a terminal that is so high."""
        if self.until is not None:
            last = waiting_line((self.until - now).total_seconds(), self.resets_at)
        else:
            last = activity_line((now - self.since).total_seconds(), self.activity, self.tools)
        return [*list_lines(self.listed, height=height), [Fragment("plain", last)]]
