"""The costs and counts that a resumed run continues."""

from __future__ import annotations

from cuggino.domain import Decision, Spending
from cuggino.events import (
    AgentFellBack,
    AgentRetry,
    PersonAnswers,
    QuotaLifted,
    QuotaWaiting,
    RunEnded,
    RunResumed,
    StageFinished,
    StageStarted,
    WaitingEnded,
)
from cuggino.operators.supervision import Ledger
from cuggino.stages import Earlier
from cuggino.storage import JournalFile

_COUNTED = (
    *("AgentFellBack", "AgentRetry", "QuotaLifted", "QuotaWaiting"),
    *("RunEnded", "StageFinished", "StageStarted"),
)
"""The tags of the events that `earlier_counts` needs."""


def ledger_of(earlier: RunResumed | None, resumed: JournalFile | None = None) -> Ledger:
    """Return a ledger with the costs of a run's earlier processes; empty for a new run."""
    if earlier is None:
        return Ledger()
    waits = resumed.entries.only(("WaitingEnded",)) if resumed is not None else ()
    approved = [
        entry.event.until.approves
        for entry in waits
        if isinstance(entry.event, WaitingEnded) and isinstance(entry.event.until, PersonAnswers)
        if Decision.of(entry.event).outcome == "approved"
    ]
    return Ledger(spent=Spending().add(earlier), elapsed=earlier.duration, approved=approved)


def earlier_counts(resumed: JournalFile | None) -> Earlier:
    """Return the retries and waits of the stage at which a process was killed or interrupted.

    They are zero if the run ended in another way: a person resumes it to try again.
    """
    found, stage, waiting = Earlier(), "", None
    for entry in resumed.entries.only(_COUNTED) if resumed is not None else ():
        match entry.event:
            case StageStarted() if entry.stage == stage:
                waiting = None  # restarted by another process
            case StageStarted():
                found, stage, waiting = Earlier(), entry.stage or "", None
            case StageFinished():
                found, stage = Earlier(), ""
            case RunEnded(state=state) if state != "interrupted":
                found, stage = Earlier(), ""
            case AgentRetry(attempt=attempt):
                found.retries = attempt
            case AgentFellBack():
                found.retries = 0
            case QuotaWaiting():
                if waiting is not None:
                    found.waited += (entry.at - waiting).total_seconds()
                waiting = entry.at
            case QuotaLifted():
                if waiting is not None:
                    found.waited += (entry.at - waiting).total_seconds()
                found.waits += 1
                waiting = None
            case _:
                pass
    return found
