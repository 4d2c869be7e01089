"""`retry_session`: restart an agent after a transient failure."""

from __future__ import annotations

import random as chance
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from reactivex import Observable, abc, defer

from cuggino.domain import Schedule, require_schedule
from cuggino.errors import AgentFailed, AgentFailure, CugginoError, LoopError, cause_of
from cuggino.events import AgentRetry
from cuggino.operators.flow import Flow, emit, flow, forward, pause
from cuggino.operators.mistakes import require_result
from cuggino.operators.scheduler import serial

T = TypeVar("T")

RETRIES = Schedule.exponential("5s").jittered().capped("5m").times(3)
"""The default schedule of `retry_session`."""


@dataclass(slots=True)
class Retries:
    """The retries so far. Operators that share one object share the schedule."""

    count: int = 0


_TRANSIENT: frozenset[AgentFailure] = frozenset(
    {"connection", "crash", "overloaded", "rate_limit", "server", "unknown"}
)
_OUTAGES: frozenset[AgentFailure] = frozenset({"connection", "overloaded", "rate_limit", "server"})


def is_transient(error: Exception) -> bool:
    """Return whether the agent may succeed if it is started again after this failure.

    These are `AgentFailed` with the reasons `connection`, `overloaded`, `server` (5xx),
    `rate_limit` (too many requests at once; a usage limit is `QuotaExceeded`), `crash` (the
    program ended without a result) and `unknown` (no recognized reason: a few retries cost less
    than a lost night). The cause of a `LoopError` decides for it.

    Everything else is permanent (`auth`, `billing`, `bad_request`, `prompt_too_long`, no agent),
    a decision (`aborted`, `max_turns`, a budget), or handled by another operator
    (`QuotaExceeded`, `AgentStalled`).
    """
    match error:
        case AgentFailed(reason=reason):
            return reason in _TRANSIENT
        case LoopError(cause=CugginoError() as cause):
            return is_transient(cause)
        case _:
            return False


def is_outage(error: Exception) -> bool:
    """Return True for a transient failure of the service or the network, not of the program."""
    cause = cause_of(error)
    return isinstance(cause, AgentFailed) and cause.reason in _OUTAGES


def retry_session(
    schedule: Schedule = RETRIES,
    *,
    transient: Callable[[Exception], bool] = is_transient,
    again: Callable[[Exception], Observable[T]] | None = None,
    retries: Retries | None = None,
    random: Callable[[], float] = chance.random,
) -> Callable[[Observable[T]], Observable[T | AgentRetry]]:
    """Restart the source after a transient failure, with the delays of the schedule.

    ::

        source:             a--#                    # is transient
        again(error):               -b|
        retry_session:      a--R 4s -b|             R = AgentRetry(retry_in=5.0, ...)

    The failed source is released, then `AgentRetry` is emitted, then `again(error)`, or the source
    itself, is subscribed after the delay, and not before the time that the failure names
    (`AgentFailed.retry_at`). `random` returns numbers from 0 to 1 for the jitter.

    Errors: a failure that is not `transient`, at once and without an event; the last failure when
    the schedule is exhausted; whatever `transient` or `again` raise. Each subscription counts its
    own retries, unless it is given `retries` to share. (RxPY's `retry` neither waits nor
    distinguishes errors.)
    """
    require_schedule(schedule, "retry_session")

    def operator(source: Observable[T]) -> Observable[T | AgentRetry]:
        def attempt(scheduler: abc.SchedulerBase) -> Observable[T | AgentRetry]:
            lane = serial(scheduler)

            def story() -> Flow[None]:
                return retrying(
                    source,
                    schedule,
                    lane,
                    transient=transient,
                    again=again if again is not None else lambda _error: source,
                    retries=retries if retries is not None else Retries(),
                    random=random,
                )

            return flow(story)

        return defer(attempt)

    return operator


def retrying(
    source: Observable[T],
    schedule: Schedule,
    lane: abc.SchedulerBase,
    *,
    transient: Callable[[Exception], bool],
    again: Callable[[Exception], Observable[T]],
    retries: Retries,
    random: Callable[[], float] = chance.random,
) -> Flow[None]:
    """Run `source` as `retry_session` does, within a flow that runs on `lane`."""
    attempt = source
    while True:
        try:
            yield from forward(attempt)
            return
        except Exception as error:
            delay = None
            if transient(error):
                delay = schedule.delay(retries.count, random=random, now=lane.now)
            if delay is None:
                raise
            failure, delay = error, max(delay, _told_wait(error, lane.now))
        retries.count += 1
        yield from emit(_announcement(failure, schedule, retries.count, delay))
        yield from pause(delay)
        attempt = again(failure)
        require_result(attempt, "`again` of retry_session()")


def _told_wait(error: Exception, now: datetime) -> float:
    """Return the seconds until the failure's own time for another try, 0 without one."""
    cause = cause_of(error)
    at = cause.retry_at if isinstance(cause, AgentFailed) else None
    return (at - now).total_seconds() if at is not None else 0.0


def _announcement(error: Exception, schedule: Schedule, attempt: int, delay: float) -> AgentRetry:
    cause = cause_of(error)
    return AgentRetry(
        reason=cause.reason if isinstance(cause, AgentFailed) else type(cause).__name__,
        message=str(cause),
        attempt=attempt,
        max_retries=schedule.count or 0,
        retry_in=delay,
    )
