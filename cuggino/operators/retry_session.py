"""`retry_session`: an agent that failed in passing is started again."""

from __future__ import annotations

import random as chance
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable, SingleAssignmentDisposable

from cuggino.errors import AgentFailed, AgentFailure, CugginoError, LoopError
from cuggino.events import AgentRetry
from cuggino.operators.scheduler import serial

T = TypeVar("T")

_IN_PASSING: frozenset[AgentFailure] = frozenset(
    {"connection", "crash", "overloaded", "rate_limit", "server", "unknown"}
)
_OUTAGES: frozenset[AgentFailure] = frozenset({"connection", "overloaded", "rate_limit", "server"})


def is_transient(error: Exception) -> bool:
    """True for a failure that may be gone when the agent is started again.

    These are the `AgentFailed` with the reasons `connection`, `overloaded`, `server` (5xx),
    `rate_limit` (too many requests at once; a usage limit is `QuotaExceeded`), `crash` (the
    program ended without a result) and `unknown` (it gave no reason that is understood: some
    retries cost less than a night that ended for nothing). Of a `LoopError` its cause decides.

    Everything else stays as it is however often it is tried (`auth`, `billing`, `bad_request`,
    `prompt_too_long`, no agent), is somebody's decision (`aborted`, `max_turns`, a budget), or has
    a policy of its own (`QuotaExceeded`, `AgentStalled`).
    """
    match error:
        case AgentFailed(reason=reason):
            return reason in _IN_PASSING
        case LoopError(cause=CugginoError() as cause):
            return is_transient(cause)
        case _:
            return False


def is_outage(error: Exception) -> bool:
    """True for a transient failure of the service or the way to it, not of the agent's program."""
    cause = error.cause if isinstance(error, LoopError) else error
    return isinstance(cause, AgentFailed) and cause.reason in _OUTAGES


def retry_session(
    *,
    max_retries: int = 3,
    first: float = 5.0,
    factor: float = 2.0,
    longest: float = 300.0,
    jitter: float = 0.2,
    random: Callable[[], float] = chance.random,
    transient: Callable[[Exception], bool] = is_transient,
    again: Callable[[Exception], Observable[T]] | None = None,
) -> Callable[[Observable[T]], Observable[T | AgentRetry]]:
    """Start the source again after a pause, when it failed in a way that may pass.

    ::

        source:             a--#            is_transient(error)
        again:                      b--|
        retry_session:      a--R----b--|    R = AgentRetry(retry_in=5.0, ...), and 5 s

    Retry n comes after `first * factor ** (n - 1)` seconds, `longest` at most, times a random
    factor between `1 - jitter` and `1 + jitter`, so that agents that failed together do not come
    back together; `random` gives numbers from 0 to 1. `AgentRetry` is emitted before the pause.
    What is subscribed then is `again(error)` if given, else the source once more. The failed one
    is released before `AgentRetry` is emitted.

    Errors: one that `transient` does not accept passes on at once and without an event; so does
    the last one after `max_retries` failed retries (0 retries nothing). A subscription counts for
    itself: put around one stage, a stage that succeeds begins the count anew. An exception of the
    subscriber is no failure of the agent and is never retried.
    """

    def operator(source: Observable[T]) -> Observable[T | AgentRetry]:
        def subscribe(
            observer: abc.ObserverBase[T | AgentRetry], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            def spread(pause: float) -> float:
                return max(0.0, pause * (1.0 + jitter * (2.0 * random() - 1.0)))

            retrying = _Retrying(
                observer,
                scheduler,
                pauses=map(spread, _backoff(first, factor, longest)),
                max_retries=max_retries,
                transient=transient,
                again=again or (lambda _error: source),
            )
            retrying.run(source)
            return Disposable(retrying.dispose)

        return Observable(subscribe)

    return operator


def _backoff(first: float, factor: float, longest: float) -> Iterator[float]:
    pause = min(first, longest)
    while True:
        yield pause
        pause = min(pause * factor, longest)


class _Retrying:
    """One subscription: what runs now, the agent or the pause, is the one thing it holds."""

    def __init__(
        self,
        observer: abc.ObserverBase[Any],
        scheduler: abc.SchedulerBase | None,
        *,
        pauses: Iterator[float],
        max_retries: int,
        transient: Callable[[Exception], bool],
        again: Callable[[Exception], Observable[Any]],
    ) -> None:
        self._observer = observer
        self._scheduler = scheduler
        self._pauses = pauses
        self._max_retries = max_retries
        self._transient = transient
        self._again = again
        self._retries = 0
        self._current = SerialDisposable()
        self._closed = False

    def run(self, source: Observable[Any]) -> None:
        """Subscribe one attempt; its end is acted on when `subscribe` has returned, not within."""
        attempt = SingleAssignmentDisposable()
        self._current.disposable = attempt
        subscribing, ending = True, cast("Callable[[], None] | None", None)

        def end(then: Callable[[], None]) -> None:
            nonlocal ending
            if self._closed or attempt.is_disposed:
                return
            if subscribing:
                ending = then
            else:
                attempt.dispose()
                then()

        attempt.disposable = source.subscribe(
            lambda event: self._send(event) if not attempt.is_disposed else None,
            lambda error: end(lambda: self._failed(error)),
            lambda: end(self._complete),
            scheduler=self._scheduler,
        )
        subscribing = False
        if ending is not None:
            end(ending)

    def _failed(self, error: Exception) -> None:
        try:
            retried = self._retries < self._max_retries and self._transient(error)
        except Exception as failure:
            self._fail(failure)
            return
        if not retried:
            self._fail(error)
            return
        self._retries += 1
        pause = next(self._pauses)
        self._send(self._announcement(error, pause))
        timer = SingleAssignmentDisposable()
        self._current.disposable = timer
        timer.disposable = serial(self._scheduler).schedule_relative(
            pause, lambda *_: self._start_again(error)
        )

    def _start_again(self, error: Exception) -> None:
        if self._closed:
            return
        try:
            source = self._again(error)
        except Exception as failure:
            self._fail(failure)
            return
        self.run(source)

    def _announcement(self, error: Exception, pause: float) -> AgentRetry:
        reported = error.cause if isinstance(error, LoopError) and error.cause else error
        return AgentRetry(
            reason=reported.reason
            if isinstance(reported, AgentFailed)
            else type(reported).__name__,
            message=str(reported),
            attempt=self._retries,
            max_retries=self._max_retries,
            retry_in=pause,
        )

    def _send(self, event: Any) -> None:
        if self._closed:
            return
        try:
            self._observer.on_next(event)
        except Exception as error:  # the subscriber's failure is no agent's failure
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.dispose()
        self._observer.on_error(error)

    def _complete(self) -> None:
        self.dispose()
        self._observer.on_completed()

    def dispose(self) -> None:
        self._closed = True
        self._current.dispose()
