"""The events of a run as the data of the page's table: one compact row each, long texts cut."""

from __future__ import annotations

import math
from typing import Final, NamedTuple, cast

from pydantic import JsonValue

from cuggino.events import (
    DeliverEvent,
    Event,
    JournalEvent,
    LlmAgentEvent,
    LlmMarkerEvent,
    LoopPhaseEvent,
    MessageDelta,
    PingEvent,
    PlanBuildEvent,
    SupervisionEvent,
    ToolCall,
    ToolResult,
    UsageUpdate,
    WatchLoopEvent,
    dump_event,
)
from cuggino.report.markup import for_island, to_json
from cuggino.report.model import RunReport
from cuggino.report.times import Times
from cuggino.storage.journal import Entry

MOST_EVENTS: Final = 200_000
"""Events in a page; the first events of a longer run are left out."""

_PAGE_CHARACTERS = 24_000_000
_LEAST, _MOST = 200, 20_000
"""Characters per event, for many events and for few."""

_ROWS = 1000
"""Events in one part."""

CATEGORIES: Final[dict[str, str]] = {
    "agent": "Agent",
    "tool": "Tools",
    "sign": "Pings and usage",
    "marker": "Markers",
    "loop": "Loop",
    "policy": "Policies",
    "watch": "Watch",
    "deliver": "Deliverables",
    "jobs": "Jobs",
    "journal": "Journal",
    "other": "Other",
}
"""The labels of the check boxes, by category."""

QUIET: Final = frozenset({"sign"})
"""Categories that are hidden by default."""

_UNREADABLE = ("NaN", "Infinity", "\\ud")
"""Text that JSON or browsers cannot represent: half a surrogate pair."""

_BY_CLASS: tuple[tuple[type[Event] | tuple[type[Event], ...], str], ...] = (
    ((PingEvent, MessageDelta, UsageUpdate), "sign"),
    ((ToolCall, ToolResult), "tool"),
    (LlmAgentEvent, "agent"),
    (LlmMarkerEvent, "marker"),
    (LoopPhaseEvent, "loop"),
    (SupervisionEvent, "policy"),
    (WatchLoopEvent, "watch"),
    (DeliverEvent, "deliver"),
    (PlanBuildEvent, "jobs"),
    (JournalEvent, "journal"),
)


def category_of(event: Event) -> str:
    """Return the event's category, a key of `CATEGORIES`."""
    return next((name for classes, name in _BY_CLASS if isinstance(event, classes)), "other")


class EventsTable(NamedTuple):
    """The rows as JSON, and the number of omitted events."""

    parts: tuple[bytes, ...]
    """The JSON object for an `island`, in parts and in UTF-8, as it is long."""
    shown: int
    left_out: int
    """Events at the start that are not among the rows."""
    cut: int
    """Events that are shortened."""
    counts: dict[str, int]
    """Rows by category, in the order of `CATEGORIES`, without empty ones."""

    @property
    def json(self) -> str:
        """Return the whole object."""
        return b"".join(self.parts).decode()


def events_table(report: RunReport, times: Times, *, most: int = MOST_EVENTS) -> EventsTable:
    """Return the rows `[seq, local time in ms, stage, kind, event]`; stage and kind are indices.

    Every event gets an equal share of the page's size, so that it stays usable.
    """
    left_out = max(len(report.entries) - most, 0)
    shown = len(report.entries) - left_out
    share = min(max(_PAGE_CHARACTERS // max(shown, 1), _LEAST), _MOST)
    stages: dict[str | None, int] = {}
    kinds: dict[tuple[str, str], int] = {}
    counts = dict.fromkeys(CATEGORIES, 0)
    parts: list[bytes] = []
    rows: list[str] = []
    cut = 0
    for number, entry in enumerate(report.entries[left_out:], 1):
        category = category_of(entry.event)
        counts[category] += 1
        stage = stages.setdefault(entry.stage, len(stages))
        kind = kinds.setdefault((entry.event.tag, category), len(kinds))
        line = dump_event(entry.event)
        is_long = len(line) > share
        if is_long or any(mark in line for mark in _UNREADABLE):
            line = to_json(shorten(_fields(entry), share if is_long else 2 * _MOST))
            cut += is_long
        end = ",\n" if number < shown else "\n"
        rows.append(f"[{entry.seq},{times.milliseconds(entry.at)},{stage},{kind},{line}]{end}")
        if len(rows) == _ROWS or number == shown:
            parts.append(_encoded("".join(rows)))
            rows.clear()
    head = to_json({"stages": list(stages), "kinds": list(kinds)})
    return EventsTable(
        parts=(_encoded(f'{head[:-1]},"rows":[\n'), *parts, b"]}"),
        shown=shown,
        left_out=left_out,
        cut=cut,
        counts={name: count for name, count in counts.items() if count},
    )


def _encoded(text: str) -> bytes:
    return for_island(text).encode("utf-8", "replace")


def shorten(value: JsonValue, budget: int) -> JsonValue:
    """Return the value with about `budget` characters of text; the rest is counted."""
    return _Shortener(budget).shorten(value)


class _Shortener:
    def __init__(self, budget: int) -> None:
        self._left = budget

    def shorten(self, value: JsonValue) -> JsonValue:
        match value:
            case str():
                return self._text(value)
            case list():
                items: list[JsonValue] = []
                for item in value:
                    if self._left <= 0:
                        return [*items, f"… {len(value) - len(items)} more left out"]
                    items.append(self.shorten(item))
                return items
            case dict():
                fields: dict[str, JsonValue] = {}
                for key, item in value.items():
                    if self._left <= 0:
                        return {**fields, "…": f"{len(value) - len(fields)} more left out"}
                    name = self._text(key)
                    fields[name] = self.shorten(item)
                return fields
            case _:
                self._left -= 8
                is_number = not isinstance(value, float) or math.isfinite(value)
                return value if is_number else str(value)

    def _text(self, text: str) -> str:
        room = max(self._left, 0)
        self._left -= len(text) + 4
        if len(text) <= room:
            return text
        end = room // 4
        return (
            f"{text[: room - end]} … {len(text) - room:,} characters left out … "
            f"{text[len(text) - end :]}"
        )


def _fields(entry: Entry) -> JsonValue:
    return cast("JsonValue", {"_tag": entry.event.tag, **entry.event.model_dump(mode="json")})
