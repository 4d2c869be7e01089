"""What agents took, as a fold over their events, and the budget that limits it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, reduce
from typing import NamedTuple, assert_never

from cuggino.errors import BudgetExceeded
from cuggino.events import (
    AgentFellBack,
    AgentNudged,
    AgentReplaced,
    AgentRetry,
    BudgetKind,
    DeliverSessionStarted,
    Event,
    ImplementingStart,
    PlanBuildPhaseStarted,
    PlanningStart,
    QuotaWaiting,
    ReviewingStart,
    RunContinued,
    RunResumed,
    SessionEnded,
    Usage,
    UsageUpdate,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditInterrupted,
    WatchAuditStarted,
)

SESSION_BEGINS = (
    AgentFellBack,
    AgentNudged,
    AgentReplaced,
    AgentRetry,
    DeliverSessionStarted,
    ImplementingStart,
    PlanBuildPhaseStarted,
    PlanningStart,
    QuotaWaiting,
    ReviewingStart,
    WatchAuditStarted,
)
"""Events after which another agent session begins; one that had not ended by then was cut."""

_SESSION_IS_OVER = (
    *SESSION_BEGINS,
    RunContinued,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditInterrupted,
)


@cache
def _counts(cls: type[Event]) -> bool:
    """Whether events of this class count; asked for each of very many that do not."""
    return issubclass(cls, (UsageUpdate, SessionEnded, RunResumed, *_SESSION_IS_OVER))


@dataclass(frozen=True, slots=True)
class Spending:
    """Money and tokens of the sessions whose events were added; a new value when one counts.

    The running session counts with its last `UsageUpdate`, which tells its total so far. Its
    `SessionEnded` replaces that, as far as it tells cost and usage. A session that is cut, and
    so ends without `SessionEnded`, keeps its last `UsageUpdate`: the next session shows by an
    event that announces it, or by counts that are lower than before. One session runs at a time;
    the events of agents that run side by side belong into a `Spending` each, added with `plus`.

    `RunResumed` brings what the earlier processes of the run came to, in place of all before it.
    """

    settled_usd: float | None = None
    """US dollars of the sessions that are over."""
    settled_usage: Usage | None = None
    settled_sessions: int = 0
    running: UsageUpdate | None = None
    """The last update of the session that runs, None before its first."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> Spending:
        """What the sessions of these events took."""
        return reduce(cls.add, events, cls())

    @property
    def cost_usd(self) -> float | None:
        """US dollars so far, those of the running session included; None when none was told."""
        return _sum(self.settled_usd, self.running.cost_usd if self.running else None)

    @property
    def usage(self) -> Usage | None:
        """Tokens so far, those of the running session included; None when none were told."""
        return _together(self.settled_usage, self.running.usage if self.running else None)

    @property
    def sessions(self) -> int:
        """Sessions that said anything about what they took, or how they ended."""
        return self.settled_sessions + (self.running is not None)

    @property
    def total_tokens(self) -> int:
        """What a limit on tokens counts: input, output and what was written to the cache.

        That is every token once: when the model first reads or writes it. Reads from the cache
        are not counted. Each turn reads the whole conversation so far from it again, at a tenth
        of the price, so that they grow with the square of the turns and would soon be all that is
        counted; what they cost is in `cost_usd`. They are in `usage`.
        """
        usage = self.usage
        if usage is None:
            return 0
        return usage.input_tokens + usage.output_tokens + usage.cache_creation_tokens

    def add(self, event: Event) -> Spending:
        """The spending with one more event; the same value when the event counts nothing."""
        if not _counts(type(event)):
            return self
        match event:
            case UsageUpdate():
                before = self.settle() if self._is_of_another_session(event) else self
                return replace(before, running=event)
            case SessionEnded(cost_usd=cost, usage=usage):
                seen = self.running
                return Spending(
                    _sum(self.settled_usd, cost if cost is not None or not seen else seen.cost_usd),
                    _together(self.settled_usage, usage or (seen.usage if seen else None)),
                    self.settled_sessions + 1,
                )
            case RunResumed(cost_usd=cost, usage=usage, agents=agents):
                return Spending(cost, usage, max(agents, self.sessions))
            case _ if isinstance(event, _SESSION_IS_OVER):
                return self.settle()
            case _:
                return self

    def settle(self) -> Spending:
        """The spending when the running session was cut: its last update is what it took."""
        if self.running is None:
            return self
        return Spending(self.cost_usd, self.usage, self.sessions)

    def plus(self, other: Spending) -> Spending:
        """Both together, as sessions that are over."""
        return Spending(
            _sum(self.cost_usd, other.cost_usd),
            _together(self.usage, other.usage),
            self.sessions + other.sessions,
        )

    def _is_of_another_session(self, update: UsageUpdate) -> bool:
        """True when the update is below the last one: a session's totals never fall."""
        if self.running is None:
            return False
        was, now = self.running, update
        if any(count < getattr(was.usage, name) for name, count in now.usage):
            return True
        return was.cost_usd is not None and now.cost_usd is not None and now.cost_usd < was.cost_usd


class Level(NamedTuple):
    """How much of one budget is spent: US dollars, tokens or seconds."""

    kind: BudgetKind
    spent: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What all agents of a run may take together; None means no limit."""

    cost_usd: float | None = None
    tokens: int | None = None
    """As `Spending.total_tokens` counts them: without reads from the cache."""
    duration: float | None = None
    """Seconds, all waiting included."""

    def levels(self, spent: Spending, elapsed: float) -> list[Level]:
        """The level of each limit that there is, after `elapsed` seconds."""
        levels: list[Level] = []
        if self.cost_usd is not None:
            levels.append(Level("cost", spent.cost_usd or 0.0, self.cost_usd))
        if self.tokens is not None:
            levels.append(Level("tokens", spent.total_tokens, self.tokens))
        if self.duration is not None:
            levels.append(Level("duration", elapsed, self.duration))
        return levels


_OPTION: dict[BudgetKind, str] = {
    "cost": "--budget",
    "tokens": "--max-tokens",
    "duration": "--max-duration",
}


def exceeded(level: Level) -> BudgetExceeded:
    """The error of a budget that is used up: which, how much of it, and what to do about it."""
    match level.kind:
        case "cost":
            budget, spent, limit = "budget", _dollars(level.spent), _dollars(level.limit)
        case "tokens":
            budget, spent, limit = "token budget", f"{level.spent:,.0f}", f"{level.limit:,.0f}"
        case "duration":
            budget, spent, limit = "time budget", _time(level.spent), _time(level.limit)
        case _:
            assert_never(level.kind)
    return BudgetExceeded(
        f"The {budget} of the run is used up: {spent} of {limit} spent",
        hint=f"go on with a larger `{_OPTION[level.kind]}`",
    )


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 1.0 else f"${amount:.4f}"


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60.0 else str(timedelta(seconds=round(seconds)))


def _sum(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _together(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    return Usage(**{name: count + getattr(other, name) for name, count in one})
