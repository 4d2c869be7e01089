"""The decision after each session of a deliver loop: continue, wait or terminate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal, get_args

from cuggino.domain.deliverables import Deliverables, Verification
from cuggino.domain.quota import QUOTA_SCHEDULE
from cuggino.events import SessionOutcome

ExitReason = Literal[
    "interrupted",
    "quota_exceeded",
    "all_verified",
    "all_passed",
    "all_blocked",
    "budget_exceeded",
    "max_iterations",
    "max_retries_exceeded",
]
"""The reason for the end of a loop (AUT-036), and the name of the rule that finds it."""

ORDER: tuple[ExitReason, ...] = get_args(ExitReason)
"""The order of the rules: an interruption by a person comes first (AUT-050)."""

SUCCESSES: frozenset[ExitReason] = frozenset({"all_passed", "all_verified"})
"""The reasons with which the loop has reached its goal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverProgress:
    """The state after a session, or before the first."""

    outcome: SessionOutcome | None = None
    """The outcome of the last session; None before the first."""
    interrupted: bool = False
    """A person asked the loop to stop."""
    deliverables: Deliverables | None = None
    """None if unknown, as after a crashed session; then they decide nothing (AUT-058)."""
    iterations: int = 0
    """Sessions so far, including failed ones, excluding those ended by a usage limit."""
    max_iterations: int | None = None
    """None means no limit."""
    consecutive_errors: int = 0
    """Failed sessions in a row (AUT-056, AUT-057, AUT-062)."""
    max_retries: int = 3
    """Failed sessions in a row that are retried; one more ends the loop."""
    has_budget: bool = False
    """Sessions have a budget of cuggino's, which the next one would exceed, too (AUT-056)."""
    wait_for_quota: bool = False
    quota_reset_time: datetime | None = None
    """When the usage limit is lifted, if the agent reported it."""
    waited_until: datetime | None = None
    """The reset time of the last wait; if it is reported again, it is ignored (AUT-080)."""
    quota_pauses: int = 0
    """Scheduled pauses since the last session without a usage limit."""
    now: datetime | None = None
    """Required for a wait until a known time."""
    sync: bool = False
    """Deliverables are verified, not implemented: `verification` decides instead of their status.
    """
    verification: Verification | None = None
    """None before the end of the first session."""


@dataclass(frozen=True, slots=True)
class Continue:
    """The decision to start one more session."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """The decision to end the loop."""

    reason: ExitReason

    @property
    def success(self) -> bool:
        """Return whether the loop has reached its goal."""
        return self.reason in SUCCESSES


@dataclass(frozen=True, slots=True)
class Wait:
    """The decision to wait for a usage limit, then start one more session."""

    seconds: float
    """From now, without a margin."""
    until: datetime | None = None
    """When the limit is lifted; None if unknown, for a scheduled pause (AUT-054)."""


Decision = Continue | Terminate | Wait


def decide_delivery(picture: DeliverProgress, *, order: Sequence[ExitReason] = ORDER) -> Decision:
    """Return the decision of the first rule that applies, or `Continue`."""
    for name in order:
        decision = RULES[name](picture)
        if decision is not None:
            return decision
    return Continue()


def _quota(picture: DeliverProgress) -> Decision | None:
    """Terminate at a usage limit, or wait: until the reported time, else by the schedule."""
    if picture.outcome != "quota":
        return None
    if not picture.wait_for_quota:
        return Terminate("quota_exceeded")
    until = picture.quota_reset_time
    if until is not None and until != picture.waited_until and picture.now is not None:
        return Wait(max(0.0, (until - picture.now).total_seconds()), until)
    pause = QUOTA_SCHEDULE.delay(picture.quota_pauses)
    return Terminate("quota_exceeded") if pause is None else Wait(pause)


def _has_passed(picture: DeliverProgress) -> bool:
    known = picture.deliverables
    return not picture.sync and known is not None and known.all_achievable_passed


def _is_blocked(picture: DeliverProgress) -> bool:
    known = picture.deliverables
    return not picture.sync and known is not None and known.all_blocked


def _is_verified(picture: DeliverProgress) -> bool:
    known = picture.verification
    return picture.sync and known is not None and known.is_complete


def _is_at_limit(picture: DeliverProgress) -> bool:
    return picture.max_iterations is not None and picture.iterations >= picture.max_iterations


def _ends(reason: ExitReason, holds: Callable[[DeliverProgress], bool]) -> Rule:
    return lambda picture: Terminate(reason) if holds(picture) else None


Rule = Callable[[DeliverProgress], Decision | None]

RULES: Mapping[ExitReason, Rule] = MappingProxyType(
    {
        "interrupted": _ends("interrupted", lambda p: p.interrupted),
        "quota_exceeded": _quota,
        "all_verified": _ends("all_verified", _is_verified),
        "all_passed": _ends("all_passed", _has_passed),
        "all_blocked": _ends("all_blocked", _is_blocked),
        "budget_exceeded": _ends(
            "budget_exceeded", lambda p: p.has_budget and p.outcome == "budget"
        ),
        "max_iterations": _ends("max_iterations", _is_at_limit),
        "max_retries_exceeded": _ends(
            "max_retries_exceeded", lambda p: p.consecutive_errors > p.max_retries
        ),
    }
)
"""The rules by name; only `quota_exceeded` may also answer with `Wait`."""
