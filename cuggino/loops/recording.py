"""The journal of a run, as a durable flow's recorder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Protocol

from reactivex import abc

from cuggino.errors import (
    BudgetExceeded,
    CugginoError,
    LoopError,
    QuotaExceeded,
    RunNotResumable,
)
from cuggino.events import (
    DeliverEnded,
    DeliverExit,
    DeliverSessionStarted,
    Event,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    LoopTerminalEvent,
    MessageDelta,
    PingEvent,
    PlanBuildEnded,
    PlanBuildExit,
    RunContinued,
    RunEnded,
    RunState,
    StageFinished,
    StageStarted,
    is_journal_event,
)
from cuggino.operators import Recorded
from cuggino.storage import Journal, JournalFile, encode_outcome, finished_stages

_DELIVERED: dict[DeliverExit, RunState] = {
    "all_passed": "approved",
    "all_verified": "approved",
    "max_iterations": "max_iterations",
    "stalled": "stalled",
    "max_retries_exceeded": "stalled",
    "interrupted": "interrupted",
    "quota_exceeded": "quota",
    "budget_exceeded": "budget",
    "failed": "failed",
}
_BUILT: dict[PlanBuildExit, RunState] = {
    "complete": "approved",
    "planned": "ended",
    "max_iterations": "max_iterations",
    "stalled": "stalled",
    "max_retries_exceeded": "stalled",
    "interrupted": "interrupted",
    "quota_exceeded": "quota",
    "budget_exceeded": "budget",
    "failed": "failed",
}
_STATES: dict[type[Event], RunState] = {
    LoopApproved: "approved",
    LoopSpecIssue: "spec_issue",
    LoopMaxIterations: "max_iterations",
    LoopStalled: "stalled",
}


class Recording:
    """Writes what a durable flow does into its journal, and feeds back what stands there.

    Implements `cuggino.operators.Recorder`. Every entry is flushed before it is acted on.

    Raises:
        StorageError: the journal could not be written.
        RunNotResumable: the recorded stages are not those of this run.
    """

    def __init__(self, journal: Journal, resumed: JournalFile | None = None) -> None:
        self._journal = journal
        self._finished = finished_stages(resumed) if resumed else ()
        self._emitted = 0
        if resumed:
            # An end that is no result is not said again by the run that goes on behind it.
            said = (
                e
                for e in resumed.entries
                if e.stage is None and not is_journal_event(e.event)
                if not isinstance(e.event, DeliverEnded | PlanBuildEnded)
            )
            self._emitted = sum(1 for _ in said)
        self._ordinal = 0
        self._error: Exception | None = None
        self._stage = ""
        self.last: Any = None
        """The last event that was written or sent."""

    @property
    def stages(self) -> int:
        """How many stages need not be run again."""
        return len(self._finished)

    def replay(self, name: str) -> Recorded | None:
        if self._error is not None:
            raise RuntimeError("a durable flow went on after the error of a stage")
        self._ordinal += 1
        if self._ordinal > len(self._finished):
            return None
        finished = self._finished[self._ordinal - 1]
        if finished.name != name:
            raise RunNotResumable(
                f"stage {self._ordinal} of the journal is {finished.name}, but this version of "
                f"the loop has {name} there",
                hint="start the run anew",
            )
        return Recorded(finished.outcome)

    def started(self, name: str, *, at: datetime) -> None:
        self._stage = f"{name}#{self._ordinal}"
        self._journal.append(StageStarted(name=name), at=at, stage=self._stage)

    def event(self, event: Event, *, staged: bool, at: datetime) -> bool:
        self.last = event
        if not staged and self._emitted and not isinstance(event, DeliverEnded | PlanBuildEnded):
            self._emitted -= 1
            # The end is told in any case: who follows the run needs it, and it may not have heard.
            # So is which session runs now, when that is one that begins anew.
            begins_anew = self._ordinal >= len(self._finished)
            return isinstance(event, LoopTerminalEvent) or (
                begins_anew and isinstance(event, DeliverSessionStarted)
            )
        if not isinstance(event, PingEvent | MessageDelta):  # a sign of life says nothing later
            self._journal.append(event, at=at, stage=self._stage if staged else None)
        return True

    def finished(self, outcome: Any, *, at: datetime) -> None:
        entry = StageFinished(outcome=encode_outcome(outcome))
        self._journal.append(entry, at=at, stage=self._stage)

    def failed(self, error: Exception) -> None:
        self._error = error


class HasLast(Protocol):
    """A recorder that knows the last event."""

    last: Any


@contextmanager
def concluded(
    journal: Journal, kept: HasLast, lane: abc.SchedulerBase, resumed: JournalFile | None = None
) -> Iterator[None]:
    """The journal gets its last line when the block is left, and is closed."""

    def end(state: RunState, message: str = "") -> None:
        journal.append(RunEnded(state=state, message=message), at=lane.now)

    try:
        if resumed is not None:
            journal.append(RunContinued(), at=lane.now)
        yield
        end(_state_after(kept.last))
    except Exception as error:
        with suppress(CugginoError):  # the run's own error is the one to tell
            end(state_of(error), error.message if isinstance(error, CugginoError) else repr(error))
        raise
    except BaseException:
        with suppress(CugginoError):
            end("interrupted")
        raise
    finally:
        journal.close()


def _state_after(last: Any) -> RunState:
    if isinstance(last, PlanBuildEnded):
        return _BUILT.get(last.reason, "ended")
    if isinstance(last, DeliverEnded):
        return _DELIVERED.get(last.reason, "ended")
    return _STATES.get(type(last), "ended")


def state_of(error: Exception) -> RunState:
    """How a run that ended with this error is said to have ended."""
    match error.cause if isinstance(error, LoopError) else error:
        case QuotaExceeded():
            return "quota"
        case BudgetExceeded():
            return "budget"
        case _:
            return "failed"
