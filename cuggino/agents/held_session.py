"""How a session's stream ends, and what sessions share that are spoken with from another thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from reactivex import abc

from cuggino.errors import (
    AgentNotFound,
    LineTooLong,
    LlmSessionError,
    ProcessFailed,
    QuotaExceeded,
    SpawnFailed,
)
from cuggino.events import LlmAgentEvent, RateLimited, SessionEnded


def conclude(
    observer: abc.ObserverBase[LlmAgentEvent],
    end: Callable[[], tuple[SessionEnded, LlmSessionError | None]],
    *,
    limit: Callable[[], RateLimited | None] = lambda: None,
    failure: LlmSessionError | None = None,
) -> None:
    """Tell how the session ended: `SessionEnded` last, then the error or completion.

    `end` reads the end; what it raises is a defect, and ends the stream, as nothing else would: the
    program is over. A usage limit that the program has not told itself (`limit` is what it last
    told) is told before. `failure` counts more than the error that was read.
    """
    try:
        ended, error = end()
    except Exception as defect:
        observer.on_error(defect)
        return
    told = limit()
    if isinstance(error, QuotaExceeded) and (told is None or told.status != "rejected"):
        observer.on_next(RateLimited(status="rejected", resets_at=error.resets_at))
    observer.on_next(ended)
    if error := failure or error:
        observer.on_error(error)
    else:
        observer.on_completed()


def not_started(error: SpawnFailed) -> AgentNotFound:
    """The error of a session whose program could not be started; it comes alone."""
    return AgentNotFound(error.message, hint="check that the program is installed")


class HeldSession(ABC):
    """One subscription to a program that is spoken with from a thread beside the lane.

    Its methods run on the lane, but for `_post` and `dispose`.
    """

    def __init__(self, observer: abc.ObserverBase[LlmAgentEvent], lane: abc.SchedulerBase) -> None:
        self._observer, self._lane = observer, lane
        self._started = lane.now
        self._is_over = False

    @abstractmethod
    def dispose(self) -> None:
        """End everything and wait for that; from any thread, any number of times."""

    @abstractmethod
    def _crashed(self, error: ProcessFailed | LineTooLong) -> None:
        """The program has failed, or has printed what cannot be read."""

    def _post(self, action: Callable[[], None]) -> None:
        """From the other thread to the lane."""
        if self._is_over:
            return
        try:
            self._lane.schedule(lambda *_: self._guarded(action))
        except Exception:  # the scheduler is closed: nobody is left to be told
            self._is_over = True

    def _guarded(self, action: Callable[[], None]) -> None:
        """What a subscriber raises ends the session, and reaches its `on_error`."""
        if self._is_over:
            return
        try:
            action()
        except BaseException as error:
            self.dispose()
            if not isinstance(error, Exception):
                raise
            self._observer.on_error(error)

    def _on_error(self, error: Exception) -> None:
        """How the program failed."""
        match error:
            case ProcessFailed() | LineTooLong():
                self._crashed(error)
            case SpawnFailed():
                self.dispose()
                self._observer.on_error(not_started(error))
            case _:
                self.dispose()
                self._observer.on_error(error)
