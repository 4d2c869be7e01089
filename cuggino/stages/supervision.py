"""The policies around an agent, composed: liveness, retries, quota, budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reactivex import Observable, operators as ops

from cuggino.domain.spending import Budget
from cuggino.errors import LlmSessionError
from cuggino.events import Event
from cuggino.operators.flow import Flow, flow, forward
from cuggino.operators.idle_timeout import idle_timeout
from cuggino.operators.quota_gate import QuotaGate
from cuggino.operators.remedies import Remedies
from cuggino.operators.retry_session import is_transient, retry_session
from cuggino.operators.stage_timeout import stage_timeout
from cuggino.operators.wait_for_quota import wait_for_quota
from cuggino.operators.within_budget import Ledger, within_budget
from cuggino.stages.sessions import Sessions

Policy = Callable[[Observable[Event]], Observable[Event]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervision:
    """What is done about an agent that fails, waits, is silent or spends too much.

    The defaults do nothing. `ledger` and `gate` are shared by all agents that they are given to:
    what one spends counts for all, and a usage limit that one meets holds for all of its account.
    """

    max_retries: int = 0
    retry_pause: float = 5.0
    """Seconds before the first retry; each further pause is twice as long."""
    transient: Callable[[Exception], bool] = is_transient
    """Which failures are retried."""
    wait_for_quota: bool = False
    quota_margin: float = 60.0
    """Seconds that are waited for after the time at which a usage limit is lifted."""
    idle_timeout: float | None = None
    tool_timeout: float | None = None
    stage_timeout: float | None = None
    budget: Budget = field(default_factory=Budget)
    ledger: Ledger = field(default_factory=Ledger)
    gate: QuotaGate = field(default_factory=QuotaGate)

    def around(self, sessions: Sessions, first: Observable[Event]) -> Observable[Event]:
        """`first`, one of the `sessions`, with all policies around it, the budget outermost.

        Liveness is inside of retries, so that neither a pause nor a wait counts as silence; the
        wait for a usage limit is outside of them, so that it costs no retry. A session that comes
        in the place of another has the same policies around it. When the retries are used up,
        another agent begins anew, if there is one, with retries of its own; at once behind a
        failure that may pass and is not retried here. Where nobody can, that failure is the error.
        """
        remedies = Remedies()
        again, fresh = sessions.again, sessions.fresh

        def heard(agent: Observable[Event]) -> Observable[Event]:
            answered: Policy = idle_timeout(
                idle=self.idle_timeout,
                tool=self.tool_timeout,
                nudge=again if sessions.can_resume else None,
                replace=fresh,
                remedies=remedies,
            )
            return answered(agent)

        def in_time(agent: Observable[Event]) -> Observable[Event]:
            answered: Policy = stage_timeout(
                self.stage_timeout,
                nudge=(lambda error: heard(again(error))) if sessions.can_resume else None,
                replace=lambda error: heard(fresh(error)),
                remedies=remedies,
            )
            return answered(heard(agent))

        def retried(agent: Observable[Event]) -> Observable[Event]:
            retry: Policy = retry_session(
                max_retries=self.max_retries,
                first=self.retry_pause,
                transient=self.transient,
                again=lambda error: in_time(again(error)),
            )
            return retry(in_time(agent)).pipe(
                ops.catch(lambda error, _source: flow(lambda: elsewhere(error)))
            )

        def elsewhere(error: Exception) -> Flow[None]:
            left: Exception | None = None
            try:
                yield from forward(sessions.give_way(error))
            except LlmSessionError as failure:
                # Who follows a failure by another session need not wait for anybody's usage limit.
                left = failure if self.transient(error) else error
            if left is not None:
                raise left
            yield from forward(retried(fresh()))

        waiting: Policy = wait_for_quota(
            gate=self.gate.of(sessions.account),
            wait=self.wait_for_quota,
            margin=self.quota_margin,
            again=lambda error: retried(again(error)),
        )
        spending: Policy = within_budget(self.budget, ledger=self.ledger)
        return spending(waiting(retried(first)))

    def remaining(self) -> float | None:
        """US dollars that are left; None without such a limit."""
        return self.ledger.remaining_usd(self.budget)

    def in_time(self, command: Observable[Any]) -> Observable[Any]:
        """The command, cut off when the time of the whole run is up."""
        if self.budget.duration is None:
            return command
        return command.pipe(
            within_budget(Budget(duration=self.budget.duration), ledger=self.ledger)
        )
