"""The fold over one session, as far as all providers share it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple, TypedDict

from cuggino.agents.base.failure import PlainLines, outcome_of
from cuggino.agents.base.refusals import Dialect, Refusal, judge, judge_answer, judge_ending
from cuggino.agents.base.watch import Watch
from cuggino.agents.base.wire import Json, is_message, parse_json_lines
from cuggino.domain import local_zone
from cuggino.errors import GuardNotLive, LlmSessionError
from cuggino.events import (
    LlmAgentEvent,
    PingEvent,
    RateLimited,
    SessionEnded,
    Usage,
    UsageUpdate,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a program, with the judge of what it means."""

    dialect: Dialect
    program: str
    exit_code: int
    """Negative if a signal terminated it."""
    said: str
    """Its plain text: standard error, then what stands in the place of its lines."""
    now: datetime
    zone: tzinfo

    def refused(self, refusal: Refusal) -> LlmSessionError:
        """Return the error for a refusal that the program reported."""
        return judge(refusal, self.dialect, now=self.now, zone=self.zone)

    def answered(self, text: str) -> LlmSessionError | None:
        """Return the error if the last answer consists of a limit only, else None."""
        return judge_answer(text, self.dialect, now=self.now, zone=self.zone)

    def without_result(self, *kinds: str, told: str = "", answer: str = "") -> LlmSessionError:
        """Return the error of a program without a result; `kinds` is what its exit code means.

        `told` is the last error that it reported, `answer` the last message of the model.
        """
        return self.answered(answer) or judge_ending(
            self.dialect,
            program=self.program,
            exit_code=self.exit_code,
            said="\n".join(filter(None, (self.said, told))),
            kinds=kinds,
            now=self.now,
            zone=self.zone,
        )


class Known(NamedTuple):
    """What is known about one session, whichever program it is of."""

    session_id: str | None = None
    """Id for resuming the session."""
    model: str | None = None
    """The model that the program reports."""
    usage: Usage | None = None
    cost_usd: float | None = None
    turns: int = 0
    answer: str = ""
    """The last message of the model."""
    is_truncated: bool = False
    """True if that was cut at the token limit."""
    limit: RateLimited | None = None
    """The last usage limit that the program reported by itself."""


def _local_zone() -> tzinfo:
    return local_zone(os.environ)


class ReaderOptions(TypedDict, total=False):
    """What every reader is given."""

    zone: Callable[[], tzinfo]
    """Returns the time zone for times without one."""
    watch: Watch | None
    """Watches a guarded session."""


class Session(ABC):
    """The fold over one session: feed it what the program reports, then end it once.

    A provider implements `failure`. `program` is its name in messages; `zone` returns the time zone
    for times without one. `watch` watches a guarded session, `resumed` is the id of a resumed one.
    """

    dialect: Dialect

    def __init__(
        self,
        *,
        program: str,
        zone: Callable[[], tzinfo] = _local_zone,
        watch: Watch | None = None,
        resumed: str | None = None,
    ) -> None:
        self.known = Known(session_id=resumed)
        self.plain = PlainLines()
        """What the program prints in the place of its messages."""
        self._program = program
        self._zone = zone
        self._watch = watch

    @property
    def is_over(self) -> bool:
        """True once nothing more is expected of the program."""
        return False

    @property
    def breach(self) -> LlmSessionError | None:
        """The error for which the session must end immediately, such as a breach of the guard."""
        return self._watch.breach if self._watch else None

    @abstractmethod
    def failure(self, ending: Ending) -> LlmSessionError | None:
        """Return why the session failed, by what was read and how the program ended."""

    def rest(self) -> list[LlmAgentEvent]:
        """Return the unfinished last message of a program that ended while writing it."""
        return []

    def used(self, usage: Usage | None) -> list[LlmAgentEvent]:
        """Return the event of the usage so far, if it has changed."""
        if usage is None or usage == self.known.usage:
            return []
        self.known = self.known._replace(usage=usage)
        return [UsageUpdate(usage=usage, cost_usd=self.known.cost_usd, model=self.known.model)]

    def ending(self, *, exit_code: int, stderr_tail: str, now: float) -> Ending:
        """Return how the program ended; `now` is in seconds since the epoch."""
        return Ending(
            dialect=self.dialect,
            program=self._program,
            exit_code=exit_code,
            said=self.plain.after(stderr_tail),
            now=datetime.fromtimestamp(now, UTC),
            zone=self._zone(),
        )

    def end(
        self,
        *,
        exit_code: int = 0,
        stderr_tail: str = "",
        failure: LlmSessionError | None = None,
        duration: float,
        now: float,
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """Return how the session ended, and its error if it failed.

        `exit_code` is negative if a signal terminated the process. `failure` is a cause outside of
        the program, which counts unless that has reported its end; a breach always counts.
        `duration` is in seconds, `now` in seconds since the epoch.
        """
        is_late = self.is_over and not isinstance(failure, GuardNotLive)
        error = self.breach or (None if is_late else failure)
        if error is None:
            ending = self.ending(exit_code=exit_code, stderr_tail=stderr_tail, now=now)
            error = self.failure(ending)
        known = self.known
        ended = SessionEnded(
            outcome=outcome_of(error),
            cost_usd=known.cost_usd,
            usage=known.usage,
            model=known.model,
            duration=duration,
            num_turns=known.turns or None,
            session_id=known.session_id,
            truncated=known.is_truncated,
        )
        return ended, error


class LineReader(Session):
    """The fold over the lines of one session, for which a provider implements `read`."""

    def feed(self, line: bytes, *, now: float) -> list[LlmAgentEvent]:
        """Return the events of this line; `now` is in seconds since the epoch. Never raises."""
        events: list[LlmAgentEvent] = []
        for raw in self._messages_in(line):
            read = self.read(raw, now=now)
            events += [PingEvent(timestamp=now)] if read is None else read
        return events

    def feed_all(self, lines: Sequence[bytes], *, now: float) -> Iterable[LlmAgentEvent]:
        """Yield the events of lines that came at once, up to a breach."""
        for line in lines:
            yield from self.feed(line, now=now)
            if self.breach is not None:
                return

    def _messages_in(self, line: bytes) -> list[Json]:
        """Return the messages on this line; one without any is plain text."""
        found = parse_json_lines(line)
        if not any(map(is_message, found)):
            self.plain.add(line)
        return found

    @abstractmethod
    def read(self, raw: Json, *, now: float) -> list[LlmAgentEvent] | None:
        """Return the events of a JSON line, or None for a mere sign of life."""


class Listener(LineReader):
    """The reader of a program that takes messages while it runs.

    It is over once the program has reported its end and waits for its input to close.
    """

    @abstractmethod
    def say(self, text: str) -> bytes:
        """Return the input for a person's message; `Steered` is read when the agent has it."""

    @abstractmethod
    def answers(self) -> bytes:
        """Return the input that the lines since the last call ask for, if any."""
