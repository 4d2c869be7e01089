"""The supervision of an agent: timeouts, retries, quota waits and budget, composed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from reactivex import Observable, abc, defer, just

from cuggino.agents.base import LlmAgent, SpawnOptions
from cuggino.config import SupervisionSettings
from cuggino.domain import Budget, Overage, Pricing, QuotaPlan, Schedule
from cuggino.errors import LlmSessionError
from cuggino.events import Event
from cuggino.operators import Flow, flow, forward
from cuggino.operators.scheduler import serial
from cuggino.operators.supervision import (
    Ledger,
    Look,
    QuotaGate,
    QuotaWaiter,
    Remedies,
    Retries,
    is_transient,
    liveness,
    retrying,
    within_budget,
)
from cuggino.stages.options import StageOptions
from cuggino.stages.sessions import Resumes, Sessions

_Operator = Callable[[Observable[Event]], Observable[Event]]


@lru_cache(maxsize=16)
def _retries(pause: float, times: int) -> Schedule:
    return Schedule.exponential(pause).jittered().capped("5m").times(times)


@dataclass(slots=True)
class Earlier:
    """The counts of an earlier process of the run in the stage that it did not finish."""

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
    quota_reserve: float = 0.0
    """The share of each usage window that is kept; with it, no new session starts."""
    overage: Overage = "pay"
    """`stop` ends a session when usage beyond a limit would be paid for."""
    idle_timeout: float | None = None
    tool_timeout: float | None = None
    stage_timeout: float | None = None
    repetition_limit: int | None = None
    budget: Budget = field(default_factory=Budget)
    pricing: Pricing = field(default_factory=Pricing)
    """How the cost is estimated of agents that report no dollars."""
    ledger: Ledger = field(default_factory=Ledger)
    gate: QuotaGate = field(default_factory=QuotaGate)
    earlier: Earlier = field(default_factory=Earlier)

    @property
    def quota(self) -> QuotaPlan:
        """How much of the usage windows agents may use."""
        return QuotaPlan(
            reserve=self.quota_reserve, overage=self.overage, windows=self.gate.windows
        )

    def session(
        self,
        agent: LlmAgent,
        options: SpawnOptions,
        *,
        read: Callable[[Observable[Event]], Observable[Event]],
        left: Callable[[], Observable[str]] = lambda: just(""),
        resumes: Resumes | None = None,
        may_wait: bool = False,
    ) -> Observable[Event]:
        """Run a supervised session of the agent; `read` is applied to each of its programs.

        `left` emits the work that an agent has left, for one that replaces it. `resumes` is an
        earlier session to resume; `may_wait` as in `around`.
        """
        sessions = Sessions(
            agent,
            options,
            read=read,
            budget=self.remaining,
            pricing=self.pricing,
            quota=self.quota,
            left=left,
            resumes=resumes,
        )
        return self.around(sessions, sessions.first(), may_wait=may_wait)

    def around(
        self,
        sessions: Sessions,
        first: Observable[Event],
        *,
        looks: Sequence[Look] = (),
        ends: Callable[[Any], bool] | None = None,
        remind: Callable[[], Observable[Event] | None] = lambda: None,
        may_wait: bool = False,
    ) -> Observable[Event]:
        """Return `first`, one of the `sessions`, supervised.

        Timeouts are inside retries, so that no delay counts as silence; quota waits are outside of
        them, so that they cost no retry and restore none; the budget is outermost. Successors of a
        session are supervised alike. When the retries are used up, the fallback agent starts with
        its own retries. Without one, the failure is the error. The first session of a resumed
        run continues the counts of the earlier process. `looks` are those of `within_budget`,
        `ends` and `remind` those of `liveness`. An agent that `may_wait` is nudged to do so when it
        polls.
        """
        earlier = self.earlier.take()
        remedies, retries = Remedies(), Retries(earlier.retries)
        sessions.waits.count += earlier.waits
        sessions.waits.seconds += earlier.waited

        alive: _Operator = liveness(
            idle=self.idle_timeout,
            tool=self.tool_timeout,
            stage=self.stage_timeout,
            times=self.repetition_limit,
            nudge=sessions.again if sessions.can_resume else None,
            replace=sessions.replaced,
            remedies=remedies,
            ends=ends,
            remind=remind,
            polling=may_wait and sessions.can_resume,
        )

        def attempt(agent: Observable[Event], lane: abc.SchedulerBase) -> Flow[None]:
            """Run an agent with its retries, and then its fallbacks with theirs."""
            while True:
                try:
                    yield from retrying(
                        alive(agent),
                        _retries(self.retry_pause, self.max_retries),
                        lane,
                        transient=self.transient,
                        again=lambda error: alive(sessions.again(error)),
                        retries=retries,
                    )
                    return
                except Exception as error:
                    failure = error
                yield from self._fall_back(sessions, failure)
                retries.count = 0
                agent = sessions.fresh()

        def supervised(scheduler: abc.SchedulerBase) -> Observable[Event]:
            lane = serial(scheduler)
            quota = QuotaWaiter(
                self.gate.of(sessions.account),
                lane,
                wait=self.wait_for_quota,
                margin=self.quota_margin,
                max_waits=self.max_quota_waits,
                longest=self.max_quota_wait,
                waits=sessions.waits,
            )
            story = flow(
                lambda: quota.story(
                    first, again=sessions.again, attempt=lambda agent: attempt(agent, lane)
                )
            )
            spending: _Operator = within_budget(
                self.budget, ledger=self.ledger, looks=(quota.notice, *looks)
            )
            return spending(story)

        return defer(supervised)

    def _fall_back(self, sessions: Sessions, error: Exception) -> Flow[None]:
        """Announce the fallback agent; raise the failure if there is none."""
        left: Exception | None = None
        try:
            yield from forward(sessions.fall_back(error))
        except LlmSessionError as failure:
            # A retryable failure of the fallback needs no wait for a usage limit.
            left = failure if self.transient(error) else error
        if left is not None:
            raise left

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


def budget_of(options: SupervisionSettings) -> Budget:
    """Return the budget of these settings."""
    return Budget(
        cost_usd=options.budget,
        tokens=options.max_tokens,
        count_tokens=options.count_tokens,
        duration=options.max_duration,
    )


def supervision_of(
    options: StageOptions,
    *,
    gate: QuotaGate,
    ledger: Ledger,
    earlier: Earlier | None = None,
    transient: Callable[[Exception], bool] = is_transient,
) -> Supervision:
    """Return the supervision by the options; all agents with it share `gate` and `ledger`.

    `transient` selects the failures that are retried; `earlier` has the counts of a resumed run's
    unfinished stage.
    """
    return Supervision(
        max_retries=options.max_retries,
        retry_pause=options.retry_pause,
        transient=transient,
        wait_for_quota=options.wait_for_quota,
        quota_margin=options.quota_margin,
        max_quota_waits=options.max_quota_waits,
        max_quota_wait=options.max_quota_wait,
        quota_reserve=options.quota_reserve,
        overage=options.overage,
        idle_timeout=options.idle_timeout,
        tool_timeout=options.tool_timeout,
        stage_timeout=options.stage_timeout,
        repetition_limit=options.repetition_limit,
        budget=budget_of(options),
        pricing=Pricing(options.price_as),
        ledger=ledger,
        gate=gate,
        earlier=earlier or Earlier(),
    )
