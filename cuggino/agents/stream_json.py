"""A program that speaks Claude Code's stream-json, as a stream of agent events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reactivex import Observable, abc

from cuggino.agents.claude_wire import ClaudeSession
from cuggino.errors import AgentFailed, AgentNotFound, LineTooLong, ProcessFailed, SpawnFailed
from cuggino.events import LlmAgentEvent
from cuggino.operators import serial
from cuggino.sources.process import process_lines


def stream_json(
    argv: Sequence[str], *, program: str, cwd: Path, env: Mapping[str, str], stdin: str
) -> Observable[LlmAgentEvent]:
    """Run the program and emit what its lines say, `SessionEnded` last.

    `program` is its name in messages.

    Completes when the process has ended, not with its result: background tasks go on after it.
    Fails with an `LlmSessionError` after `SessionEnded`; `AgentNotFound` comes alone, as nothing
    was started. Disposal ends the process and everything it started.
    """

    def subscribe(
        observer: abc.ObserverBase[LlmAgentEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        lane = serial(scheduler)
        session = ClaudeSession(program=program)
        started = lane.now

        def on_next(line: bytes) -> None:
            for event in session.feed(line, now=lane.now.timestamp()):
                observer.on_next(event)

        def end(exit_code: int, stderr_tail: str, failure: AgentFailed | None = None) -> None:
            duration = (lane.now - started).total_seconds()
            ended, error = session.end(
                exit_code=exit_code, stderr_tail=stderr_tail, duration=duration
            )
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
        return process_lines(argv, cwd=cwd, env=env, stdin=words).subscribe(
            on_next, on_error, lambda: end(0, ""), scheduler=lane
        )

    return Observable(subscribe)
