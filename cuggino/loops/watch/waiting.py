"""The waiting phase of the watch: until work can begin (CUG-101 to CUG-105, CUG-120 to CUG-125)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple, cast

from reactivex import Observable, abc, combine_latest, concat, defer, empty, operators as ops, timer

from cuggino.events import (
    WatchAuditInterrupted,
    WatchBacklogWaiting,
    WatchEvent,
    WatchLoopEvent,
    WatchSpecIssueWaiting,
)
from cuggino.operators import interrupt_when
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now


class Situation(NamedTuple):
    """The state of the folders at one moment."""

    issues: int
    """Open spec issues."""
    ready: int
    """Backlog items that could be worked on now."""
    paused: int = 0
    """Backlog items that failed and wait for their next attempt."""
    proposals: int = 0
    """Backlog items that wait for their pull requests."""

    @property
    def can_begin(self) -> bool:
        """Nothing has to be resolved first, and there is an item."""
        return self.issues == 0 and self.ready > 0

    @property
    def event(self) -> WatchLoopEvent | None:
        """The event of the wait; None when it only waits for the next attempt."""
        if self.issues:
            return WatchSpecIssueWaiting()
        return None if self.paused else WatchBacklogWaiting(proposals=self.proposals)


def waiting_phase(
    *,
    spec_issues: Observable[object],
    backlog: Observable[object],
    look: Callable[[datetime], Situation],
    notices: Callable[[], Iterable[WatchLoopEvent]] = tuple,
    next_attempt: Callable[[datetime], float | None] = lambda _now: None,
    news: Observable[object] | None = None,
    audit: Observable[WatchEvent] | None = None,
) -> Observable[WatchEvent]:
    """Wait until work can begin; emits the reason of the wait whenever it changes, and completes.

    ::

        spec_issues:    0---------
        backlog:        0-----1---
        audit:          s-f-------      s: started, f: a finding
        waiting_phase:  (bs)-f---(i|)   b: backlog waiting, i: audit interrupted

    Both counts are combined (the latest of each), but only as the sign to look: `look` reads both
    folders together, so that an item and a spec issue that arrive at once are seen at once.
    It is given the scheduler's time. `next_attempt` gives the seconds until the first of the paused
    items may be tried again, when there is one; it is asked again after each such time, as that
    item may be gone and another one wait. After each look, `notices` returns further events to
    emit; `news` is another sign to look.

    `audit` starts after the first waiting event, never if work can begin at once, and is ended as
    soon as it can: its processes are gone before `WatchAuditInterrupted` is emitted. An audit that
    completes is not started again in the same phase.
    """
    signs: list[Observable[object]] = [
        cast("Observable[object]", combine_latest(spec_issues, backlog)),
        _attempts(next_attempt),
    ]
    if news is not None:
        signs.append(news)

    def phase(situations: Observable[Situation]) -> Observable[WatchEvent]:
        waiting: Observable[WatchEvent] = situations.pipe(
            ops.take_while(_must_wait),
            mapcat(_waited_for),
            ops.distinct_until_changed(),
        )
        said: Observable[WatchEvent] = situations.pipe(
            ops.take_while(_must_wait, inclusive=True), mapcat(lambda _: notices())
        )
        if audit is None:
            return merge_now(said, waiting)
        interrupted = interrupt_when(situations.pipe(ops.filter(_can_begin)), _INTERRUPTED)
        idle: Observable[WatchEvent] = situations.pipe(
            ops.take_while(_must_wait),
            ops.filter(_is_idle),
            ops.take(1),
            ops.concat_map(lambda _: audit.pipe(interrupted)),
        )
        return merge_now(said, waiting, idle)

    def wait(scheduler: abc.SchedulerBase) -> Observable[WatchEvent]:
        seen = merge_now(*signs).pipe(ops.map(lambda _: look(scheduler.now)))
        return seen.pipe(ops.publish(phase))

    return defer(wait)


def _attempts(next_attempt: Callable[[datetime], float | None]) -> Observable[object]:
    """Emit whenever a paused item may be tried again; complete when none is paused."""

    def wait(scheduler: abc.SchedulerBase) -> Observable[object]:
        pause = next_attempt(scheduler.now)
        if pause is None:
            return empty()
        return concat(cast("Observable[object]", timer(max(pause, 0.0))), defer(wait))

    return defer(wait)


_INTERRUPTED: WatchEvent = WatchAuditInterrupted()


def _can_begin(now: Situation) -> bool:
    return now.can_begin


def _must_wait(now: Situation) -> bool:
    return not now.can_begin


def _waited_for(now: Situation) -> list[WatchEvent]:
    return [] if now.event is None else [now.event]


def _is_idle(now: Situation) -> bool:
    return now.event is not None
