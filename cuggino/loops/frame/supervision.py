"""The supervision of a run, from its options."""

from __future__ import annotations

from collections.abc import Callable

from cuggino.domain import Budget, Spending
from cuggino.events import (
    AgentFellBack,
    AgentRetry,
    QuotaLifted,
    QuotaWaiting,
    RunEnded,
    RunResumed,
    StageFinished,
    StageStarted,
)
from cuggino.loops.frame.options import RunOptions
from cuggino.operators import Ledger, QuotaGate, is_transient
from cuggino.stages import Earlier, Supervision
from cuggino.storage import JournalFile

_COUNTED = (
    *("AgentFellBack", "AgentRetry", "QuotaLifted", "QuotaWaiting"),
    *("RunEnded", "StageFinished", "StageStarted"),
)
"""The tags of the events that `earlier_counts` needs."""


def supervision(
    options: RunOptions,
    *,
    gate: QuotaGate,
    ledger: Ledger,
    earlier: Earlier,
    transient: Callable[[Exception], bool] = is_transient,
) -> Supervision:
    """Return the supervision by the options; all agents of the run share `gate` and `ledger`.

    `earlier` has the counts of a resumed run's unfinished stage.
    """
    return Supervision(
        max_retries=options.max_retries,
        retry_pause=options.retry_pause,
        transient=transient,
        wait_for_quota=options.wait_for_quota,
        quota_margin=options.quota_margin,
        max_quota_waits=options.max_quota_waits,
        max_quota_wait=options.max_quota_wait,
        idle_timeout=options.idle_timeout,
        tool_timeout=options.tool_timeout,
        stage_timeout=options.stage_timeout,
        repetition_limit=options.repetition_limit,
        budget=Budget(
            cost_usd=options.budget, tokens=options.max_tokens, duration=options.max_duration
        ),
        ledger=ledger,
        gate=gate,
        earlier=earlier,
    )


def ledger_of(earlier: RunResumed | None) -> Ledger:
    """Return a ledger with the costs of a run's earlier processes; empty for a new run."""
    if earlier is None:
        return Ledger()
    return Ledger(spent=Spending().add(earlier), elapsed=earlier.duration)


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
