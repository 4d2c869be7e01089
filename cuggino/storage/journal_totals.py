"""What a run has come to so far, as a fold over its journal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import reduce

from cuggino.domain.spending import SESSION_BEGINS, Spending
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
    SessionEnded,
    StageFinished,
    StageStarted,
    UsageUpdate,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditInterrupted,
    WatchAuditStarted,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
)
from cuggino.storage.journal_reader import Entry, JournalFile

COUNTED = frozenset(
    kind.__name__
    for kind in (
        *SESSION_BEGINS,
        CommitPerformed,
        CommitSeen,
        IterationStart,
        RunContinued,
        RunStarted,
        SessionEnded,
        StageFinished,
        StageStarted,
        UsageUpdate,
        WatchAuditEnded,
        WatchAuditFailed,
        WatchAuditInterrupted,
        WatchItemCompleted,
        WatchItemParked,
        WatchItemRetained,
        WatchItemRetry,
    )
)
"""The tags of what the totals depend on: enough of a journal to read (`only`) to have them."""

_TASKS = ("Progress", "Done")


def run_totals(journal: JournalFile) -> RunResumed:
    """The counters with which a resumed run goes on; see `fold_totals`."""
    return fold_totals(journal.entries)


def fold_totals(entries: Iterable[Entry]) -> RunResumed:
    """What the run came to, all its processes together.

    A stage that was begun, killed and begun again counts as one task, and its round as one round,
    but all its agents count, with what they cost: it was really spent. An agent that was ended
    before it could tell its cost counts with what it had told until then. `duration` is the time
    that processes worked: from the first to the last entry of each, without the time between.
    """
    totals = _Totals()
    for entry in entries:
        totals.add(entry)
    return totals.result()


class _Totals:
    def __init__(self) -> None:
        self._run_id = ""
        self._stages = 0
        self._laps = 0
        """In a watch: attempts at items; the rounds of each are counted from 1."""
        self._rounds: set[tuple[int, int]] = set()
        self._tasks = 0
        self._agents = 0
        self._commits: dict[str, str] = {}
        self._spent = Spending()
        """What the finished stages took."""
        self._running: dict[str | None, Spending] = {}
        """What the others took; agents of two stages may work at the same time."""
        self._before = 0.0
        self._begin: datetime | None = None
        self._end: datetime | None = None

    def add(self, entry: Entry) -> None:
        if isinstance(entry.event, RunContinued):
            self._before += self._seconds()
            self._begin = None
            self._running = {stage: spent.settle() for stage, spent in self._running.items()}
        self._begin = self._begin or entry.at
        self._end = entry.at
        self._spend(entry.stage, entry.event)
        self._count(entry.event)

    def _spend(self, stage: str | None, event: Event) -> None:
        before = self._running.get(stage, _NOTHING)
        match event:
            case RunResumed():  # it repeats what stands in the lines before
                return
            case StageFinished():
                self._spent = self._spent.plus(before)
                self._running.pop(stage, None)
                return
            case StageStarted():  # perhaps anew, and with a new agent
                after = before.settle()
            case _:
                after = before.add(event)
        if after is not before:
            self._running[stage] = after

    def _count(self, event: Event) -> None:
        match event:
            case RunStarted(run_id=run_id):
                self._run_id = run_id
            case StageFinished(outcome=outcome):
                self._stages += 1
                self._tasks += isinstance(outcome, dict) and outcome.get("_tag") in _TASKS
            case IterationStart(iteration=iteration):
                self._rounds.add((self._laps, iteration))
            case WatchItemCompleted() | WatchItemRetained() | WatchItemRetry() | WatchItemParked():
                self._laps += 1
            case PlanningStart() | ImplementingStart() | ReviewingStart() | WatchAuditStarted():
                self._agents += 1
            case DeliverSessionStarted(session=session):
                self._rounds.add((self._laps, session))
                self._agents += 1
            case PlanBuildPhaseStarted(iteration=iteration):
                self._rounds.add((self._laps, iteration))
                self._agents += 1
            case CommitSeen(commit_hash=commit_hash, subject=subject):
                self._commits[commit_hash] = subject
            case CommitPerformed(commit_hash=commit_hash, message=message):
                self._commits[commit_hash] = message.strip().partition("\n")[0]
            case _:
                pass

    def result(self) -> RunResumed:
        spent = reduce(Spending.plus, self._running.values(), self._spent)
        return RunResumed(
            run_id=self._run_id,
            stages=self._stages,
            rounds=len(self._rounds),
            tasks=self._tasks,
            agents=self._agents,
            commits=tuple(self._commits.items()),
            cost_usd=spent.cost_usd,
            usage=spent.usage,
            duration=self._before + self._seconds(),
        )

    def _seconds(self) -> float:
        if self._begin is None or self._end is None:
            return 0.0
        return max((self._end - self._begin).total_seconds(), 0.0)


_NOTHING = Spending()
