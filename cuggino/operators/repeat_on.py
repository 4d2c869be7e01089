"""`repeat_on`: run a stream again and again, on a schedule."""

from __future__ import annotations

import random as chance
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc, defer

from cuggino.domain import Schedule, require_schedule
from cuggino.operators.flow import Flow, flow, forward, pause
from cuggino.operators.scheduler import serial

T = TypeVar("T")


def repeat_on(
    schedule: Schedule, *, random: Callable[[], float] = chance.random
) -> Callable[[Observable[T]], Observable[T]]:
    """Subscribe the source again after each completion and the next delay of the schedule.

    ::

        source:             (a|)
        repeat_on:          aa-(a|)             the delays are 1 and 2 seconds

    Completes with the last run when the schedule is exhausted; an error of the source ends it.
    With `Schedule.constant(every)` it polls, with `Schedule.cron(...)` it keeps to the time of the
    scheduler. `random` returns numbers from 0 to 1 for the jitter.
    (RxPY's `repeat` subscribes again at once, and `timer` with a period does not wait for the work
    of a tick.)
    """
    require_schedule(schedule, "repeat_on")

    def operator(source: Observable[T]) -> Observable[T]:
        def story(lane: abc.SchedulerBase) -> Flow[None]:
            yield from forward(source)
            for delay in schedule.delays(random=random, clock=lambda: lane.now):
                yield from pause(delay)
                yield from forward(source)

        def repeated(scheduler: abc.SchedulerBase) -> Observable[T]:
            return flow(lambda: story(serial(scheduler)))

        return defer(repeated)

    return operator
