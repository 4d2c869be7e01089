"""The spending of agents, as a fold over their events, and the budget that limits it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, reduce
from typing import NamedTuple, assert_never

from cuggino.domain.money import money
from cuggino.domain.prices import TokenCount, count_tokens
from cuggino.errors import BudgetExceeded
from cuggino.events import (
    BudgetKind,
    BudgetWarning,
    CostUnknown,
    Event,
    RunResumed,
    SessionEnded,
    Usage,
    UsageUpdate,
)

SESSION_BEGINS = frozenset(
    {
        "AgentFellBack",
        "AgentNudged",
        "AgentReplaced",
        "AgentRetry",
        "ApprovalQuestioned",
        "DeliverSessionStarted",
        "ImplementingStart",
        "PlanBuildPhaseStarted",
        "PlanningStart",
        "QuotaWaiting",
        "ReviewingStart",
        "RoleViolated",
        "WaitingRefused",
        "WaitingStarted",
        "WatchAuditStarted",
    }
)
"""The tags of events that announce the next agent session; one still running was cut off."""

_SESSION_IS_OVER = SESSION_BEGINS | {
    "RunContinued",
    "WatchAuditEnded",
    "WatchAuditFailed",
    "WatchAuditInterrupted",
}

_COUNTED = _SESSION_IS_OVER | {"UsageUpdate", "SessionEnded", "RunResumed"}


def begins_session(event: Event) -> bool:
    """Return whether the event announces the next agent session."""
    return _is_any(type(event), SESSION_BEGINS)


@cache
def _is_any(cls: type[Event], tags: frozenset[str]) -> bool:
    """Return whether events of this class have one of the tags, without loading other classes."""
    return any(base.__name__ in tags for base in cls.__mro__)


@dataclass(frozen=True, slots=True)
class Spending:
    """Money and tokens of the sessions whose events were added.

    The running session counts with its last `UsageUpdate`, its total so far, until its
    `SessionEnded` replaces that where it reports cost and usage. A session that is cut off, without
    `SessionEnded`, keeps its last `UsageUpdate`; the next session shows by an event that announces
    it, or by lower counts. One session of an item, and one without an item, run at a time: fold the
    events of other parallel agents into a `Spending` each, and add them with `plus`.

    `RunResumed` replaces everything before it with the totals of the run's earlier processes.
    """

    settled_usd: float | None = None
    """US dollars of the sessions that have ended."""
    settled_estimated: bool = False
    """True if a part of these is an estimate."""
    settled_usage: Usage | None = None
    settled_sessions: int = 0
    settled_partial: bool = False
    """True if one of these had tokens whose price is unknown."""
    running: UsageUpdate | None = None
    """The last update of the running session; None before its first."""
    of_items: tuple[UsageUpdate, ...] = ()
    """The last updates of the sessions that run for items of a watch with several slots."""

    @classmethod
    def of(cls, events: Iterable[Event]) -> Spending:
        """Return the spending of the sessions of these events."""
        return reduce(cls.add, events, cls())

    @property
    def cost_usd(self) -> float | None:
        """US dollars so far, including the running session; None if none were reported."""
        return self.settle().settled_usd

    @property
    def cost_estimated(self) -> bool:
        """True if a part of the dollars is an estimate."""
        return self.settle().settled_estimated

    @property
    def cost_partial(self) -> bool:
        """True if some of the tokens are not in the dollars, as their price is unknown."""
        return self.settle().settled_partial

    @property
    def usage(self) -> Usage | None:
        """Tokens so far, including the running session; None if none were reported."""
        return self.settle().settled_usage

    @property
    def sessions(self) -> int:
        """Sessions that reported usage or ended."""
        return self.settle().settled_sessions

    def tokens(self, count: TokenCount) -> int:
        """Return the tokens so far, as a limit with this count counts them."""
        return count_tokens(self.usage, count)

    @property
    def total_tokens(self) -> int:
        """Return input, output and cache writes: every token once, without cache reads.

        Each turn reads the whole conversation from the cache, so that cache reads grow with the
        square of the turns and would dominate. Their number is in `usage`.
        """
        return self.tokens("plain")

    def add(self, event: Event) -> Spending:
        """Return the spending with one more event; the same value if the event does not count."""
        if not _is_any(type(event), _COUNTED):
            return self
        if event.item is not None:
            return self._add_of(event.item, event)
        if type(event).__name__ == "RunContinued":
            return self.settle()._add(event)
        if self.of_items and not isinstance(event, RunResumed):
            return replace(replace(self, of_items=())._add(event), of_items=self.of_items)
        return self._add(event)

    def _add_of(self, item: str, event: Event) -> Spending:
        """Return the spending with one more event of the session of an item."""
        if isinstance(event, RunResumed):
            return self  # the cost of earlier processes is not that of this one
        running = next((one for one in self.of_items if one.item == item), None)
        alone = replace(self, running=running, of_items=())._add(event)
        others = tuple(one for one in self.of_items if one is not running)
        return replace(
            alone,
            running=self.running,
            of_items=others if alone.running is None else (*others, alone.running),
        )

    def _add(self, event: Event) -> Spending:
        match event:
            case _ if _is_any(type(event), _SESSION_IS_OVER):
                return self.settle()
            case UsageUpdate():
                was = self.settle() if self._is_of_another_session(event) else self
                return replace(was, running=event)
            case SessionEnded(usage=usage):
                seen = self.running
                paid = seen if event.cost_usd is None and seen is not None else event
                return Spending(
                    added_cost(self.settled_usd, paid.cost_usd),
                    self.settled_estimated or paid.cost_estimated,
                    added_usage(self.settled_usage, usage or (seen.usage if seen else None)),
                    self.settled_sessions + 1,
                    self.settled_partial or (paid.usage is not None and paid.cost_usd is None),
                )
            case RunResumed(cost_usd=cost, usage=usage, agents=agents):
                return Spending(cost, event.cost_estimated, usage, max(agents, self.sessions))
            case _:
                return self.settle()

    def settle(self) -> Spending:
        """Return the spending after running sessions were cut off; their last updates are final."""
        spent = replace(self, running=None, of_items=()) if self.of_items else self
        for update in (self.running, *self.of_items):
            if update is not None:
                spent = Spending(
                    added_cost(spent.settled_usd, update.cost_usd),
                    spent.settled_estimated or update.cost_estimated,
                    added_usage(spent.settled_usage, update.usage),
                    spent.settled_sessions + 1,
                    spent.settled_partial or update.cost_usd is None,
                )
        return spent

    def plus(self, other: Spending) -> Spending:
        """Return the sum of both, as ended sessions."""
        mine, others = self.settle(), other.settle()
        if others == _NONE:
            return mine
        return Spending(
            added_cost(mine.settled_usd, others.settled_usd),
            mine.settled_estimated or others.settled_estimated,
            added_usage(mine.settled_usage, others.settled_usage),
            mine.settled_sessions + others.settled_sessions,
            mine.settled_partial or others.settled_partial,
        )

    def _is_of_another_session(self, update: UsageUpdate) -> bool:
        """Return whether the update is below the last one; a session's totals never fall."""
        if self.running is None:
            return False
        was, now = self.running.usage, update.usage
        if (
            now.input_tokens < was.input_tokens
            or now.output_tokens < was.output_tokens
            or now.cache_read_tokens < was.cache_read_tokens
            or now.cache_creation_tokens < was.cache_creation_tokens
        ):
            return True
        if self.running.cost_estimated or update.cost_estimated:
            return False  # an estimate falls with a cheaper model
        cost = self.running.cost_usd
        return cost is not None and update.cost_usd is not None and update.cost_usd < cost


_NONE = Spending()


class BudgetLevel(NamedTuple):
    """The used part of one budget: US dollars, tokens or seconds."""

    kind: BudgetKind
    spent: float
    limit: float
    estimated: bool = False
    """True if a part of the dollars is an estimate."""
    count_tokens: TokenCount = "plain"
    """How the tokens were counted."""

    @classmethod
    def of(cls, warning: BudgetWarning) -> BudgetLevel:
        """Return the level that an event reports."""
        return cls(
            warning.budget, warning.spent, warning.limit, warning.estimated, warning.count_tokens
        )

    @property
    def share(self) -> str:
        """The used part and the limit, such as `~$4.10 of $5.00` or `90 of 100 weighted tokens`."""
        match self.kind:
            case "cost":
                spent = money(self.spent, estimated=self.estimated)
                return f"{spent} of {money(self.limit)}"
            case "tokens":
                weighted = "weighted " if self.count_tokens == "weighted" else ""
                return f"{self.spent:,.0f} of {self.limit:,.0f} {weighted}tokens"
            case "duration":
                return f"{_time(self.spent)} of {_time(self.limit)}"
            case _:
                assert_never(self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits for all agents of a run together; None means no limit."""

    cost_usd: float | None = None
    tokens: int | None = None
    count_tokens: TokenCount = "weighted"
    """How `tokens` are counted; see `count_tokens`."""
    duration: float | None = None
    """Seconds, waits included."""

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit."""
        return (self.cost_usd, self.tokens, self.duration) != (None, None, None)

    def levels(self, spent: Spending, elapsed: float) -> list[BudgetLevel]:
        """Return the level of each limit after `elapsed` seconds."""
        levels: list[BudgetLevel] = []
        if self.cost_usd is not None:
            dollars, estimated = spent.cost_usd or 0.0, spent.cost_estimated
            levels.append(BudgetLevel("cost", dollars, self.cost_usd, estimated))
        if self.tokens is not None:
            used = spent.tokens(self.count_tokens)
            levels.append(BudgetLevel("tokens", used, self.tokens, count_tokens=self.count_tokens))
        if self.duration is not None:
            levels.append(BudgetLevel("duration", elapsed, self.duration))
        return levels


_NAMES: dict[BudgetKind, tuple[str, str]] = {
    "cost": ("budget", "--budget"),
    "tokens": ("token budget", "--max-tokens"),
    "duration": ("time budget", "--max-duration"),
}


def budget_exceeded(level: BudgetLevel) -> BudgetExceeded:
    """Return the error for a budget that is used up, with advice."""
    budget, option = _NAMES[level.kind]
    return BudgetExceeded(
        f"The {budget} of the run is used up: {level.share} spent",
        hint=f"resume with a larger `{option}`",
    )


def budget_unenforceable(unknown: CostUnknown, limit: float) -> BudgetExceeded:
    """Return the error for a budget in dollars that cannot limit a session of unknown cost."""
    hint = PRICE_HINT
    if unknown.reports == "nothing":
        hint = "use another agent, or limit the run with `--max-duration` instead of `--budget`"
    why = cost_unknown(unknown)
    return BudgetExceeded(f"The budget of {money(limit)} cannot hold: {why}", hint=hint)


def cost_unknown(unknown: CostUnknown) -> str:
    """Return why the cost is unknown."""
    if unknown.reports == "nothing":
        return f"{unknown.agent} reports neither dollars nor tokens"
    model = f'its model "{unknown.model}"' if unknown.model else "its model"
    return f"{unknown.agent} reports no dollars, and the price of {model} is unknown"


PRICE_HINT = (
    "name a model that costs about the same, such as `--price-as claude-sonnet-4-5` (priceAs in "
    ".cuggino.json), or limit the run with `--max-tokens` instead of `--budget`"
)
"""What to do about a model without a known price."""


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60.0 else str(timedelta(seconds=round(seconds)))


def added_cost(one: float | None, other: float | None) -> float | None:
    """Return the sum of two costs; one that is None is unknown."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


def added_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum of two usages; one that is None is unknown."""
    if one is None or other is None:
        return one or other
    return Usage(**{name: count + getattr(other, name) for name, count in one})
