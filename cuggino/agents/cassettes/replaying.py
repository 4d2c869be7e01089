"""An agent that replays a cassette: no program, no model, no tokens."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, assert_never, cast, get_args

from reactivex import Observable, abc, just, throw
from reactivex.disposable import SerialDisposable

from cuggino._version import __version__
from cuggino.agents.base.agent import (
    Capabilities,
    GuardLevel,
    InteractiveOptions,
    LlmAgent,
    SpawnOptions,
)
from cuggino.agents.base.guard import not_live
from cuggino.agents.cassettes.cassette import (
    Cassette,
    EventTold,
    FilesChanged,
    FileState,
    RecordedError,
    RecordedSession,
    SessionBegan,
    SessionOver,
    read_cassette,
)
from cuggino.agents.cassettes.files import commit_again, put_files
from cuggino.agents.cassettes.matching import PolicyCheck, first_difference
from cuggino.agents.cassettes.places import Places, map_texts
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    AgentNotFound,
    AgentStalled,
    AgentTooOld,
    BudgetExceeded,
    ConfigError,
    CugginoError,
    GuardNotLive,
    LlmSessionError,
    QuotaExceeded,
    ReplayDiverged,
)
from cuggino.events import (
    Event,
    LlmAgentEvent,
    PingEvent,
    QuotaUsed,
    RateLimited,
    SessionEnded,
    SupervisionEvent,
    ToolCall,
    parse_event,
)
from cuggino.guard import Policy, Role, find_shfmt
from cuggino.operators.scheduler import serial

_SOON = 1.0
"""Seconds until a usage limit with hours left is lifted, when replaying at full speed."""

Check = Callable[[ToolCall], CugginoError | None]


class Playing(abc.DisposableBase):
    """Replays a session to one observer, from `start` until it is over or disposed.

    `began` is when the session started in the recording; `is_last`, whether no other follows;
    `check` returns the error with which the session ends instead of a call.
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
        """The next line."""
        self._has_ended = False
        """True once the agent has reported its end."""
        self._pending = SerialDisposable()
        self._is_over = False

    def start(self) -> None:
        """Start; nothing is emitted before the scheduler's next action."""
        self._schedule()

    def dispose(self) -> None:
        """Stop emitting. Changes recorded after the last event are still made."""
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
        """Return the event for this replay; None for an unknown one, from another version."""
        event = event_of(line.event, self._places)
        if isinstance(event, PingEvent):
            return event.model_copy(update={"timestamp": self._lane.now.timestamp()})
        if isinstance(event, QuotaUsed | RateLimited) and event.resets_at is not None:
            return event.model_copy(update={"resets_at": self._later(event.resets_at, line.at)})
        if not isinstance(event, LlmAgentEvent | SupervisionEvent):
            return None
        # The events of a router include `AgentFellBack`.
        return cast("LlmAgentEvent", event)

    def _later(self, time: datetime, at: float) -> datetime:
        """Shift the time by the duration that remained, at the speed of the replay."""
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
        """Restore files, but never over the recording itself."""
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
            f"the recording ends within {self._session.began.title}",
            reason="aborted",
            hint="the recorded run was interrupted there: record it again for the rest",
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
    """Return the event with its placeholders replaced; None if this version cannot parse it."""
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


def replay_of(path: str | os.PathLike[str], *, speed: float | None = None) -> ReplayAgent:
    """Return the agent that replays the cassette; see `ReplayAgent`.

    Raises:
        CassetteError: the file is missing, broken, or of a newer version.
    """
    cassette = read_cassette(Path(path))
    return ReplayAgent(cassette, path, speed=speed)


def with_speed(agent: LlmAgent, speed: float) -> LlmAgent:
    """Set the speed of an agent that replays.

    Raises:
        ConfigError: it is another agent, or the speed is invalid.
    """
    if not isinstance(agent, ReplayAgent):
        raise ConfigError(
            f"the agent {agent.name} has no speed", hint="a speed is for --agent replay:FILE"
        )
    agent.speed = speed
    return agent


class ReplayAgent(LlmAgent):
    """Replays the sessions of a cassette; see `replay_of`.

    Each session is matched by its role and turn; of several (retries, requests for a marker) the
    next one is taken. Prompt and system prompt must equal the recorded ones, except for ids, times,
    durations, hashes, temporary folders and the project's own folder. Files that the session
    changed are written again, before the event after which the change was noticed, and the agent's
    commits are made again. If the recorded agent was guarded, each call is checked by the policy of
    this run, which must give the recorded verdict.

    `speed` is a factor relative to the recording, by the scheduler's clock: 1 as recorded, 10 ten
    times as fast; 0, infinity or None, the default, at once.

    A session that its loop ended is silent where it stopped, until it is disposed again. The last
    one, which may have been interrupted, fails there with `AgentFailed`.
    """

    name = "replay"

    def __init__(
        self, cassette: Cassette, path: str | os.PathLike[str], *, speed: float | None = None
    ) -> None:
        self._cassette = cassette
        self.path = Path(path).absolute()
        self._left = list(cassette.sessions)
        self._last: dict[Role | None, tuple[RecordedSession, Places]] = {}
        self._diverged: CugginoError | None = None
        self.speed = speed

    @property
    def speed(self) -> float:
        """The speed; 0 is at once."""
        return self._speed

    @speed.setter
    def speed(self, speed: float | None) -> None:
        if speed is not None and (math.isnan(speed) or speed < 0):
            raise ConfigError(f"{speed:g} is not a speed", hint="1 is as recorded, 0 at once")
        self._speed = 0.0 if speed is None or math.isinf(speed) else speed

    @property
    def own_files(self) -> tuple[Path, ...]:
        return (self.path,)

    @property
    def unplayed(self) -> tuple[str, ...]:
        """Recorded sessions that have not been replayed yet."""
        return tuple(session.began.title for session in self._left)

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the recorded agent, as far as they show in its events."""
        told: Mapping[str, Any] = self._cassette.header.capabilities
        # Roles may be guarded where others are not.
        level = told.get("guard")
        guard: GuardLevel = level if level in ("files", "asked") else "calls"
        is_guarded = any(each.began.held != "none" for each in self._cassette.sessions)
        return Capabilities(
            guard=guard if is_guarded else "none",
            mcp=told.get("mcp") is True,
            resume=self._cassette.header.can_resume,
            cost=told.get("cost", "none"),
            deltas=told.get("deltas") is True,
            note=f"plays a recording of {self._cassette.header.agent}",
        )

    def check(self) -> str:
        """Return the recorded agent, its version, and the date of the recording."""
        header = self._cassette.header
        agent = f"{header.agent} {header.agent_version}".strip()
        return f"{agent}, recorded {header.recorded_at:%Y-%m-%d}"

    def sandbox_unavailable(self) -> str:
        """Return "": a replay runs no commands."""
        return ""

    def interactive(self, options: InteractiveOptions) -> int:
        """Refuse, as a recording cannot be interactive."""
        raise AgentFailed("a recording has no interactive session", reason="bad_request")

    @property
    def is_router(self) -> bool:
        """True: the recording replaces the agents of every role."""
        return True

    def check_guard(self, policy: Policy) -> None:
        """See `LlmAgent.check_guard`: calls are checked in this process."""
        try:
            find_shfmt()
        except ConfigError as error:
            raise not_live(error.message) from error

    def fall_back(self, role: Role | None, error: Exception) -> Observable[SupervisionEvent]:
        """See `LlmAgent.fall_back`: another agent takes over where one did in the recording."""
        session, places = self._last.get(role, (None, None))
        if session is None or places is None or session.fell_back is None:
            return throw(error)
        event = event_of(session.fell_back.event, places)
        return just(event) if isinstance(event, SupervisionEvent) else throw(error)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Replay the recorded session; see `LlmAgent.spawn` and the class.

        Fails with `ReplayDiverged` before any event if the session differs from the recorded one,
        or before the first tool call on which the policy now gives another verdict; so does every
        later session. Fails with `CassetteError` if files cannot be written as recorded.
        """

        def subscribe(
            observer: abc.ObserverBase[LlmAgentEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            lane = serial(scheduler)
            places = Places.of(options)
            session = self._next(options, places)
            playing = Playing(
                session,
                observer,
                lane,
                project=options.cwd,
                cassette=self.path,
                places=places,
                speed=self._speed,
                began=self._cassette.header.recorded_at + timedelta(seconds=session.began.at),
                is_last=session is self._cassette.sessions[-1],
                check=self._policy_check(session, options, places),
            )
            playing.start()
            return playing

        return Observable(subscribe)

    def _next(self, options: SpawnOptions, places: Places) -> RecordedSession:
        if self._diverged is not None:
            raise self._diverged
        wanted = (options.role, options.turn)
        session = next((s for s in self._left if (s.began.role, s.began.turn) == wanted), None)
        if session is None:
            asked = _title(options)
            left = f"; left are {', '.join(self.unplayed)}" if self._left else ""
            raise self._divergence(f"the recording has no (other) session of {asked}{left}")
        self._left.remove(session)
        self._last[options.role] = (session, places)
        self._check_told(session.began, options, places)
        return session

    def _check_told(self, began: SessionBegan, options: SpawnOptions, places: Places) -> None:
        goes_on = options.resume_session_id is not None
        if goes_on != (began.resumes is not None):
            then, now = ("was a new session", "resumes another one")
            if not goes_on:
                then, now = "resumed another session", "is a new one"
            raise self._divergence(f"{began.title} {then} in the recording, and {now} now")
        for what, recorded, told in (
            ("system prompt", began.system_prompt, options.system_prompt),
            ("prompt", began.prompt, options.prompt),
        ):
            difference = first_difference(recorded or "", told or "", places)
            if difference is not None:
                raise self._divergence(
                    f"the {what} of {began.title} differs in line {difference.line}: "
                    f"recorded {difference.expected}, now {difference.found}"
                )

    def _policy_check(
        self, session: RecordedSession, options: SpawnOptions, places: Places
    ) -> Check:
        if session.began.held != "calls":
            return lambda _call: None
        same = self._cassette.header.cuggino == __version__
        judge = PolicyCheck(session, options, places, same_version=same)

        def check(call: ToolCall) -> CugginoError | None:
            complaint = judge.complaint(call)
            if complaint is None:
                return None
            return self._divergence(f"in {session.began.title}, {complaint}")

        return check

    def _divergence(self, message: str) -> ReplayDiverged:
        diverged = ReplayDiverged(message)
        self._diverged = diverged
        return diverged


def _title(options: SpawnOptions) -> str:
    turn = "" if options.turn is None else f" {options.turn}"
    return f"{options.role or 'no role'}{turn}"
