"""One recorded session as a stream: its events in time, its files, its end."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, assert_never, cast, get_args

from reactivex import abc
from reactivex.disposable import SerialDisposable

from cuggino.agents.cassettes.cassette import (
    EventTold,
    FilesChanged,
    FileState,
    RecordedError,
    RecordedSession,
    SessionOver,
)
from cuggino.agents.cassettes.git import commit_again
from cuggino.agents.cassettes.project_files import put_files
from cuggino.agents.cassettes.text import Places, map_texts
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    AgentNotFound,
    AgentStalled,
    AgentTooOld,
    BudgetExceeded,
    CugginoError,
    GuardNotLive,
    LlmSessionError,
    QuotaExceeded,
)
from cuggino.events import (
    Event,
    LlmAgentEvent,
    PingEvent,
    PolicyEvent,
    RateLimited,
    SessionEnded,
    ToolCall,
    parse_event,
)

_SOON = 1.0
"""Seconds from now at which a usage limit is lifted that had hours left, when nothing is paced."""

Check = Callable[[ToolCall], CugginoError | None]


class Playing(abc.DisposableBase):
    """Plays a session to one observer, from `start` until it is over or disposed of.

    `began` is when the session began in the recording; `is_last`, whether that has no other behind
    it; `check` gives the error with which the session ends in place of a call.
    """

    def __init__(
        self,
        session: RecordedSession,
        observer: abc.ObserverBase[LlmAgentEvent],
        lane: abc.SchedulerBase,
        *,
        project: Path,
        cassette: Path,
        places: Places,
        speed: float,
        began: datetime,
        is_last: bool,
        check: Check,
    ) -> None:
        self._session = session
        self._observer = observer
        self._lane = lane
        self._project = project
        self._cassette = cassette.resolve()
        self._places = places
        self._speed = speed
        self._began = began
        self._is_last = is_last
        self._check = check
        self._start = lane.now
        self._at = 0
        """The line that comes next."""
        self._has_ended = False
        """Whether the agent has said how its session ended."""
        self._pending = SerialDisposable()
        self._is_over = False

    def start(self) -> None:
        """Begin; nothing is emitted before the scheduler's next action."""
        self._schedule()

    def dispose(self) -> None:
        """Be silent. What the session changed behind its last event, it changes still."""
        if self._is_over:
            return
        self._is_over = True
        self._pending.dispose()
        rest = self._session.lines[self._at :]
        if not any(isinstance(line, EventTold) for line in rest):
            with suppress(CugginoError):
                for line in rest:
                    assert isinstance(line, FilesChanged)
                    self._put(line)

    def _schedule(self) -> None:
        lines, over = self._session.lines, self._session.over
        line = lines[self._at] if self._at < len(lines) else over
        due = 0.0
        if self._speed and line is not None:
            passed = (self._lane.now - self._start).total_seconds()
            due = max(0.0, line.at / self._speed - passed)
        self._pending.disposable = self._lane.schedule_relative(due, self._step)

    def _step(self, _scheduler: abc.SchedulerBase, _state: object = None) -> None:
        if self._is_over:
            return
        if self._at == len(self._session.lines):
            self._end()
            return
        line = self._session.lines[self._at]
        self._at += 1
        try:
            match line:
                case FilesChanged():
                    self._put(line)
                case EventTold():
                    self._tell(line)
                case _:
                    assert_never(line)
        except CugginoError as error:
            self._finish(error)
        if not self._is_over:
            self._schedule()

    def _tell(self, line: EventTold) -> None:
        event = self._event(line)
        if event is None:
            return
        if isinstance(event, ToolCall) and (error := self._check(event)) is not None:
            raise error
        self._has_ended = isinstance(event, SessionEnded)
        self._observer.on_next(event)

    def _event(self, line: EventTold) -> LlmAgentEvent | None:
        """The event as it would be said now; None for one that this version does not know."""
        event = event_of(line.event, self._places)
        if isinstance(event, PingEvent):
            return event.model_copy(update={"timestamp": self._lane.now.timestamp()})
        if isinstance(event, RateLimited) and event.resets_at is not None:
            return event.model_copy(update={"resets_at": self._later(event.resets_at, line.at)})
        if not isinstance(event, LlmAgentEvent | PolicyEvent):
            return None
        # One that chooses among agents says among their events that another one takes over.
        return cast("LlmAgentEvent", event)

    def _later(self, time: datetime, at: float) -> datetime:
        """The time as far away as it was, at the speed of the replay."""
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        left = (time - self._began).total_seconds() - at
        left = left / self._speed if self._speed else min(left, _SOON)
        return self._lane.now.astimezone(time.tzinfo) + timedelta(seconds=left)

    def _put(self, line: FilesChanged) -> None:
        for commit in line.commits:
            paths = self._files(commit.files)
            filled = commit.model_copy(update={"message": self._places.filled(commit.message)})
            commit_again(self._project, filled, paths)
        self._files(line.files)

    def _files(self, files: dict[str, FileState]) -> list[str]:
        """Put them; never over the recording that is being played."""
        return put_files(self._project, files, self._places, without=self._cassette)

    def _end(self) -> None:
        over = self._session.over
        match over:
            case None:
                self._finish(self._cut_off())
            case SessionOver(how="completed"):
                self._finish(None)
            case SessionOver(how="failed", error=error):
                self._finish(self._error(error, over.at))
            case SessionOver(how="disposed"):
                if self._has_ended:
                    self._finish(None)
                elif self._is_last:
                    self._finish(self._cut_off())
            case _:
                raise AssertionError(over)

    def _finish(self, error: Exception | None) -> None:
        self._is_over = True
        if error is None:
            self._observer.on_completed()
        else:
            self._observer.on_error(error)

    def _cut_off(self) -> AgentFailed:
        return AgentFailed(
            f"the recording ends in the midst of {self._session.began.title}",
            reason="aborted",
            hint="the recorded run was interrupted there: record it anew for the rest",
        )

    def _error(self, error: RecordedError | None, at: float) -> Exception:
        if error is None:
            return AgentFailed("the session failed", reason="unknown")
        message = self._places.filled(error.message)
        hint = None if error.hint is None else self._places.filled(error.hint)
        if error.type == "QuotaExceeded":
            resets_at = None if error.resets_at is None else self._later(error.resets_at, at)
            return QuotaExceeded(message, resets_at=resets_at)
        if (kind := _PLAIN.get(error.type)) is not None:
            return kind(message, hint=hint)
        reason: Any = error.reason if error.reason in get_args(AgentFailure) else "unknown"
        return AgentFailed(message, reason=reason, hint=hint)


def event_of(recorded: dict[str, Any], places: Places) -> Event | None:
    """The event, with what its words name; None when its fields do not fit this version."""
    filled = {
        name: value if name == "_tag" else map_texts(value, places.filled)
        for name, value in recorded.items()
    }
    try:
        return parse_event(json.dumps(filled))
    except ValueError:
        return None


_PLAIN: dict[str, type[LlmSessionError]] = {
    kind.__name__: kind
    for kind in (AgentNotFound, AgentTooOld, AgentStalled, BudgetExceeded, GuardNotLive)
}
