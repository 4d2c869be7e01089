"""`wait_for_quota`: a usage limit is a pause, not a failure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable

from cuggino.domain.quota import quota_pause
from cuggino.errors import LoopError, QuotaExceeded
from cuggino.events import PolicyEvent, QuotaLifted, QuotaWaiting, RateLimited, SessionEnded
from cuggino.operators.scheduler import serial

T = TypeVar("T")

WEEK = 7 * 86_400.0
_MOMENT = 0.001
"""Seconds left that are none: what the rounding of timers leaves."""
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)


class QuotaGate:
    """Whether a usage limit is in force, for all streams that share it.

    An audit agent must not burn what the loop waits for. All its streams are on one scheduler.
    Times are the scheduler's, and are arguments.
    """

    def __init__(self) -> None:
        self.resets_at: datetime | None = None
        """When the limit is lifted, as far as an agent said; None when open or unsaid."""
        self.message = ""
        """The agent's words about the limit."""
        self._until: datetime | None = None
        self._said: datetime | None = None
        self._pauses = 0

    def remaining(self, now: datetime, *, margin: float = 0.0) -> float:
        """Seconds until the limit is lifted, 0 when none is in force.

        `margin` seconds are added to a time that an agent said, and not to a pause of our own.
        """
        if self._until is None:
            return 0.0
        later = margin if self.resets_at is not None else 0.0
        return max(0.0, (self._until - now).total_seconds() + later)

    def close(
        self,
        until: datetime,
        *,
        now: datetime,
        resets_at: datetime | None = None,
        message: str = "",
    ) -> None:
        """Let nothing pass before `until`.

        Of two limits in force the later counts; a time that an agent said (`resets_at`) counts
        before one that was guessed.
        """
        if self.remaining(now) > 0 and self._until is not None:
            said, known = resets_at is not None, self.resets_at is not None
            if (known and not said) or (known == said and self._until > until):
                return
        self._until, self.resets_at, self.message = until, resets_at, message
        self._said = resets_at or self._said

    def open(self) -> None:
        """An agent was served: there is no limit (any more), and back-off begins anew."""
        self._until, self.resets_at, self.message = None, None, ""
        self._said, self._pauses = None, 0

    def met(self, *, now: datetime, resets_at: datetime | None = None, message: str = "") -> bool:
        """An agent met a limit: close until it is lifted. False when there is no use in waiting.

        A limit with an unknown end, or one that is past, closes for a pause that doubles each
        time (`quota_pause`), unless a limit is in force already; after 24 hours of such pauses
        the gate stays as it is, until a success opens it.
        """
        if resets_at is not None and resets_at > now and not self._is_stale(resets_at, message):
            self.close(resets_at, now=now, resets_at=resets_at, message=message)
            return True
        if self.remaining(now) > 0:
            return True
        pause = quota_pause(self._pauses)
        if pause is None:
            return False
        self._pauses += 1
        self.close(now + timedelta(seconds=pause), now=now, message=message)
        return True

    def _is_stale(self, resets_at: datetime, message: str) -> bool:
        """`resets 3pm`, said again a minute after 3 pm, does not mean tomorrow (AUT-080)."""
        if self._said is None or not message or message != self.message:
            return False
        return abs(resets_at - self._said - _DAY) <= _HOUR


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
    as soon as it passes, and opened by a session that ends well. On subscription to a closed gate
    the source has to wait in the same way; without `wait` the stream fails with `QuotaExceeded`
    and the source is not subscribed. What other streams do to the gate during a wait counts from
    the next tick on.
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
