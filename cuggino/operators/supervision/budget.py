"""`within_budget`: stop agents when the money, tokens or time of a run are used up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, SingleAssignmentDisposable

from cuggino.domain import (
    Budget,
    BudgetLevel,
    Spending,
    begins_session,
    budget_exceeded,
    budget_unenforceable,
)
from cuggino.errors import BudgetExceeded
from cuggino.events import (
    BudgetKind,
    BudgetWarning,
    CostUnknown,
    Event,
    LlmAgentEvent,
    RunResumed,
    SessionEnded,
    UsageUpdate,
)
from cuggino.operators.managed import Held, released
from cuggino.operators.scheduler import serial

__all__ = ["Budget", "Ledger", "within_budget"]

T = TypeVar("T")

Look: TypeAlias = Callable[[Any], Iterable[Any] | None]
"""Examines an event and returns the events to emit before it, if any."""


class Ledger:
    """The spending of a run so far, shared by all its streams.

    A resumed run passes the spending and the seconds of its earlier processes, so `RunResumed` is
    not counted again. An event must reach a ledger only once: nested `within_budget` operators
    need a ledger each. All streams must be on one thread.
    """

    def __init__(
        self,
        spent: Spending | None = None,
        *,
        elapsed: float = 0.0,
        approved: Iterable[str] = (),
    ) -> None:
        self._settled = spent or Spending()
        self._elapsed = elapsed
        self._started: datetime | None = None
        self._accounts: list[_Account] = []
        self._warned: set[BudgetKind] = set()
        self._unknown: CostUnknown | None = None
        self.approved = {*approved}
        """The sums, such as `spend:20`, beyond which a person lets the run go on."""
        self.asked: dict[str, str] = {}
        """The questions about sums: the items of a watch that reach one share its question."""

    @property
    def spent(self) -> Spending:
        """Money and tokens of all streams so far, running sessions included."""
        spent = self._settled
        for account in self._accounts:
            spent = spent.plus(account.spent)
        return spent

    def start(self, now: datetime) -> None:
        """Start the clock unless it runs; the first subscription does this."""
        if self._started is None:
            self._started = now

    def elapsed(self, now: datetime) -> float:
        """Return the seconds that the run has taken."""
        began = self._started or now
        return self._elapsed + (now - began).total_seconds()

    def remaining_usd(self, budget: Budget) -> float | None:
        """Return the US dollars that may still be spent, at least 0; None without a limit.

        Use it for the agent's own limit (`SpawnOptions.max_budget_usd`): only that limit can stop a
        running agent that reports its cost at the end.
        """
        if budget.cost_usd is None:
            return None
        return max(0.0, budget.cost_usd - (self.spent.cost_usd or 0.0))

    def _levels(self, budget: Budget, lane: abc.SchedulerBase) -> list[BudgetLevel]:
        return budget.levels(self.spent, self.elapsed(lane.now)) if budget.is_limited else []

    def _escaped(self, budget: Budget) -> BudgetExceeded | None:
        """Return the error for a session that a budget in dollars cannot limit, or None."""
        if budget.cost_usd is None or self._unknown is None:
            return None
        return budget_unenforceable(self._unknown, budget.cost_usd)

    def _settle(self, account: _Account) -> None:
        if account in self._accounts:
            self._accounts.remove(account)
            self._settled = self._settled.plus(account.spent)


def within_budget(
    budget: Budget,
    *,
    ledger: Ledger | None = None,
    warn_at: float = 0.8,
    looks: Sequence[Look] = (),
) -> Callable[[Observable[T]], Observable[T | BudgetWarning]]:
    """Pass the source on while the budget lasts; then release it and fail.

    ::

        source:             a--u--v----     u, v: UsageUpdate; with v the budget is overdrawn
        within_budget:      a--(Wu)--(v#)   W: BudgetWarning; # comes when the source is released

        source:             a--e--d|        e: SessionEnded that overdraws it, d: its Done
        within_budget:      a--(We)--d|     the session had ended: its outcome counts
        next stage:         #               is not subscribed

    Money and tokens are added from `UsageUpdate` and `SessionEnded` to the ledger, which all
    streams of a run share (by default each subscription has its own). The budget applies twice:

    - *In flight*: when a `UsageUpdate` takes the ledger above the limit, that session and every
      running session of the other streams are released. Exactly the limit is allowed. A session
      that has ended is never cut, so its outcome is not lost.
    - *At the start*: when the limit is reached, nothing more begins. A subscription fails at once
      without subscribing the source; a stream of several sessions fails at the first event of the
      next one, or at an event that announces it (`PlanningStart`, `AgentRetry`, ...).

    Time counts from the ledger's start; when it is up, the stream is cut at that exact second. At
    `warn_at` of a limit `BudgetWarning` is emitted, once for each kind and ledger, right before the
    event that reached it, so that the source's last event stays the last. The event that causes the
    cut is passed on.

    A budget in dollars cannot hold for a session of unknown cost: after `CostUnknown` the ledger
    counts as overdrawn.

    Each of `looks` is called with every event before it is passed on, and what it returns is
    emitted before it. So other policies need no observer of their own.

    Errors: `BudgetExceeded`, after the release of the source; the agent's own `BudgetExceeded`
    becomes the run's if it has used up the run's budget. (RxPY's `take_while` ends before its
    source is released, and ends one stream.)
    """

    def operator(source: Observable[T]) -> Observable[T | BudgetWarning]:
        def subscribe(
            observer: abc.ObserverBase[T | BudgetWarning],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            shared = Ledger() if ledger is None else ledger
            account = _Account(observer, serial(scheduler), budget, shared, warn_at, looks)
            account.begin(lambda: source.subscribe(account, scheduler=scheduler))
            return account

        return Observable(subscribe)

    return operator


class _Account(abc.ObserverBase[Any], abc.DisposableBase):
    """One subscription and the spending of its agents."""

    def __init__(
        self,
        observer: abc.ObserverBase[Any],
        lane: abc.SchedulerBase,
        budget: Budget,
        ledger: Ledger,
        warn_at: float,
        looks: Sequence[Look],
    ) -> None:
        self.spent = Spending()
        self._observer = observer
        self._lane = lane
        self._budget = budget
        self._ledger = ledger
        self._warn_at = warn_at
        self._looks = looks
        self._source = Held()
        self._timers = CompositeDisposable()
        self._farewell = SingleAssignmentDisposable()
        self._in_flight = True  # a subscribed source counts as a running session
        self._closed = False

    def begin(self, subscribe: Callable[[], abc.DisposableBase]) -> None:
        self._ledger.start(self._lane.now)
        if (error := self._used_up()) is not None:
            self._closed = True
            self._observer.on_error(error)
            return
        self._ledger._accounts.append(self)
        self._warn()
        self._watch_the_time()
        if self._closed:
            return
        self._source.hold(subscribe)

    def _watch_the_time(self) -> None:
        limit = self._budget.duration
        if limit is None or self._closed:
            return
        elapsed = self._ledger.elapsed(self._lane.now)

        def at(second: float, act: Callable[[], None]) -> None:
            pause = max(0.0, second - elapsed)
            self._timers.add(self._lane.schedule_relative(pause, lambda *_: act()))

        if elapsed < self._warn_at * limit < limit:
            at(self._warn_at * limit, lambda: self._warn("duration"))
        at(limit, lambda: self._cut(budget_exceeded(BudgetLevel("duration", limit, limit))))

    def on_next(self, value: Any) -> None:
        if self._closed:
            return
        begins = self._begins(value)
        before = self.spent
        if isinstance(value, Event) and not isinstance(value, RunResumed):
            self.spent = before.add(value)
        spends = self.spent is not before
        self._in_flight = begins or (self._in_flight and not isinstance(value, SessionEnded))
        if isinstance(value, CostUnknown):
            self._ledger._unknown = value
        if spends:
            self._warn()
        self._send(value)
        if begins and (error := self._used_up()) is not None:
            self._cut(error)
        if spends and isinstance(value, UsageUpdate | SessionEnded):
            for account in list(self._ledger._accounts):
                account.check()

    def _overdrawn(self) -> BudgetExceeded | None:
        """Return the error for an overdrawn budget, other than the time limit."""
        levels = self._ledger._levels(self._budget, self._lane)
        level = next((x for x in levels if x.kind != "duration" and x.spent > x.limit), None)
        return budget_exceeded(level) if level else self._ledger._escaped(self._budget)

    def on_error(self, error: Exception) -> None:
        if self._closed:
            return
        failure = error
        if isinstance(error, BudgetExceeded) and (used_up := self._used_up()) is not None:
            failure = used_up
            failure.__cause__ = error
        self._end(failure)

    def on_completed(self) -> None:
        if not self._closed:
            self._end()

    def check(self) -> None:
        """Release the running session if the streams of the ledger have overdrawn the budget."""
        if not self._in_flight or self._closed:
            return
        if (error := self._overdrawn()) is not None:
            self._cut(error)

    def dispose(self) -> None:
        self._farewell.dispose()
        self._close()
        self._source.dispose()

    def _close(self) -> None:
        self._closed = True
        self._timers.dispose()
        self._ledger._settle(self)

    def _end(self, error: Exception | None = None) -> None:
        self._close()
        self._source.end(self._observer, error)

    def _begins(self, event: Any) -> bool:
        """Return True if the event announces another session, or is its first."""
        if begins_session(event):
            return True
        ended = not self._in_flight
        return ended and isinstance(event, LlmAgentEvent) and not isinstance(event, SessionEnded)

    def _used_up(self) -> BudgetExceeded | None:
        levels = self._ledger._levels(self._budget, self._lane)
        level = next((level for level in levels if level.spent >= level.limit), None)
        return budget_exceeded(level) if level else self._ledger._escaped(self._budget)

    def _warn(self, kind: BudgetKind | None = None) -> None:
        for level in self._ledger._levels(self._budget, self._lane):
            near = level.kind == kind or level.spent >= self._warn_at * level.limit
            if near and level.kind not in self._ledger._warned:
                self._ledger._warned.add(level.kind)
                self._send(
                    BudgetWarning(
                        budget=level.kind,
                        spent=level.spent,
                        limit=level.limit,
                        estimated=level.estimated,
                        count_tokens=level.count_tokens,
                    )
                )

    def _cut(self, error: BudgetExceeded) -> None:
        """Release the source now, and fail as soon as the current call has returned.

        It may come out of the source's own `subscribe`, or out of a generator that can be closed
        only when it has returned.
        """
        if self._closed:
            return
        self._close()
        failure = released(self._source, error) or error
        self._farewell.disposable = self._lane.schedule(lambda *_: self._observer.on_error(failure))

    def _send(self, value: Any) -> None:
        if self._closed:
            return
        try:
            for look in self._looks:
                for event in look(value) or ():
                    self._observer.on_next(event)
            if not self._closed:
                self._observer.on_next(value)
        except Exception as error:  # the subscriber or a look failed, not the agent
            self._end(error)
