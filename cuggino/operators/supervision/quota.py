"""`wait_for_quota`: wait out a usage limit. `QuotaGate`: one limit shared by several streams."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from reactivex import Observable, abc, operators as ops

from cuggino.domain import QUOTA_SCHEDULE, QuotaWindows
from cuggino.errors import CugginoError, LoopError, QuotaExceeded
from cuggino.events import (
    AgentFellBack,
    QuotaLifted,
    QuotaWaiting,
    RateLimited,
    SessionEnded,
    SupervisionEvent,
)
from cuggino.operators.flow import Flow, emit, flow, forward, pause
from cuggino.operators.mistakes import require_result
from cuggino.operators.scheduler import serial

T = TypeVar("T")

MAX_WAITS = 20
"""The default number of waits."""
LONGEST_WAIT = 86_400.0
"""The default limit on all waits together, in seconds."""
_MOMENT = 0.001
"""Remaining seconds that count as none: the rounding error of timers."""
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)


@dataclass(slots=True)
class QuotaWaits:
    """The waits so far. Operators that share one object share the limits on them."""

    count: int = 0
    seconds: float = 0.0


class QuotaGate:
    """The usage limit in force, if any, for all streams that share the gate.

    An audit agent must not use up the quota that the loop waits for. All its streams run on one
    scheduler, whose times are passed as arguments.
    """

    def __init__(self) -> None:
        self.resets_at: datetime | None = None
        """When the limit is lifted, as reported by an agent; None when open or unknown."""
        self.message = ""
        """The agent's message about the limit."""
        self.windows = QuotaWindows()
        """The usage windows of all accounts; unused in the gate of one account."""
        self.is_planned = False
        """True if the limit is the configuration's: the agent would work."""
        self._until: datetime | None = None
        self._reported: datetime | None = None
        self._pauses = 0
        self._accounts: dict[Hashable, QuotaGate] = {}

    def of(self, account: Hashable | None) -> QuotaGate:
        """Return the gate of an account, with separate limits; for None, this gate."""
        return self if account is None else self._accounts.setdefault(account, QuotaGate())

    def remaining(self, now: datetime, *, margin: float = 0.0) -> float:
        """Return the seconds until the limit is lifted, 0 when none is in force.

        `margin` seconds are added to a time that an agent reported, not to an estimated one.
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
        planned: bool = False,
    ) -> None:
        """Close the gate until then; a `planned` limit is not lifted when an agent is served.

        Of two limits in force the later one counts, but a time that an agent reported
        (`resets_at`) takes precedence over an estimate.
        """
        if self.remaining(now) > 0 and self._until is not None:
            reported, known = resets_at is not None, self.resets_at is not None
            if (known and not reported) or (known == reported and self._until > until):
                return
        self._until, self.resets_at, self.message = until, resets_at, message
        self.is_planned = planned
        self._reported = resets_at or self._reported

    def open(self) -> None:
        """Open the gate after an agent was served, and reset the backoff."""
        if not self.is_planned:
            self.pass_by()
        self._reported, self._pauses = None, 0

    def pass_by(self) -> None:
        """Open the gate for another agent, which the limit does not affect; keep the backoff."""
        self._until, self.resets_at, self.message = None, None, ""
        self.is_planned = False

    def met(
        self,
        *,
        now: datetime,
        resets_at: datetime | None = None,
        message: str = "",
        planned: bool = False,
    ) -> bool:
        """Close the gate until the limit is lifted; return False when waiting is pointless.

        A limit whose end is unknown or past closes the gate for the next delay of
        `QUOTA_SCHEDULE`, unless a limit is in force already. When the schedule is exhausted the
        gate stays as it is until a success opens it.
        """
        if resets_at is not None and resets_at > now and not self._is_stale(resets_at, message):
            self.close(resets_at, now=now, resets_at=resets_at, message=message, planned=planned)
            return True
        if self.remaining(now) > 0:
            return True
        delay = QUOTA_SCHEDULE.delay(self._pauses)
        if delay is None:
            return False
        self._pauses += 1
        self.close(now + timedelta(seconds=delay), now=now, message=message)
        return True

    def _is_stale(self, resets_at: datetime, message: str) -> bool:
        """Recognize `resets 3pm`, repeated a minute after 3 pm: not tomorrow's (AUT-080)."""
        if self._reported is None or not message or message != self.message:
            return False
        return abs(resets_at - self._reported - _DAY) <= _HOUR


def wait_for_quota(
    *,
    gate: QuotaGate | None = None,
    wait: bool = True,
    margin: float = 60.0,
    every: float = 60.0,
    max_waits: int | None = MAX_WAITS,
    longest: float = LONGEST_WAIT,
    waits: QuotaWaits | None = None,
    again: Callable[[QuotaExceeded], Observable[T]] | None = None,
) -> Callable[[Observable[T]], Observable[T | SupervisionEvent]]:
    """Wait until a usage limit is lifted, then continue with `again(error)` or the source.

    ::

        source:             -a#                     # is QuotaExceeded, lifted in a minute
        again(error):       a|
        wait_for_quota:     -aW 59s W 59s (La)|     W: QuotaWaiting, L: QuotaLifted

    On `QuotaExceeded`, or a `LoopError` caused by one, the source is released and the gate closed.
    `QuotaWaiting` is emitted at once and then every `every` seconds, with the seconds that remain,
    until the reset plus `margin` seconds; then `QuotaLifted`. If the reset is unknown, the waits
    have the delays of `QUOTA_SCHEDULE`.

    The error passes on, without another wait, when those delays are exhausted, after `max_waits`
    waits (None: any number), when the reset is so far away that all waits together would take
    more than `longest` seconds, or without `wait`. Each subscription counts its own waits, unless
    it is given `waits` to share.

    The `gate` (by default one for each subscription) is also closed by a rejected `RateLimited`
    without overage, and opened by a session that completes or by another agent taking over
    (`AgentFellBack`). A subscription to a closed gate waits in the same way before it subscribes
    the source; without `wait` it fails with `QuotaExceeded`. A change of the gate during a wait
    takes effect at the next tick. (RxPY's `retry` subscribes again at once.)
    """
    if every <= 0:
        raise ValueError(f"every must be positive, not {every}")

    def operator(source: Observable[T]) -> Observable[T | SupervisionEvent]:
        def subscribe(
            observer: abc.ObserverBase[T | SupervisionEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            lane = serial(scheduler)
            waiting = QuotaWaiter(
                gate if gate is not None else QuotaGate(),
                lane,
                wait=wait,
                margin=margin,
                every=every,
                max_waits=max_waits,
                longest=longest,
                waits=waits if waits is not None else QuotaWaits(),
            )

            def attempt(stream: Observable[T]) -> Flow[T | None]:
                return forward(stream.pipe(ops.do_action(waiting.notice)))

            following = again if again is not None else lambda _limit: source
            story = flow(lambda: waiting.story(source, again=following, attempt=attempt))
            return story.subscribe(observer, scheduler=lane)

        return Observable(subscribe)

    return operator


class QuotaWaiter:
    """The policy of `wait_for_quota` for one subscription, as a part of a larger flow.

    Its `notice` has to see the events, as one of the `looks` of `within_budget`.
    """

    def __init__(
        self,
        gate: QuotaGate,
        lane: abc.SchedulerBase,
        *,
        wait: bool,
        margin: float,
        max_waits: int | None,
        longest: float,
        waits: QuotaWaits,
        every: float = 60.0,
    ) -> None:
        self._gate = gate
        self._lane = lane
        self._wait = wait
        self._margin = margin
        self._every = every
        self._max_waits = max_waits
        self._longest = longest
        self._waits = waits
        self._outcome = "completed"

    def notice(self, event: object) -> None:
        """Keep the gate informed."""
        match event:
            case SessionEnded(outcome=outcome):
                self._outcome = outcome
                if outcome == "completed":
                    self._gate.open()
            case RateLimited(status="rejected", overage=False):
                self._gate.met(
                    now=self._lane.now, resets_at=event.resets_at, message=event.limit or ""
                )
            case AgentFellBack():
                self._gate.pass_by()
            case _:
                pass

    def story(
        self,
        source: Observable[T],
        *,
        again: Callable[[QuotaExceeded], Observable[T]],
        attempt: Callable[[Observable[T]], Flow[object]],
    ) -> Flow[None]:
        """Run one attempt after the other until one ends without a usage limit."""
        gate, lane, stream = self._gate, self._lane, source
        if gate.remaining(lane.now, margin=self._margin if self._wait else 0.0) >= _MOMENT:
            detail = f": {gate.message}" if gate.message else ""
            text = f"a usage limit is in force{detail}"
            yield from self._waiting(QuotaExceeded(text, resets_at=gate.resets_at))
        while True:
            try:
                self._outcome = "completed"
                yield from attempt(stream)
                if self._outcome == "completed":
                    gate.open()
                return
            except Exception as error:
                limit = _limit_of(error)
                if limit is None or not gate.met(
                    now=lane.now,
                    resets_at=limit.resets_at,
                    message=limit.message,
                    planned=limit.planned,
                ):
                    raise
                failure = error
            yield from self._waiting(failure)
            stream = again(limit)
            require_result(stream, "`again` of wait_for_quota()")

    def _waiting(self, error: Exception) -> Flow[None]:
        """Wait until the gate is open; raise `error` where that takes too long."""
        gate, lane, past = self._gate, self._lane, self._waits
        if not self._wait:
            raise error
        if self._max_waits is not None and past.count >= self._max_waits:
            raise _given_up(error, f"{past.count} waits did not help, see maxQuotaWaits")
        past.count += 1
        began, accepted = lane.now, datetime.min
        while True:
            now = lane.now
            # A reset time is judged when it is new, not when the clock was changed.
            is_new, accepted = gate._until != accepted, gate._until or accepted
            waited = past.seconds + max(0.0, (now - began).total_seconds())
            if is_new and waited + gate.remaining(now) > self._longest + _MOMENT:
                raise _given_up(error, "the wait is too long, see maxQuotaWait")
            left = gate.remaining(now, margin=self._margin)
            if left < _MOMENT:
                break
            reset, message = gate.resets_at, gate.message
            yield from emit(
                QuotaWaiting(
                    remaining=left, resets_at=reset, message=message, planned=gate.is_planned
                )
            )
            yield from pause(min(self._every, left))
        waited = max(0.0, (lane.now - began).total_seconds())
        past.seconds += waited
        yield from emit(QuotaLifted(waited=waited))


def _given_up(error: Exception, why: str) -> Exception:
    """Return the error with the reason in its hint."""
    if isinstance(error, CugginoError):
        error.hint = f"{error.hint}; {why}" if error.hint else why
    return error


def _limit_of(error: BaseException | None) -> QuotaExceeded | None:
    while isinstance(error, LoopError):
        error = error.cause
    return error if isinstance(error, QuotaExceeded) else None
