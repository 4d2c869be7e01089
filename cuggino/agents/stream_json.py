"""A program that prints one JSON object a line, as a stream of agent events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

from cuggino.agents.claude_zone import local_zone
from cuggino.errors import (
    AgentFailed,
    AgentNotFound,
    LineTooLong,
    LlmSessionError,
    ProcessFailed,
    QuotaExceeded,
    SpawnFailed,
)
from cuggino.events import LlmAgentEvent, RateLimited, SessionEnded
from cuggino.operators import serial
from cuggino.sources.process import process_lines


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

        def on_next(line: bytes) -> None:
            if subscription.is_disposed:
                return
            for event in reader.feed(line, now=lane.now.timestamp()):
                observer.on_next(event)
            if breach := reader.breach:
                subscription.dispose()
                end(-9, "", breach)

        def end(exit_code: int, stderr_tail: str, failure: LlmSessionError | None = None) -> None:
            now = lane.now
            ended, error = reader.end(
                exit_code=exit_code,
                stderr_tail=stderr_tail,
                duration=(now - started).total_seconds(),
                now=now.timestamp(),
            )
            told = reader.limit is not None and reader.limit.status == "rejected"
            if isinstance(error, QuotaExceeded) and not told:
                observer.on_next(RateLimited(status="rejected", resets_at=error.resets_at))
            observer.on_next(ended)
            if error := failure or error:
                observer.on_error(error)
            else:
                observer.on_completed()

        def on_error(error: Exception) -> None:
            match error:
                case ProcessFailed():
                    end(error.child_exit_code, error.stderr_tail)
                case LineTooLong():
                    end(-9, "", AgentFailed(error.message, reason="crash"))
                case SpawnFailed():
                    observer.on_error(
                        AgentNotFound(error.message, hint="check that the program is installed")
                    )
                case _:
                    observer.on_error(error)

        # Halves of surrogate pairs (from a command line that is no UTF-8) cannot be encoded.
        words = stdin.encode("utf-8", "replace")
        subscription = SingleAssignmentDisposable()
        subscription.disposable = process_lines(argv, cwd=cwd, env=env, stdin=words).subscribe(
            on_next, on_error, lambda: end(0, ""), scheduler=lane
        )
        return subscription

    return Observable(subscribe)
