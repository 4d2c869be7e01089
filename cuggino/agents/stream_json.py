"""A program that prints one JSON object a line, as a stream of agent events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

from cuggino.agents.held_session import conclude, not_started
from cuggino.agents.zone import local_zone
from cuggino.errors import (
    AgentFailed,
    LineTooLong,
    LlmSessionError,
    ProcessFailed,
    SpawnFailed,
)
from cuggino.events import LlmAgentEvent, MessageDelta, PingEvent, RateLimited, SessionEnded
from cuggino.operators import serial
from cuggino.sources.process import process_batches


class SessionReader(Protocol):
    """The fold over what one run of a program prints: a provider's own part (`ClaudeSession`, ...).

    It knows nothing of processes and clocks, and never raises: what is not understood is skipped.
    """

    @property
    def limit(self) -> RateLimited | None:
        """The last that the program said of a usage limit."""

    @property
    def breach(self) -> LlmSessionError | None:
        """Why the session must be ended at once, if it must."""

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """The events of this line; `now` is in seconds since the epoch."""

    def end(
        self, *, exit_code: int, stderr_tail: str, duration: float, now: float
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """How the run ended, and its error if it failed; after `breach`, that is told instead.

        `exit_code` is negative when a signal ended the process; `duration` is in seconds, `now` in
        seconds since the epoch.
        """


def stream_json(
    argv: Sequence[str],
    *,
    program: str,
    cwd: Path,
    env: Mapping[str, str],
    stdin: str,
    session: Callable[..., SessionReader],
) -> Observable[LlmAgentEvent]:
    """Run the program and emit what its lines say, `SessionEnded` last.

    `program` is its name in messages. `session` makes what reads the lines, from `program` and
    `zone`, which gives the time zone of a time that is told without one. A usage limit that was
    known only by the program's words is told by a `RateLimited` before `SessionEnded`.

    Of what comes at once, signs of life are one, and so are the pieces of a text that follow each
    other.

    Completes when the process has ended, not with its result: background tasks go on after it.
    Fails with an `LlmSessionError` after `SessionEnded`; `AgentNotFound` comes alone, as nothing
    was started; a breach of the guard ends the process and everything it started first, and so does
    disposal.
    """

    def subscribe(
        observer: abc.ObserverBase[LlmAgentEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        lane = serial(scheduler)
        reader = session(program=program, zone=lambda: local_zone(env))
        started = lane.now

        def on_next(batch: list[bytes]) -> None:
            now = lane.now.timestamp()
            signs = _Signs(observer.on_next)
            for line in batch:
                if subscription.is_disposed:
                    return
                for event in reader.feed(line, now=now):
                    signs.tell(event)
                if breach := reader.breach:
                    signs.flush()
                    subscription.dispose()
                    end(-9, "", breach)
                    return
            signs.flush()

        def end(exit_code: int, stderr_tail: str, failure: LlmSessionError | None = None) -> None:
            now = lane.now
            conclude(
                observer,
                lambda: reader.end(
                    exit_code=exit_code,
                    stderr_tail=stderr_tail,
                    duration=(now - started).total_seconds(),
                    now=now.timestamp(),
                ),
                limit=lambda: reader.limit,
                failure=failure,
            )

        def on_error(error: Exception) -> None:
            match error:
                case ProcessFailed():
                    end(error.child_exit_code, error.stderr_tail)
                case LineTooLong():
                    end(-9, "", AgentFailed(error.message, reason="crash"))
                case SpawnFailed():
                    observer.on_error(not_started(error))
                case _:
                    observer.on_error(error)

        # Halves of surrogate pairs (from a command line that is no UTF-8) cannot be encoded.
        words = stdin.encode("utf-8", "replace")
        subscription = SingleAssignmentDisposable()
        subscription.disposable = process_batches(argv, cwd=cwd, env=env, stdin=words).subscribe(
            on_next, on_error, lambda: end(0, ""), scheduler=lane
        )
        return subscription

    return Observable(subscribe)


class _Signs:
    """Tells events on; of those in a row that one could tell as well, it tells one.

    Two thirds of what a fast program prints are signs of life and pieces of text. Each event costs
    the whole way through all operators.
    """

    def __init__(self, on_next: Callable[[LlmAgentEvent], None]) -> None:
        self._on_next = on_next
        self._ping: PingEvent | None = None
        self._delta: MessageDelta | None = None
        self._texts: list[str] = []

    def tell(self, event: LlmAgentEvent) -> None:
        """Tell it now, or with what comes next."""
        match event:
            case PingEvent():
                self._ping = event
            case MessageDelta():
                if self._delta is not None and not _of_one_text(self._delta, event):
                    self.flush()
                self._delta = self._delta or event
                self._texts.append(event.text)
            case _:
                self.flush()
                self._on_next(event)

    def flush(self) -> None:
        """Tell what was kept."""
        ping, delta, texts = self._ping, self._delta, self._texts
        self._ping, self._delta, self._texts = None, None, []
        if ping is not None:
            self._on_next(ping)
        if delta is not None:
            joined = delta.model_copy(update={"text": "".join(texts)})
            self._on_next(joined if len(texts) > 1 else delta)


def _of_one_text(one: MessageDelta, other: MessageDelta) -> bool:
    return (one.message_id, one.parent_tool_use_id) == (other.message_id, other.parent_tool_use_id)
