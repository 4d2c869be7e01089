"""`wait_for_quota`: a usage limit is a pause, not a failure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable

from cuggino.errors import LoopError, QuotaExceeded
from cuggino.events import (
    AgentFellBack,
    PolicyEvent,
    QuotaLifted,
    QuotaWaiting,
    RateLimited,
    SessionEnded,
)
from cuggino.operators.quota_gate import QuotaGate
from cuggino.operators.scheduler import serial

T = TypeVar("T")

WEEK = 7 * 86_400.0
_MOMENT = 0.001
"""Seconds left that are none: what the rounding of timers leaves."""


def wait_for_quota(
    *,
    gate: QuotaGate | None = None,
    wait: bool = True,
    margin: float = 60.0,
    every: float = 60.0,
    longest: float = WEEK,
    again: Callable[[QuotaExceeded], Observable[T]] | None = None,
) -> Callable[[Observable[T]], Observable[T | PolicyEvent]]:
    """Wait until a usage limit is lifted, then go on with `again(error)`, or the source anew.

    ::

        source:             -a#                     # is QuotaExceeded, lifted 2 min later
        wait_for_quota:     -aW 1m W 1m W 1m (L-a|) W is QuotaWaiting, L QuotaLifted

    On an error `QuotaExceeded`, or a `LoopError` caused by one, the source is released and the
    `gate` closed. `QuotaWaiting` is emitted at once and then every `every` seconds, with the
    seconds that remain by the scheduler's clock of that moment, until the reset plus `margin`
    seconds; then `QuotaLifted`, then the events of what goes on. A limit with an unknown end is
    waited for with growing pauses, 24 hours in all; then, or when a known end is more than
    `longest` seconds away, the error passes on. So it does at once without `wait`.

    The `gate` (by default one for each subscription) is closed by a rejected `RateLimited` too,
    as soon as it passes, and opened by a session that ends well, or when another agent takes over
    (`AgentFellBack`). On subscription to a closed gate the source has to wait in the same way;
    without `wait` the stream fails with `QuotaExceeded` and the source is not subscribed. What
    other streams do to the gate during a wait counts from the next tick on.
    """
    if every <= 0:
        raise ValueError(f"every must be positive, not {every}")
    options = _Options(wait=wait, margin=margin, every=every, longest=longest)

    def operator(source: Observable[T]) -> Observable[T | PolicyEvent]:
        def subscribe(
            observer: abc.ObserverBase[T | PolicyEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            stream = _Stream(
                observer,
                serial(scheduler),
                gate if gate is not None else QuotaGate(),
                options,
                lambda limit: again(limit) if again is not None else source,
            )
            stream.enter(source)
            return stream.held

        return Observable(subscribe)

    return operator


class _Options(NamedTuple):
    wait: bool
    margin: float
    every: float
    longest: float


class _Stream(Generic[T]):
    """One subscription: the source or what goes on in its place, or a wait, never two of them."""

    def __init__(
        self,
        observer: abc.ObserverBase[T | PolicyEvent],
        lane: abc.SchedulerBase,
        gate: QuotaGate,
        options: _Options,
        again: Callable[[QuotaExceeded], Observable[T]],
    ) -> None:
        self._observer = observer
        self._lane = lane
        self._gate = gate
        self._options = options
        self._again = again
        self._ticking = SerialDisposable()
        self._running = SerialDisposable()
        self.held = CompositeDisposable(self._ticking, self._running)

    def enter(self, source: Observable[T]) -> None:
        """Subscribe the source as soon as the gate lets it pass."""
        margin = self._options.margin if self._options.wait else 0.0
        if self._gate.remaining(self._lane.now, margin=margin) < _MOMENT:
            self._begin(source)
            return
        words = f": {self._gate.message}" if self._gate.message else ""
        error = QuotaExceeded(f"a usage limit is in force{words}", resets_at=self._gate.resets_at)
        self._wait(error, lambda: source)

    def _begin(self, source: Observable[T]) -> None:
        ended: list[Exception | None] = []
        thrown: list[Exception] = []
        outcome: list[str] = []
        subscribed = False

        def on_next(event: T) -> None:
            self._notice(event)
            if isinstance(event, SessionEnded):
                outcome[:] = [event.outcome]
            try:
                self._observer.on_next(event)
            except Exception as error:
                thrown.append(error)
                raise

        def end(error: Exception | None = None) -> None:
            ended.append(error)
            if subscribed:
                finish()

        def finish() -> None:
            # Released before anything is said or begun in its place.
            self._running.disposable = Disposable()
            error = ended[0]
            if error is None:
                if outcome in ([], ["completed"]):
                    self._gate.open()
                self._observer.on_completed()
            elif any(error is raised for raised in thrown):
                # A synchronous source hands back what its subscriber raised.
                self._observer.on_error(error)
            else:
                self._failed(error)

        self._running.disposable = source.subscribe(on_next, end, end, scheduler=self._lane)
        subscribed = True
        if ended:
            finish()

    def _notice(self, event: object) -> None:
        match event:
            case RateLimited(status="rejected"):
                self._gate.met(
                    now=self._lane.now, resets_at=event.resets_at, message=event.limit or ""
                )
            case SessionEnded(outcome="completed"):
                self._gate.open()
            case AgentFellBack():
                self._gate.pass_by()
            case _:
                pass

    def _failed(self, error: Exception) -> None:
        limit: BaseException | None = error
        while isinstance(limit, LoopError):
            limit = limit.cause
        if not isinstance(limit, QuotaExceeded):
            self._observer.on_error(error)
            return
        met = limit
        if self._gate.met(now=self._lane.now, resets_at=met.resets_at, message=met.message):
            self._wait(error, lambda: self._again(met))
        else:
            self._observer.on_error(error)

    def _wait(self, error: Exception, then: Callable[[], Observable[T]]) -> None:
        gate, options = self._gate, self._options
        began = self._lane.now
        accepted: datetime | None = None

        def tick(*_: Any) -> None:
            nonlocal accepted
            now = self._lane.now
            if gate.resets_at != accepted:
                # Looked at when it is new, not when the clock was moved.
                accepted = gate.resets_at
                too_long = accepted is not None and gate.remaining(now) > options.longest
            else:
                too_long = False
            if too_long or not options.wait:
                self._observer.on_error(error)
                return
            left = gate.remaining(now, margin=options.margin)
            if left < _MOMENT:
                waited = max(0.0, (now - began).total_seconds())
                self._observer.on_next(QuotaLifted(waited=waited))
                if not self.held.is_disposed:
                    self._resume(then)
                return
            self._observer.on_next(
                QuotaWaiting(remaining=left, resets_at=gate.resets_at, message=gate.message)
            )
            self._ticking.disposable = self._lane.schedule_relative(min(options.every, left), tick)

        tick()

    def _resume(self, then: Callable[[], Observable[T]]) -> None:
        try:
            source = then()
        except Exception as error:
            self._observer.on_error(error)
            return
        self._begin(source)
