"""The summary of a run or of a night of a watch, as a fold over the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from cuggino.domain import RunSummary, cost_of, title_of
from cuggino.events import (
    Event,
    LoopSpecIssue,
    WatchFollowDelayed,
    WatchFollowed,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchProcessingItem,
    WatchProposal,
    WatchProposed,
    WatchSentBack,
    WatchWorkKept,
)

_ENDS_PROPOSAL = (
    *(WatchItemCompleted, WatchItemParked, WatchProcessingItem, WatchSentBack),
    WatchWorkKept,
)
SHOWN = 10
"""Maximum items and commits that are named; of the rest, only the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The progress since the last summary."""

    began: datetime | None = None
    """The time of the first event that counts."""
    summary: RunSummary = field(default_factory=RunSummary)
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of items by file name."""
    at_work: Mapping[str, str] = field(default_factory=dict)
    """Titles of the items at work, by file name."""
    done: tuple[str, ...] = ()
    parked: tuple[tuple[str, str], ...] = ()
    """Items that were set aside, each with the reason."""
    issues: tuple[tuple[str | None, str], ...] = ()
    """The open spec issues: the item that each stops, if the others go on, and its first line."""
    proposals: Mapping[str, str] = field(default_factory=dict)
    """The open pull requests: number and state, by the file names of the items."""
    follow_delayed: str = ""
    """The reason why the user's branch does not follow the landed work."""

    @property
    def has_items(self) -> bool:
        """Return whether a watch has worked on an item."""
        return bool(self.done or self.parked or self.issues or self.at_work or self.proposals)

    def add(self, event: Event, at: datetime) -> Night:
        """Return the night after one more event; most events leave it unchanged."""
        summary = self.summary.add(event)
        night = self if summary is self.summary else replace(self, summary=summary)
        match event:
            case WatchProcessingItem(filename=name, title=title, slot=slot):
                title = title or name.removesuffix(".md")
                others = self.at_work if slot else {}
                # With one slot, a watch continues once all issues are settled.
                issues = tuple(one for one in self.issues if slot and one[0] != name)
                titles = {**self.titles, name: title}
                at_work = {**others, name: title}
                night = replace(night, titles=titles, at_work=at_work, issues=issues)
            case WatchItemCompleted(filename=name, checked=checked):
                how = " (unchecked)" if checked is False else ""
                night = night._without(name, done=(*self.done, self.title(name) + how))
            case WatchItemParked(filename=name, reason=reason):
                entry = (self.title(name), reason)
                night = night._without(name, parked=(*self.parked, entry))
            case WatchItemRetry(filename=name) | WatchItemRetained(filename=name):
                if len(self.at_work) > 1:
                    night = night._without(name)
            case LoopSpecIssue(content=content, filename=name, item=item):
                night = replace(night, issues=(*self.issues, (item, title_of(content) or name)))
                if item is not None:
                    night = night._without(item)
            case WatchProposed(filename=name, number=number):
                proposals = {**self.proposals, name: f"#{number}"}
                night = night._without(name, proposals=proposals)
            case WatchProposal(filename=name, number=number, state=state) if name in self.proposals:
                words = f"#{number} {state.replace('-', ' ')}"
                night = replace(night, proposals={**self.proposals, name: words})
            case WatchFollowDelayed(branch=branch, reason=reason):
                night = replace(night, follow_delayed=f"{branch} does not follow: {reason}")
            case WatchFollowed():
                night = replace(night, follow_delayed="")
            case _:
                pass
        if isinstance(event, _ENDS_PROPOSAL) and event.filename in night.proposals:
            left = {k: v for k, v in night.proposals.items() if k != event.filename}
            night = replace(night, proposals=left)
        if night is not self and night.began is None:
            night = replace(night, began=at)
        return night

    def title(self, name: str) -> str:
        """Return the title of an item."""
        return self.titles.get(name) or name.removesuffix(".md")

    @property
    def working(self) -> str:
        """Return the titles of the items at work."""
        return "; ".join(self.at_work.values())

    def next(self) -> Night:
        """Return the start of the next night, with the items still at work."""
        return Night(
            titles=self.titles,
            at_work=self.at_work,
            proposals=self.proposals,
            follow_delayed=self.follow_delayed,
        )

    def _without(self, item: str, **changes: Any) -> Night:
        """Return the night after the end of work on an item."""
        left = {name: title for name, title in self.at_work.items() if name != item}
        return replace(self, at_work=left, **changes)

    def counts(self) -> str:
        """Return the numbers of items, such as `3 done, 1 parked`."""
        parts = [f"{len(self.done)} done"]
        parts += [f"{len(self.parked)} parked"] if self.parked else []
        return ", ".join(parts)

    def facts(self, now: datetime) -> list[str]:
        """Return the lines of a message: items, matters for a person, cost and commits."""
        summary = self.summary
        lines = _listed("Done", self.done)
        lines += _listed("Parked", [f"{title} ({reason})" for title, reason in self.parked])
        pulls = [f"{self.title(name)} ({words})" for name, words in self.proposals.items()]
        lines += _listed("Open pull requests", pulls)
        if self.issues:
            asked = "; ".join(text for _, text in self.issues)
            lines.append(f"Waits for you: {asked} (cuggino issues)")
        elif self.parked:
            lines.append("Waits for you: parked items (cuggino backlog list)")
        if self.follow_delayed:
            lines.append(f"Waits for you: {self.follow_delayed}")
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
        return f"Cost: {cost_of(summary, digits=2)}"
    tokens = summary.spent.total_tokens
    return f"Cost: {tokens:,} tokens" if tokens else ""


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min" if minutes else f"{round(seconds)} s"
    hours = timedelta(minutes=minutes) // timedelta(hours=1)
    return f"{hours} h {minutes % 60} min"
