"""The supervision of an agent: timeouts, retries, quota waits and budget, composed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from typing import Any

from reactivex import Observable

from cuggino._values import dataclass
from cuggino.agents.base import LlmAgent, SpawnOptions
from cuggino.domain import Budget, Schedule
from cuggino.errors import LlmSessionError
from cuggino.events import Event
from cuggino.operators import Flow, catch_tag, flow, forward
from cuggino.operators.supervision import (
    Ledger,
    QuotaGate,
    Remedies,
    Retries,
    is_transient,
    liveness,
    retry_session,
    wait_for_quota,
    within_budget,
)
from cuggino.stages.sessions import Sessions

_Operator = Callable[[Observable[Event]], Observable[Event]]


@lru_cache(maxsize=16)
def _retries(pause: float, times: int) -> Schedule:
    return Schedule.exponential(pause).jittered().capped("5m").times(times)


@dataclass(slots=True)
class Earlier:
    """What an earlier process of the run counted in the stage that it did not finish."""

    retries: int = 0
    waits: int = 0
    """Waits for a usage limit, and the seconds of all of them."""
    waited: float = 0.0

    def take(self) -> Earlier:
        """Return the counts for the stage that is continued; the next one begins at zero."""
        taken = Earlier(self.retries, self.waits, self.waited)
        self.retries, self.waits, self.waited = 0, 0, 0.0
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervision:
    """The limits and retries of an agent; the defaults do nothing.

    Agents with the same `ledger` share a budget, agents with the same `gate` the usage limits of
    their account.
    """

    max_retries: int = 0
    retry_pause: float = 5.0
    """Seconds before the first retry; each further delay is twice as long."""
    transient: Callable[[Exception], bool] = is_transient
    """The failures that are retried."""
    wait_for_quota: bool = False
    quota_margin: float = 60.0
    """Seconds to wait after the time at which a usage limit is lifted."""
    max_quota_waits: int | None = 20
    max_quota_wait: float = 86_400.0
    """Seconds that all waits of a stage may take together."""
    idle_timeout: float | None = None
    tool_timeout: float | None = None
    stage_timeout: float | None = None
    repetition_limit: int | None = None
    budget: Budget = field(default_factory=Budget)
    ledger: Ledger = field(default_factory=Ledger)
    gate: QuotaGate = field(default_factory=QuotaGate)
    earlier: Earlier = field(default_factory=Earlier)

    def session(
        self,
        agent: LlmAgent,
        options: SpawnOptions,
        *,
        read: Callable[[Observable[Event]], Observable[Event]],
    ) -> Observable[Event]:
        """Run a supervised session of the agent; `read` is applied to each of its programs."""
        sessions = Sessions(agent, options, read=read, budget=self.remaining)
        return self.around(sessions, sessions.first())

    def around(self, sessions: Sessions, first: Observable[Event]) -> Observable[Event]:
        """Return `first`, one of the `sessions`, supervised.

        Timeouts are inside retries, so that no delay counts as silence; quota waits are outside of
        them, so that they cost no retry and restore none; the budget is outermost. Successors of a
        session are supervised alike. When the retries are used up, the fallback agent starts with
        retries of its own. Without one, the failure is the error. The first session of a resumed
        run continues the counts of the earlier process.
        """
        earlier = self.earlier.take()
        remedies, retries = Remedies(), Retries(earlier.retries)
        sessions.waits.count += earlier.waits
        sessions.waits.seconds += earlier.waited
        again, fresh = sessions.again, sessions.fresh

        alive: _Operator = liveness(
            idle=self.idle_timeout,
            tool=self.tool_timeout,
            stage=self.stage_timeout,
            times=self.repetition_limit,
            nudge=again if sessions.can_resume else None,
            replace=fresh,
            remedies=remedies,
        )

        def retried(agent: Observable[Event]) -> Observable[Event]:
            retry: _Operator = retry_session(
                _retries(self.retry_pause, self.max_retries),
                transient=self.transient,
                again=lambda error: alive(again(error)),
                retries=retries,
            )
            return retry(alive(agent)).pipe(
                catch_tag(Exception, lambda error: flow(lambda: elsewhere(error)))
            )

        def elsewhere(error: Exception) -> Flow[None]:
            left: Exception | None = None
            try:
                yield from forward(sessions.fall_back(error))
            except LlmSessionError as failure:
                # A retryable failure of the fallback needs no wait for a usage limit.
                left = failure if self.transient(error) else error
            if left is not None:
                raise left
            retries.count = 0
            yield from forward(retried(fresh()))

        waiting: _Operator = wait_for_quota(
            gate=self.gate.of(sessions.account),
            wait=self.wait_for_quota,
            margin=self.quota_margin,
            max_waits=self.max_quota_waits,
            longest=self.max_quota_wait,
            waits=sessions.waits,
            again=lambda error: retried(again(error)),
        )
        spending: _Operator = within_budget(self.budget, ledger=self.ledger)
        return spending(waiting(retried(first)))

    def remaining(self) -> float | None:
        """Return the US dollars that are left; None without a limit."""
        return self.ledger.remaining_usd(self.budget)

    def in_time(self, command: Observable[Any]) -> Observable[Any]:
        """Return the command, cut off when the time of the whole run is up."""
        if self.budget.duration is None:
            return command
        return command.pipe(
            within_budget(Budget(duration=self.budget.duration), ledger=self.ledger)
        )
