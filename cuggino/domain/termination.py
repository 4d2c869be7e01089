"""Whether a deliverables loop goes on, waits or ends: ordered rules over a picture of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from cuggino.domain.deliverables import Deliverables, Verification
from cuggino.domain.quota import quota_pause

if TYPE_CHECKING:
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
"""Why a loop ended (AUT-036); each is also the name of the rule that finds it."""

ORDER: tuple[ExitReason, ...] = (
    "interrupted",
    "quota_exceeded",
    "all_verified",
    "all_passed",
    "all_blocked",
    "budget_exceeded",
    "max_iterations",
    "max_retries_exceeded",
)
"""The order in which the rules are asked: a person who interrupts comes first (AUT-050)."""

SEED_ORDER: tuple[ExitReason, ...] = (
    "quota_exceeded",
    "all_verified",
    "all_passed",
    "all_blocked",
    "budget_exceeded",
    "max_iterations",
    "interrupted",
    "max_retries_exceeded",
)
"""The order of the seed, in which an interruption is the fifth of its conditions."""

SUCCESSES: frozenset[ExitReason] = frozenset({"all_passed", "all_verified"})
"""The endings with which the loop has reached what it is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPicture:
    """What is known after a session, or before the first."""

    outcome: SessionOutcome | None = None
    """How the last session ended; None when there was none."""
    interrupted: bool = False
    """A person asked the loop to stop."""
    deliverables: Deliverables | None = None
    """None when unknown, as after a session that crashed: then they decide nothing (AUT-058)."""
    iterations: int = 0
    """Sessions so far, failed ones too, without those that a usage limit ended."""
    max_iterations: int | None = None
    """None for no limit."""
    consecutive_errors: int = 0
    """Failed sessions in a row (AUT-056, AUT-057, AUT-062)."""
    max_retries: int = 3
    """The failed sessions in a row that are borne: one more ends the loop."""
    has_budget: bool = False
    """Sessions have a budget of ours, so that the next one would exceed it too (AUT-056)."""
    wait_for_quota: bool = False
    quota_reset_time: datetime | None = None
    """When the usage limit is lifted, if the agent said so."""
    waited_until: datetime | None = None
    """The reset time that was waited for last: said again, it is not believed (AUT-080)."""
    quota_pauses: int = 0
    """Pauses of a guessed length since the last session that met no usage limit."""
    now: datetime | None = None
    """Needed for a wait until a known time."""
    sync: bool = False
    """Deliverables are verified, not made: `verification` decides in place of their status."""
    verification: Verification | None = None
    """None when there is none yet, as before the end of the first session."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """One more session."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """The loop ends."""

    reason: ExitReason

    @property
    def success(self) -> bool:
        """Whether the loop has reached what it is for."""
        return self.reason in SUCCESSES


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause for a usage limit, then one more session."""

    seconds: float
    """From now on, without any margin."""
    until: datetime | None = None
    """When the limit is lifted; None when that is unknown and the pause is a guess (AUT-054)."""


Decision = GoOn | Terminate | Wait


def decide(picture: LoopPicture, *, order: Sequence[ExitReason] = ORDER) -> Decision:
    """What the first rule says that has something to say; else go on (AUT-050 to AUT-058)."""
    for name in order:
        decision = RULES[name](picture)
        if decision is not None:
            return decision
    return GoOn()


def _quota(picture: LoopPicture) -> Decision | None:
    """A usage limit ends the loop, unless it may wait: until the time said, else ever longer."""
    if picture.outcome != "quota":
        return None
    if not picture.wait_for_quota:
        return Terminate("quota_exceeded")
    until = picture.quota_reset_time
    if until is not None and until != picture.waited_until and picture.now is not None:
        return Wait(max(0.0, (until - picture.now).total_seconds()), until)
    pause = quota_pause(picture.quota_pauses)
    return Terminate("quota_exceeded") if pause is None else Wait(pause)


def _has_passed(picture: LoopPicture) -> bool:
    known = picture.deliverables
    return not picture.sync and known is not None and known.all_achievable_passed


def _is_blocked(picture: LoopPicture) -> bool:
    known = picture.deliverables
    return not picture.sync and known is not None and known.all_blocked


def _is_verified(picture: LoopPicture) -> bool:
    known = picture.verification
    return picture.sync and known is not None and known.is_complete


def _is_at_limit(picture: LoopPicture) -> bool:
    return picture.max_iterations is not None and picture.iterations >= picture.max_iterations


def _ends(reason: ExitReason, holds: Callable[[LoopPicture], bool]) -> Rule:
    return lambda picture: Terminate(reason) if holds(picture) else None


Rule = Callable[[LoopPicture], Decision | None]

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
"""The rules by name; only `quota_exceeded` may also answer with a wait."""
