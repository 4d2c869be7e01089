"""The summary of a run or of a night of a watch: its state, less the one at the last message."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cuggino.domain import RunCommit, money
from cuggino.events import Event, PingEvent
from cuggino.runs import ItemEnd, RunState

SHOWN = 10
"""Maximum items and commits that are named; of the rest, only the number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The progress since the last message."""

    state: RunState = field(default_factory=RunState)
    state_before: RunState = field(default_factory=RunState)
    """The state at the last message."""
    began: datetime | None = None
    """The time of the first event since then."""

    def add(self, event: Event, at: datetime) -> Night:
        """Return the night after one more event."""
        if isinstance(event, PingEvent):
            return self
        return replace(self, state=self.state.add(event, at=at), began=self.began or at)

    def next(self) -> Night:
        """Return the start of the next night."""
        return Night(state=self.state, state_before=self.state)

    @property
    def done(self) -> tuple[ItemEnd, ...]:
        """The items completed since the last message."""
        return self.state.completed[self.state_before.done :]

    @property
    def parked(self) -> tuple[ItemEnd, ...]:
        """The items set aside since the last message."""
        return self.state.set_aside[self.state_before.parked :]

    @property
    def commits(self) -> tuple[RunCommit, ...]:
        """The commits since the last message."""
        return self.state.commits[len(self.state_before.commits) :]

    @property
    def working(self) -> str:
        """The titles of the items at work, or on their way to the trunk."""
        if self.state.item:
            return self.state.title
        places = ("slot", "queue", "landing")
        return "; ".join(item.title for item in self.state.items if item.place in places)

    @property
    def proposals(self) -> tuple[RunState, ...]:
        """The items with an open pull request, also while they wait for a retry."""
        places = ("proposed", "retry")
        return tuple(i for i in self.state.items if i.pull_request and i.place in places)

    @property
    def has_items(self) -> bool:
        """Return whether a watch has worked on an item, or an item waits for somebody."""
        waits = self.state.questions or self.proposals
        return bool(self.done or self.parked or waits or self.working)

    def counts(self) -> str:
        """Return the numbers of items, such as `3 done, 1 parked`."""
        parts = [f"{len(self.done)} done"]
        parts += [f"{len(self.parked)} parked"] if self.parked else []
        return ", ".join(parts)

    def facts(self, now: datetime) -> list[str]:
        """Return the lines of a message: items, matters for a person, cost and commits."""
        state = self.state
        noted = [f"{end.title} ({end.note})" if end.note else end.title for end in self.done]
        lines = _listed("Done", noted)
        lines += _listed("Parked", [f"{end.title} ({end.note})" for end in self.parked])
        pulls = [f"{item.title} ({item.pull_words})" for item in self.proposals]
        lines += _listed("Open pull requests", pulls)
        if state.questions:
            asked = "; ".join(question.title for question in state.questions)
            lines.append(f"Waits for you: {asked} (cuggino issues)")
        elif self.parked:
            lines.append("Waits for you: parked items (cuggino backlog list)")
        if state.follow_delayed:
            lines.append(f"Waits for you: {state.branch} does not follow: {state.follow_delayed}")
        if state.deliverables is not None:
            found = state.deliverables
            blocked = f", {found.blocked} blocked" if found.blocked else ""
            lines.append(f"Deliverables: {found.passed} of {len(found.deliverables)}{blocked}")
        parts = [self._spent()]
        commits = len(self.commits)
        parts += [f"{commits} commit{'s' * (commits != 1)}"] if commits else []
        seconds = state.earlier - self.state_before.earlier
        seconds += (now - self.began).total_seconds() if self.began is not None else 0.0
        parts.append(_time(seconds))
        lines.append(", ".join(filter(None, parts)))
        lines += [f"{commit} {subject}" for commit, subject in self.commits[-SHOWN:]]
        return lines

    def _spent(self) -> str:
        after, before = self.state, self.state_before
        if after.cost_usd is not None:
            cost = after.cost_usd - (before.cost_usd or 0.0)
            return f"Cost: {money(cost, estimated=after.cost_estimated, digits=2)}"
        tokens = after.spent.total_tokens - before.spent.total_tokens
        return f"Cost: {tokens:,} tokens" if tokens else ""


def _listed(name: str, titles: list[str]) -> list[str]:
    if not titles:
        return []
    more = f" and {len(titles) - SHOWN} more" if len(titles) > SHOWN else ""
    return [f"{name}: {'; '.join(titles[:SHOWN])}{more}"]


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min" if minutes else f"{round(seconds)} s"
    hours = timedelta(minutes=minutes) // timedelta(hours=1)
    return f"{hours} h {minutes % 60} min"
