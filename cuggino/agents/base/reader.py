"""The reader of a program's lines: the fold over one session, as far as all providers share it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import ClassVar, TypedDict

from cuggino.agents.base.failure import PlainLines, outcome_of
from cuggino.agents.base.refusals import Dialect, Refusal, judge, judge_answer, judge_ending
from cuggino.agents.base.watch import Watch
from cuggino.agents.base.wire import Json, is_message, parse_json_lines
from cuggino.domain import local_zone
from cuggino.errors import LlmSessionError
from cuggino.events import LlmAgentEvent, PingEvent, RateLimited, SessionEnded, Usage, UsageUpdate


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


class Session:
    """What is known about one session, and how it is reported."""

    def __init__(self) -> None:
        self.session_id: str | None = None
        """Id for resuming the session."""
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.model: str | None = None
        """The model that the program reports."""
        self.turns = 0
        self.answer = ""
        """The last message of the model."""
        self.is_truncated = False
        """True if that was cut at the token limit."""

    def used(self, usage: Usage) -> list[LlmAgentEvent]:
        """Return the event of the usage so far, if it has changed."""
        if usage == self.usage:
            return []
        self.usage = usage
        return [UsageUpdate(usage=usage, cost_usd=self.cost_usd, model=self.model)]

    def ended(self, error: LlmSessionError | None, *, duration: float) -> SessionEnded:
        """Return the event of the session's end; `duration` is in seconds."""
        return SessionEnded(
            outcome=outcome_of(error),
            cost_usd=self.cost_usd,
            usage=self.usage,
            model=self.model,
            duration=duration,
            num_turns=self.turns or None,
            session_id=self.session_id,
            truncated=self.is_truncated,
        )


def _local_zone() -> tzinfo:
    return local_zone(os.environ)


class ReaderOptions(TypedDict, total=False):
    """What every reader is given."""

    zone: Callable[[], tzinfo]
    """Returns the time zone for times without one."""
    watch: Watch | None
    """Watches a guarded session."""


class LineReader(Session, ABC):
    """The fold over the lines of one session: feed it every line of stdout, then end it once.

    A provider implements `read` and `failure`. `program` is its name in messages; `zone` returns
    the time zone for times without one. `watch` watches a guarded session.
    """

    dialect: ClassVar[Dialect]
    limit: RateLimited | None = None
    """The last usage limit that the program reported by itself."""

    def __init__(
        self,
        *,
        program: str,
        zone: Callable[[], tzinfo] = _local_zone,
        watch: Watch | None = None,
    ) -> None:
        super().__init__()
        self._program = program
        self._zone = zone
        self._watch = watch
        self._plain = PlainLines()

    @property
    def breach(self) -> LlmSessionError | None:
        """The error for which the session must end immediately, such as a breach of the guard."""
        return self._watch.breach if self._watch else None

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
            self._plain.add(line)
        return found

    @abstractmethod
    def read(self, raw: Json, *, now: float) -> list[LlmAgentEvent] | None:
        """Return the events of a JSON line, or None for a mere sign of life."""

    @abstractmethod
    def failure(self, ending: Ending) -> LlmSessionError | None:
        """Return why the session failed, by what was read and how the program ended."""

    def end(
        self, *, exit_code: int, stderr_tail: str, duration: float, now: float
    ) -> tuple[SessionEnded, LlmSessionError | None]:
        """Return how the session ended, and its error if it failed.

        `exit_code` is negative if a signal terminated the process. `duration` is in seconds, `now`
        in seconds since the epoch.
        """
        error = self.breach or self.failure(
            Ending(
                dialect=self.dialect,
                program=self._program,
                exit_code=exit_code,
                said=self._plain.after(stderr_tail),
                now=datetime.fromtimestamp(now, UTC),
                zone=self._zone(),
            )
        )
        return self.ended(error, duration=duration), error
