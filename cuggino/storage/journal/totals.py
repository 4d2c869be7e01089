"""The totals of a run, as a fold over its journal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import reduce

from cuggino.domain import SESSION_BEGINS, Spending
from cuggino.events import (
    CommitPerformed,
    CommitSeen,
    DeliverSessionStarted,
    Event,
    ImplementingStart,
    IterationStart,
    PlanBuildPhaseStarted,
    PlanningStart,
    ReviewingStart,
    RunContinued,
    RunResumed,
    RunStarted,
    StageFinished,
    StageStarted,
    WatchAuditStarted,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
)
from cuggino.storage.journal.reader import Entry, JournalFile

_OF_OTHER_LOOPS = frozenset(
    {
        "CommitSeen",
        "DeliverSessionStarted",
        "PlanBuildPhaseStarted",
        "WatchAuditStarted",
        "WatchItemCompleted",
        "WatchItemParked",
        "WatchItemRetained",
        "WatchItemRetry",
    }
)

COUNTED = (
    SESSION_BEGINS
    | _OF_OTHER_LOOPS
    | {
        "CommitPerformed",
        "IterationStart",
        "RunContinued",
        "RunStarted",
        "SessionEnded",
        "StageFinished",
        "StageStarted",
        "UsageUpdate",
        "WatchAuditEnded",
        "WatchAuditFailed",
        "WatchAuditInterrupted",
    }
)
"""The event tags that the totals need, as the `only` of a reader."""

DELIVERED = frozenset(
    {
        "DeliverEnded",
        "DeliverSessionEnded",
        "DeliverSessionStarted",
        "DeliverablesListed",
        "RunContinued",
        "StageStarted",
    }
)
"""The event tags that `fold_delivery` needs, as the `only` of a reader."""

_TASKS = ("Progress", "Done")


def run_totals(journal: JournalFile) -> RunResumed:
    """Return the totals from which a resumed run continues; see `fold_totals`."""
    return fold_totals(journal.entries.only(COUNTED))


def fold_totals(entries: Iterable[Entry]) -> RunResumed:
    """Return the totals of the run over all its processes.

    A stage that was killed and repeated counts as one task, and its iteration as one, but all its
    agents count with their cost, which was spent. An agent that ended before it reported its cost
    counts with its last update. `duration` is the time that processes worked: from the first to the
    last entry of each, without the time between.
    """
    totals = Totals()
    for entry in entries:
        totals.add(entry)
    return totals.result()


class Totals:
    """The totals of the entries added so far."""

    def __init__(self) -> None:
        self._run_id = ""
        self._stages = 0
        self._laps = 0
        """In a watch, the attempts at items; the iterations of each are counted from 1."""
        self._rounds: set[tuple[int, int]] = set()
        self._tasks = 0
        self._agents = 0
        self._commits: dict[str, str] = {}
        self._spent = Spending()
        """The spending of the finished stages."""
        self._running: dict[str | None, Spending] = {}
        """The spending of the others; agents of two stages may run in parallel."""
        self._before = 0.0
        self._begin: datetime | None = None
        self._end: datetime | None = None

    def add(self, entry: Entry) -> None:
        """Count an entry."""
        if type(entry.event).__name__ not in COUNTED:
            self.until(entry.at)
            return
        if isinstance(entry.event, RunContinued):
            self._before += self._seconds()
            self._begin = None
            self._running = {stage: spent.settle() for stage, spent in self._running.items()}
        self._begin = self._begin or entry.at
        self._end = entry.at
        self._spend(entry.stage, entry.event)
        self._count(entry.event)

    def until(self, at: datetime) -> None:
        """Note the time of an entry that counts for nothing else."""
        self._end = at

    def _spend(self, stage: str | None, event: Event) -> None:
        if isinstance(event, StageFinished):
            if (last := self._running.pop(stage, None)) is not None:
                self._spent = self._spent.plus(last)
            return
        before = self._running.get(stage, _NOTHING)
        match event:
            case StageStarted():  # possibly a repetition with a new agent
                after = before.settle()
            case _:
                after = before.add(event)
        if after is not before:
            self._running[stage] = after

    def _count(self, event: Event) -> None:
        match event:
            case StageStarted() | RunContinued():
                pass
            case RunStarted(run_id=run_id):
                self._run_id = run_id
            case StageFinished(outcome=outcome):
                self._stages += 1
                self._tasks += isinstance(outcome, dict) and outcome.get("_tag") in _TASKS
            case IterationStart(iteration=iteration):
                self._rounds.add((self._laps, iteration))
            case PlanningStart() | ImplementingStart() | ReviewingStart():
                self._agents += 1
            case CommitPerformed(commit_hash=commit_hash, message=message):
                self._commits[commit_hash] = message.strip().partition("\n")[0]
            case _ if event.tag in _OF_OTHER_LOOPS:
                self._count_of_others(event)
            case _:
                pass

    def _count_of_others(self, event: Event) -> None:
        """Count an event of another loop than the coding loop; they are loaded only here."""
        match event:
            case WatchItemCompleted() | WatchItemRetained() | WatchItemRetry() | WatchItemParked():
                self._laps += 1
            case WatchAuditStarted():
                self._agents += 1
            case DeliverSessionStarted(session=session):
                self._rounds.add((self._laps, session))
                self._agents += 1
            case PlanBuildPhaseStarted(iteration=iteration):
                self._rounds.add((self._laps, iteration))
                self._agents += 1
            case CommitSeen(commit_hash=commit_hash, subject=subject):
                self._commits[commit_hash] = subject
            case _:
                pass

    def result(self) -> RunResumed:
        """Return the totals, from which a resumed run continues."""
        spent = reduce(Spending.plus, self._running.values(), self._spent)
        return RunResumed(
            run_id=self._run_id,
            stages=self._stages,
            rounds=len(self._rounds),
            tasks=self._tasks,
            agents=self._agents,
            commits=tuple(self._commits.items()),
            cost_usd=spent.cost_usd,
            cost_estimated=spent.cost_estimated,
            usage=spent.usage,
            duration=self._before + self._seconds(),
        )

    def _seconds(self) -> float:
        if self._begin is None or self._end is None:
            return 0.0
        return max((self._end - self._begin).total_seconds(), 0.0)


_NOTHING = Spending()
