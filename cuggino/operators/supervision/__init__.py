"""Limits and retries around agent sessions.

Each operator takes the stream of one agent's events and may be used alone. Together they are
composed from the inside out: `within_quota`, `idle_timeout`, `repetition_limit` and
`stage_timeout`, `retry_session`, `wait_for_quota`, `within_budget`. Then an inner one does not
count the pauses of an outer one as silence.
"""

from cuggino.operators.supervision.budget import Ledger, Look, within_budget
from cuggino.operators.supervision.liveness import (
    Remedies,
    idle_timeout,
    liveness,
    repetition_limit,
    stage_timeout,
)
from cuggino.operators.supervision.quota import (
    QuotaGate,
    QuotaWaiter,
    QuotaWaits,
    wait_for_quota,
)
from cuggino.operators.supervision.quota_plan import within_quota
from cuggino.operators.supervision.retry import (
    RETRIES,
    Retries,
    is_outage,
    is_transient,
    retry_session,
    retrying,
)

__all__ = [
    "RETRIES",
    "Ledger",
    "Look",
    "QuotaGate",
    "QuotaWaiter",
    "QuotaWaits",
    "Remedies",
    "Retries",
    "idle_timeout",
    "is_outage",
    "is_transient",
    "liveness",
    "repetition_limit",
    "retry_session",
    "retrying",
    "stage_timeout",
    "wait_for_quota",
    "within_budget",
    "within_quota",
]
