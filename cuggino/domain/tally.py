"""The counts of a run, folded from its events: the same for every view, and for a resumed run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

from cuggino.domain.spending import Spending
from cuggino.events import (
    CommitPerformed,
    CommitSeen,
    DeliverSessionStarted,
    Done,
    Event,
    ImplementingStart,
    IterationStart,
    PlanBuildPhaseStarted,
    PlanningStart,
    Progress,
    ReviewingStart,
    RunContinued,
    RunResumed,
    StageFinished,
    StageStarted,
    WatchAuditStarted,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
)

_NONE: Mapping[str | None, int] = MappingProxyType({})
_NOTHING = Spending()


class RunCommit(NamedTuple):
    """A commit of the run: its abbreviated hash and its subject."""

    commit_hash: str
    subject: str


class _Round(NamedTuple):
    """An iteration or session, which a repeated stage may announce again."""

    item: str | None
    attempt: int
    """The attempt at the item; the iterations of each are counted from 1."""
    number: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of the events added so far.

    A stage that was killed and repeated counts its tasks once, and its iteration once, but all its
    agents, which were paid. A commit that is reported again counts once.
    """

    before: RunResumed | None = None
    """The totals of earlier processes whose events are not added."""
    counted: frozenset[_Round] = frozenset()
    attempts: Mapping[str | None, int] = field(default_factory=lambda: _NONE)
    """The attempts that have ended, by the file name of the item; None for one without a slot."""
    done: int = 0
    """The tasks that agents reported as done (`Progress` and `Done`), in stages that have ended."""
    reported: Mapping[str | None, int] = field(default_factory=lambda: _NONE)
    """The same in stages that may be repeated."""
    started: int = 0
    """Agents started by these events."""
    by_hash: Mapping[str, str] = field(default_factory=dict)
    """Subjects of the commits."""
    finished: Spending = _NOTHING
    """The spending of the finished stages."""
    running: Mapping[str | None, Spending] = field(default_factory=dict)
    """The spending of the others; agents of two stages may run in parallel."""

    @property
    def rounds(self) -> int:
        """Iterations begun; sessions in the deliver loop."""
        return len(self.counted) + (self.before.rounds if self.before else 0)

    @property
    def tasks(self) -> int:
        """Tasks that an agent reported as done."""
        return self.done + (self.before.tasks if self.before else 0)

    @property
    def agents(self) -> int:
        """Agents started, one per phase, session and audit."""
        return self.started + (self.before.agents if self.before else 0)

    @property
    def commits(self) -> tuple[RunCommit, ...]:
        """The commits in their order, each once."""
        return tuple(RunCommit(*commit) for commit in self.by_hash.items())

    @property
    def spent(self) -> Spending:
        """The spending of all sessions, as far as reported."""
        if self.running.keys() == {None} and self.finished is _NOTHING:
            return self.running[None]
        return reduce(Spending.plus, self.running.values(), self.finished)

    def add(self, event: Event, stage: str | None = None) -> Tally:
        """Return the counts with one more event; most events change nothing.

        `stage` is that of a recorded event. Without it, nothing is known to be repeated. An agent
        that ended before it reported its cost counts with its last update.
        """
        if isinstance(event, RunResumed):
            spent: dict[str | None, Spending] = {None: self.spent.add(event)}
            return Tally(before=event, by_hash=dict(event.commits), running=spent)
        return self._spend(event, stage)._count(event, stage)

    def _spend(self, event: Event, stage: str | None) -> Tally:
        before = self.running.get(stage, _NOTHING)
        match event:
            case StageFinished():
                if stage not in self.running:
                    return self
                left = {name: spent for name, spent in self.running.items() if name != stage}
                return replace(self, finished=self.finished.plus(before), running=left)
            case RunContinued():
                ended = {name: spent.settle() for name, spent in self.running.items()}
                return replace(self, running=ended)
            case StageStarted():  # possibly a repetition with a new agent
                after = before.settle()
            case _:
                after = before.add(event)
        return self if after is before else replace(self, running={**self.running, stage: after})

    def _count(self, event: Event, stage: str | None) -> Tally:
        match event:
            case (
                IterationStart(iteration=number)
                | DeliverSessionStarted(session=number)
                | PlanBuildPhaseStarted(iteration=number)
            ):
                tally = self._with_round(event, number)
            case Progress() | Done() if stage is None or event.item is not None:
                # The run of an item has a journal of its own, and is not repeated with the stage.
                return replace(self, done=self.done + 1)
            case Progress() | Done():
                again = self.reported.get(stage, 0) + 1
                return replace(self, reported={**self.reported, stage: again})
            case StageStarted() | StageFinished() if stage in self.reported:
                left = {name: count for name, count in self.reported.items() if name != stage}
                more = self.reported[stage] if isinstance(event, StageFinished) else 0
                return replace(self, done=self.done + more, reported=left)
            case CommitPerformed(commit_hash=commit_hash, message=message):
                return self._with_commit(commit_hash, message.strip().partition("\n")[0])
            case CommitSeen(commit_hash=commit_hash, subject=subject):
                return self._with_commit(commit_hash, subject)
            case WatchItemCompleted() | WatchItemParked() | WatchItemRetained() | WatchItemRetry():
                ended = {name: self.attempts.get(name, 0) + 1 for name in (None, event.filename)}
                return replace(self, attempts={**self.attempts, **ended})
            case _:
                tally = self
        starts = PlanningStart | ImplementingStart | ReviewingStart | WatchAuditStarted
        if isinstance(event, starts | DeliverSessionStarted | PlanBuildPhaseStarted):
            return replace(tally, started=tally.started + 1)
        return tally

    def _with_round(self, event: Event, number: int) -> Tally:
        attempt = self.attempts.get(event.item, 0)
        if self.before is not None and attempt == 0 and number <= self.before.rounds:
            return self  # a resumed run announces its iteration again
        begun = _Round(event.item, attempt, number)
        return self if begun in self.counted else replace(self, counted=self.counted | {begun})

    def _with_commit(self, commit_hash: str, subject: str) -> Tally:
        return replace(self, by_hash={**self.by_hash, commit_hash: subject})
