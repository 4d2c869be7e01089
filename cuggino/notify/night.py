"""What a person is told of a run or a night of a watch, as a fold over the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cuggino.domain import RunSummary, title_of
from cuggino.events import (
    Event,
    LoopSpecIssue,
    WatchItemCompleted,
    WatchItemParked,
    WatchProcessingItem,
)

SHOWN = 10
"""Items and commits that are named; of more, only the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What happened since the last summary."""

    began: datetime | None = None
    """The time of the first event that counts."""
    summary: RunSummary = field(default_factory=RunSummary)
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of items by file name."""
    working: str = ""
    """The item at work."""
    done: tuple[str, ...] = ()
    parked: tuple[tuple[str, str], ...] = ()
    """Items that were set aside, each with the reason."""
    issues: tuple[str, ...] = ()
    """The open spec issues, by their first line."""

    @property
    def has_items(self) -> bool:
        """Return whether a watch has worked on an item."""
        return bool(self.done or self.parked or self.issues or self.working)

    def add(self, event: Event, at: datetime) -> Night:
        """Return the night with one more event; the same value for most of them."""
        summary = self.summary.add(event)
        night = self if summary is self.summary else replace(self, summary=summary)
        match event:
            case WatchProcessingItem(filename=name, title=title):
                title = title or name.removesuffix(".md")
                titles = {**self.titles, name: title}
                # A watch goes on when all issues are settled.
                night = replace(night, titles=titles, working=title, issues=())
            case WatchItemCompleted(filename=name):
                night = replace(night, done=(*self.done, self.title(name)), working="")
            case WatchItemParked(filename=name, reason=reason):
                entry = (self.title(name), reason)
                night = replace(night, parked=(*self.parked, entry), working="")
            case LoopSpecIssue(content=content, filename=name):
                night = replace(night, issues=(*self.issues, title_of(content) or name))
            case _:
                pass
        if night is not self and night.began is None:
            night = replace(night, began=at)
        return night

    def title(self, name: str) -> str:
        """Return the title of an item."""
        return self.titles.get(name) or name.removesuffix(".md")

    def next(self) -> Night:
        """Return the beginning of the next night; the item at work goes on."""
        return Night(titles=self.titles, working=self.working)

    def counts(self) -> str:
        """Return the numbers of items, such as `3 done, 1 parked`."""
        parts = [f"{len(self.done)} done"]
        parts += [f"{len(self.parked)} parked"] if self.parked else []
        return ", ".join(parts)

    def facts(self, now: datetime) -> list[str]:
        """Return the lines of a message: items, what waits for a person, cost and commits."""
        summary = self.summary
        lines = _listed("Done", self.done)
        lines += _listed("Parked", [f"{title} ({reason})" for title, reason in self.parked])
        if self.issues:
            lines.append(f"Waits for you: {'; '.join(self.issues)} (cuggino issues)")
        elif self.parked:
            lines.append("Waits for you: parked items (cuggino backlog list)")
        if summary.deliverables is not None:
            found = summary.deliverables
            blocked = f", {found.blocked} blocked" if found.blocked else ""
            lines.append(f"Deliverables: {found.passed} of {len(found.deliverables)}{blocked}")
        parts = [_spent(summary)]
        commits = len(summary.commits)
        parts += [f"{commits} commit{'s' * (commits != 1)}"] if commits else []
        seconds = summary.earlier_s
        seconds += (now - self.began).total_seconds() if self.began is not None else 0.0
        parts.append(_time(seconds))
        lines.append(", ".join(filter(None, parts)))
        lines += [f"{commit} {subject}" for commit, subject in summary.commits[-SHOWN:]]
        return lines


def _listed(name: str, titles: tuple[str, ...] | list[str]) -> list[str]:
    if not titles:
        return []
    more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
    return [f"{name}: {'; '.join(titles[:SHOWN])}{more}"]


def _spent(summary: RunSummary) -> str:
    if summary.cost_usd is not None:
        return f"Cost: ${summary.cost_usd:.2f}"
    tokens = summary.spent.total_tokens
    return f"Cost: {tokens:,} tokens" if tokens else ""


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min" if minutes else f"{round(seconds)} s"
    hours = timedelta(minutes=minutes) // timedelta(hours=1)
    return f"{hours} h {minutes % 60} min"
