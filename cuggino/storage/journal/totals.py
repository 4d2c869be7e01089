"""The totals of a run, as a fold over its journal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cuggino.domain import SESSION_BEGINS, Tally
from cuggino.events import RunContinued, RunResumed, RunStarted, StageFinished
from cuggino.storage.journal.reader import Entry, JournalFile

COUNTED = SESSION_BEGINS | {
    "CommitPerformed",
    "CommitSeen",
    "Done",
    "IterationStart",
    "Progress",
    "RunContinued",
    "RunStarted",
    "SessionEnded",
    "StageFinished",
    "StageStarted",
    "UsageUpdate",
    "WatchAuditEnded",
    "WatchAuditFailed",
    "WatchAuditInterrupted",
    "WatchItemCompleted",
    "WatchItemParked",
    "WatchItemRetained",
    "WatchItemRetry",
}
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
        self.tally = Tally()
        """The counts and the spending so far."""
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
        self._begin = self._begin or entry.at
        self._end = entry.at
        self.tally = self.tally.add(entry.event, entry.stage)
        match entry.event:
            case RunStarted(run_id=run_id):
                self._run_id = run_id
            case StageFinished():
                self._stages += 1
            case _:
                pass

    def until(self, at: datetime) -> None:
        """Note the time of an entry that counts for nothing else."""
        self._end = at

    def result(self) -> RunResumed:
        """Return the totals, from which a resumed run continues."""
        spent = self.tally.spent
        return RunResumed(
            run_id=self._run_id,
            stages=self._stages,
            rounds=self.tally.rounds,
            tasks=self.tally.tasks,
            agents=self.tally.agents,
            commits=self.tally.commits,
            cost_usd=spent.cost_usd,
            cost_estimated=spent.cost_estimated,
            usage=spent.usage,
            duration=self._before + self._seconds(),
        )

    def _seconds(self) -> float:
        if self._begin is None or self._end is None:
            return 0.0
        return max((self._end - self._begin).total_seconds(), 0.0)
