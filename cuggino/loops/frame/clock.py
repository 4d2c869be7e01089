"""The hours of a loop: outside of them, nothing begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC

from reactivex import Observable, abc, defer, empty

from cuggino.domain import Schedule, Window, next_opening
from cuggino.loops.frame.control import Standing
from cuggino.operators import StateRef, repeat_on

_EACH_MINUTE = Schedule.cron("* * * * *", UTC)
"""How often the clock is read: hours begin and end with a minute, and a machine may be suspended
or set to another time meanwhile."""


@contextmanager
def within_hours(
    windows: Sequence[Window], standing: StateRef[Standing], lane: abc.SchedulerBase
) -> Iterator[None]:
    """Keep work from beginning outside of the windows, within the block; none means no limit."""

    def look(_scheduler: abc.SchedulerBase) -> Observable[None]:
        now, known = lane.now, standing.value.closed_until
        if known is None or known <= now or any(window.is_open(now) for window in windows):
            opening = next_opening(windows, now)
            until = opening if opening > now else None
            if until != known:
                standing.set(replace(standing.value, closed_until=until))
        return empty()

    if not windows:
        yield
        return
    with defer(look).pipe(repeat_on(_EACH_MINUTE)).subscribe(scheduler=lane):
        yield
