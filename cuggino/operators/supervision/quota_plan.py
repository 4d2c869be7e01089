"""`within_quota`: start no session in what is kept of a usage window, and stop before paying."""

from __future__ import annotations

from collections.abc import Callable

from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

from cuggino.domain import QuotaPlan
from cuggino.errors import QuotaExceeded
from cuggino.events import LlmAgentEvent, QuotaUsed, RateLimited, SessionEnded, UsageUpdate
from cuggino.operators.managed import Subscription, managed
from cuggino.operators.scheduler import serial


def within_quota(
    plan: QuotaPlan, *, agent: str, begins: bool = True
) -> Callable[[Observable[LlmAgentEvent]], Observable[LlmAgentEvent]]:
    """Keep a session of an agent within the plan for its account.

    ::

        source:             --q--q--r--a|   q: QuotaUsed, twice the same; r: RateLimited (overage)
        within_quota:       --Q-----(re#)   overage "stop"; Q: with the agent; e: SessionEnded
        next session:       #               QuotaExceeded; not subscribed before the reset

    A session that `begins` while a window of the `agent` is used up to the reserve, or used up
    where overage is `stop`, is not subscribed: it fails with `QuotaExceeded` and the reset. A
    resumed session is not new, and runs. A `QuotaUsed` gets the agent's name, updates
    `plan.windows`, and is emitted only if it changes them.

    With overage `stop`, a `RateLimited` in `overage` ends the session: its source is released, then
    come `SessionEnded` with the usage so far and `QuotaExceeded`. (RxPY's `take_while` ends before
    its source is released.)
    """

    def operator(source: Observable[LlmAgentEvent]) -> Observable[LlmAgentEvent]:
        def subscribe(
            observer: Subscription[LlmAgentEvent], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            lane, held = serial(scheduler), SingleAssignmentDisposable()
            started = lane.now
            usage: UsageUpdate | None = None
            refusal = plan.refusal(agent, started) if begins else None
            if refusal is not None:
                observer.on_error(refusal)
                return held

            def on_next(event: LlmAgentEvent) -> None:
                nonlocal usage
                match event:
                    case QuotaUsed():
                        changed = plan.windows.add(event.model_copy(update={"agent": agent}))
                        if changed is None:
                            return
                        event = changed
                    case UsageUpdate():
                        usage = event
                    case RateLimited(overage=True) if plan.overage == "stop":
                        observer.on_next(event)
                        held.dispose()
                        observer.on_next(
                            SessionEnded(
                                outcome="quota",
                                cost_usd=usage.cost_usd if usage else None,
                                usage=usage.usage if usage else None,
                                duration=(lane.now - started).total_seconds(),
                            )
                        )
                        observer.on_error(_stopped(agent, event))
                        return
                    case _:
                        pass
                observer.on_next(event)

            held.disposable = source.subscribe(
                on_next, observer.on_error, observer.on_completed, scheduler=scheduler
            )
            return held

        return managed(subscribe)

    return operator


def _stopped(agent: str, limit: RateLimited) -> QuotaExceeded:
    what = f"{limit.limit} is used up" if limit.limit else "a usage limit was reached"
    return QuotaExceeded(
        f'{agent}: {what}, and overage is "stop"', resets_at=limit.resets_at, planned=True
    )
