"""The summary of a run or of a night of a watch: its state, less the one at the last message.

It answers in the order of a report: done, waiting, given up, cost, unusual.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from cuggino import events as ev
from cuggino.domain import RunCommit, money
from cuggino.runs import ItemEnd, RunState
from cuggino.runs.words import often

SHOWN = 10
"""Maximum items and commits that are named; of the rest, only the number."""


class Proof(NamedTuple):
    """The latest commit of an item or a run, and its check."""

    commit: str = ""
    check: str = ""
    """The check command that ended last, if it passed."""
    running: str = ""
    """The check command at work."""

    def words(self) -> list[str]:
        return [*filter(None, (self.commit[:10], f"`{self.check}` passed" if self.check else ""))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The progress since the last message."""

    state: RunState = field(default_factory=RunState)
    state_before: RunState = field(default_factory=RunState)
    """The state at the last message."""
    began: datetime | None = None
    """The time of the first event since then."""
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    """The proof of each item, by its file; of a run without one, by ""."""

    def add(self, event: ev.Event, at: datetime) -> Night:
        """Return the night after one more event."""
        if isinstance(event, ev.PingEvent):
            return self
        proofs = _proven(self.proofs, event, event.item or self.state.item)
        state = self.state.add(event, at=at)
        return replace(self, state=state, proofs=proofs, began=self.began or at)

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

    @property
    def waits(self) -> list[str]:
        """The matters that wait for a person, each with what to do."""
        state = self.state
        waits = [f"{question.title} (cuggino issues)" for question in state.questions]
        if state.follow_delayed:
            waits.append(f"{state.branch} does not follow: {state.follow_delayed}")
        return waits + [f"{item.title} (pull request {item.pull_words})" for item in self.proposals]

    def counts(self) -> str:
        """Return the numbers of items, such as `3 done, 1 waiting for you, 1 given up`."""
        parts = [f"{len(self.done)} done"]
        parts += [f"{len(self.waits)} waiting for you"] if self.waits else []
        parts += [f"{len(self.parked)} given up"] if self.parked else []
        return ", ".join(parts)

    def facts(self, now: datetime) -> list[str]:
        """Return the lines of a message, in the order of a report."""
        lines = [*self._proven(), *_listed("Waits for you", self.waits)]
        for end in self.parked[:SHOWN]:
            retry = f" (cuggino backlog retry {end.item})"
            lines.append(f"Given up: {end.title}: {end.note}{retry}")
        if len(self.parked) > SHOWN:
            lines.append(f"and {len(self.parked) - SHOWN} more (cuggino backlog list)")
        seconds = self.state.earlier - self.state_before.earlier
        seconds += (now - self.began).total_seconds() if self.began is not None else 0.0
        lines.append(", ".join(filter(None, (self._spent(), _time(seconds)))))
        return lines + _listed("Unusual", self._unusual())

    def _proven(self) -> list[str]:
        """Return what is done, with its commits and the check that proves it."""
        noted = []
        for end in self.done:
            proof = self.proofs.get(end.item, Proof())
            words = [end.note, proof.commit[:10]] if end.note else proof.words()
            about = ", ".join(filter(None, words))
            noted.append(f"{end.title} ({about})" if about else end.title)
        lines = _listed("Done", noted)
        state, commits = self.state, self.commits
        if state.deliverables is not None:
            found = state.deliverables
            blocked = f", {found.blocked} blocked" if found.blocked else ""
            lines.append(f"Deliverables: {found.passed} of {len(found.deliverables)}{blocked}")
        if commits:
            lines.append(f"{len(commits)} commit{'s' * (len(commits) != 1)}")
            lines += [f"{commit} {subject}" for commit, subject in commits[-SHOWN:]]
        check = self.proofs.get("", Proof()).check
        if check and state.ending == "approved" and state.checked is not False:
            lines.append(f"Check: `{check}` passed")
        return lines

    def _spent(self) -> str:
        after, before = self.state, self.state_before
        if after.cost_usd is not None:
            cost = after.cost_usd - (before.cost_usd or 0.0)
            text = f"Cost: {money(cost, estimated=after.cost_estimated)}"
            forecast, count = self.state.forecast, 1
            if forecast is not None and forecast.loop == "item":
                count = len(self.done) + len(self.parked) + len(self.state.questions)
            if forecast is None or forecast.cost_usd is None or not count:
                return text
            usual = money(forecast.cost_usd * count, estimated=forecast.cost_estimated)
            return f"{text} (usually {usual})"
        tokens = after.spent.total_tokens - before.spent.total_tokens
        return f"Cost: {tokens:,} tokens" if tokens else ""

    def _unusual(self) -> list[str]:
        after, before = self.state, self.state_before
        returns = after.sent_back_count - before.sent_back_count
        failed = after.failed_commits[len(before.failed_commits) :]
        return [
            *([f"sent back {often(returns)}"] if returns else []),
            *(f"a commit failed: {message.partition(chr(10))[0]}" for message in failed),
            *(["files of the check changed"] if after.gate_changed else []),
            *(["the history was rewritten"] if after.lost_base else []),
        ]


def _proven(proofs: Mapping[str, Proof], event: ev.Event, item: str) -> Mapping[str, Proof]:
    known = proofs.get(item, Proof())
    match event:
        case ev.CommitPerformed(commit_hash=commit):
            known = known._replace(commit=commit)
        case ev.WatchLanded(filename=name, commit=commit, nothing=False):
            item, known = name, proofs.get(name, Proof())._replace(commit=commit)
        case ev.CheckCommandStarted(command=command):
            known = known._replace(running=command)
        case ev.CheckCommandOutput(exit_code=code):
            known = known._replace(check=known.running if code == 0 else "", running="")
        case _:
            return proofs
    return {**proofs, item: known}


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
