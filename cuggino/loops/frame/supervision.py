"""The supervision of a run, from its options."""

from __future__ import annotations

from collections.abc import Callable

from cuggino.domain import Budget, Spending
from cuggino.events import RunResumed
from cuggino.loops.frame.options import RunOptions
from cuggino.operators import Ledger, QuotaGate, is_transient
from cuggino.stages import Supervision


def supervision(
    options: RunOptions,
    *,
    gate: QuotaGate,
    ledger: Ledger,
    transient: Callable[[Exception], bool] = is_transient,
) -> Supervision:
    """Return the supervision by the options; all agents of the run share `gate` and `ledger`."""
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
    )


def ledger_of(earlier: RunResumed | None) -> Ledger:
    """Return what earlier processes of a run spent; an empty ledger for a new run."""
    if earlier is None:
        return Ledger()
    return Ledger(spent=Spending().add(earlier), elapsed=earlier.duration)
