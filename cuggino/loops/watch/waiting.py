"""The waiting phase of the watch: until work can begin (CUG-101 to CUG-105, CUG-120 to CUG-125)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple, TypeVar

from reactivex import Observable, abc, combine_latest, defer, empty, operators as ops, timer

from cuggino.events import (
    WatchAuditInterrupted,
    WatchBacklogWaiting,
    WatchEvent,
    WatchLoopEvent,
    WatchSpecIssueWaiting,
)
from cuggino.operators import emit, flow, interrupt_when
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now

I = TypeVar("I")  # noqa: E741
B = TypeVar("B")
T = TypeVar("T")


_ONCE: Observable[object] = flow(lambda: emit(None))


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
    spec_issues: Observable[I],
    backlog: Observable[B],
    situation: Callable[[I, B, datetime], Situation],
    notices: Callable[[], Iterable[WatchLoopEvent]] = tuple,
    next_attempt: Callable[[B, datetime], float | None] = lambda _backlog, _now: None,
    audit: Observable[WatchEvent] | None = None,
    audits: Observable[object] = _ONCE,
) -> Observable[WatchEvent]:
    """Wait until work can begin; emits the reason of the wait whenever it changes, and completes.

    ::

        spec_issues:    0---------
        backlog:        0-----1---
        audit:          s-f-------      s: started, f: a finding
        waiting_phase:  (bs)-f---(i|)   b: backlog waiting, i: audit interrupted

    Both folders are combined (the latest of each) once all that comes at one instant has come: an
    item and a spec issue that are seen at once are judged at once. `situation` judges them, at the
    scheduler's time. `next_attempt` gives the seconds until the first of the paused items may be
    tried again, when there is one: then they are judged again. After that, `notices` returns
    further events to emit.

    `audit` starts after the first waiting event, never if work can begin at once, and is ended as
    soon as it can: its processes are gone before `WatchAuditInterrupted` is emitted. It starts when
    `audits`, subscribed to once in a phase, emits and none is running; by default once.
    """

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
        begins = situations.pipe(ops.filter(_can_begin))
        one = audit.pipe(interrupt_when(begins, _INTERRUPTED))
        due: Observable[WatchEvent] = audits.pipe(
            ops.take_until(begins), ops.map(lambda _: one), ops.exclusive()
        )
        idle: Observable[WatchEvent] = situations.pipe(
            ops.take_while(_must_wait),
            ops.filter(_is_idle),
            ops.take(1),
            ops.concat_map(lambda _: due),
        )
        return merge_now(said, waiting, idle)

    def again(folders: tuple[I, B]) -> Observable[tuple[I, B]]:
        """Emit them whenever a paused item may be tried again."""

        def later(scheduler: abc.SchedulerBase) -> Observable[tuple[I, B]]:
            pause = next_attempt(folders[1], scheduler.now)
            if pause is None:
                return empty()
            due = timer(max(pause, 0.0))
            return due.pipe(ops.map(lambda _: folders), ops.concat(defer(later)))

        return defer(later)

    def now_and_again(folders: Observable[tuple[I, B]]) -> Observable[tuple[I, B]]:
        return merge_now(folders, folders.pipe(ops.map(again), ops.switch_latest()))

    def judged(scheduler: abc.SchedulerBase) -> Observable[WatchEvent]:
        def judge(folders: tuple[I, B]) -> Situation:
            return situation(folders[0], folders[1], scheduler.now)

        return combine_latest(spec_issues, backlog).pipe(
            ops.publish(_first_and_then_settled),
            ops.publish(now_and_again),
            ops.map(judge),
            ops.publish(phase),
        )

    return defer(judged)


def _first_and_then_settled(folders: Observable[T]) -> Observable[T]:
    """Emit the first at once, and of those that come at one instant the last."""
    return merge_now(folders.pipe(ops.take(1)), folders.pipe(ops.skip(1), ops.debounce(0.0)))


_INTERRUPTED: WatchEvent = WatchAuditInterrupted()


def _can_begin(now: Situation) -> bool:
    return now.can_begin


def _must_wait(now: Situation) -> bool:
    return not now.can_begin


def _waited_for(now: Situation) -> list[WatchEvent]:
    return [] if now.event is None else [now.event]


def _is_idle(now: Situation) -> bool:
    return now.event is not None
