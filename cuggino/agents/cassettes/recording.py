"""An agent that records another one to a cassette."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable

from cuggino._version import __version__
from cuggino.agents.base.agent import (
    AgentLike,
    Capabilities,
    DelegatingAgent,
    GuardLevel,
    LlmAgent,
    SpawnOptions,
    adopt,
    weakest_guard,
)
from cuggino.agents.cassettes.cassette import (
    CommitMade,
    EventTold,
    FellBack,
    FilesChanged,
    Header,
    Line,
    RecordedError,
    SessionBegan,
    SessionOver,
    check_new,
    write_line,
)
from cuggino.agents.cassettes.files import Tree, commits_since, content_state, head_commit
from cuggino.agents.cassettes.masking import Masker
from cuggino.agents.cassettes.places import Places, Writing
from cuggino.errors import CugginoError
from cuggino.events import (
    AgentMessage,
    Event,
    LlmAgentEvent,
    MessageDelta,
    SessionEnded,
    SupervisionEvent,
    ToolCall,
    ToolResult,
    dump_event,
)
from cuggino.guard import READERS, Role
from cuggino.operators.scheduler import serial

if TYPE_CHECKING:
    pass

_Part = tuple[int, float, MessageDelta]


class SessionWriter:
    """Writes the lines of one session.

    Deltas are written when their message is complete, so that a secret that spans several is
    masked.
    """

    def __init__(
        self,
        path: Path,
        session: int,
        *,
        lane: abc.SchedulerBase,
        project: Path,
        writing: Writing,
        session_file: str | None,
        on_id: Callable[[str], None],
    ) -> None:
        self._path = path
        self._session = session
        self._lane = lane
        self._began = lane.now
        self._project = project
        self._writing = writing
        self._on_id = on_id
        self._n = 0
        self._parts: dict[tuple[str, str | None], list[_Part]] = {}
        self._tools: dict[str, str] = {}
        self._is_told = False
        """True once the agent has reported its end; after that it changes nothing."""
        # The loop itself writes the session's file while the agent works.
        own = [path, *([] if session_file is None else [Path(session_file)])]
        self._tree = Tree(project, writing=writing, without=own)
        self._head = head_commit(project)

    def write(self, event: LlmAgentEvent) -> None:
        """Write the event, preceded by the files that may have changed before it.

        Raises:
            StorageError: it cannot be written.
        """
        match event:
            case MessageDelta():
                place = (event.message_id, event.parent_tool_use_id)
                self._parts.setdefault(place, []).append((*self._next(), event))
                return
            case AgentMessage(message_id=str(message)):
                self._write_parts([(message, event.parent_tool_use_id)])
            case ToolCall():
                self._tools[event.id] = event.name
            case ToolResult() if self._tools.get(event.name) not in READERS:
                self._look()
            case SessionEnded():
                self._look()
                self._is_told = True
                if event.session_id is not None:
                    self._on_id(event.session_id)
            case _:
                pass
        self._write_event(*self._next(), event)

    def end(
        self, how: Literal["completed", "failed", "disposed"], error: Exception | None = None
    ) -> None:
        """Write how the session ended.

        Raises:
            StorageError: it cannot be written.
        """
        self._write_parts(list(self._parts))
        if not self._is_told:
            self._look()
        n, at = self._next()
        self._line(
            SessionOver(
                session=self._session,
                n=n,
                at=at,
                how=how,
                error=None if error is None else self._error(error),
            )
        )

    def _write_parts(self, places: Iterable[tuple[str, str | None]]) -> None:
        for place in places:
            parts = self._parts.pop(place, [])
            texts = self._writing.parts([event.text for _, _, event in parts])
            for (n, at, event), text in zip(parts, texts, strict=True):
                self._write_event(n, at, event, text=text)

    def write_fallback(self, event: SupervisionEvent) -> None:
        """Write that another agent takes over after this session.

        Raises:
            StorageError: it cannot be written.
        """
        self._line(FellBack(session=self._session, event=self._fields(event)))

    def _write_event(
        self, n: int, at: float, event: LlmAgentEvent, *, text: str | None = None
    ) -> None:
        fields = self._fields(event)
        if text is not None:
            fields["text"] = text
        self._line(EventTold(session=self._session, n=n, at=at, event=fields))

    def _fields(self, event: Event) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(dump_event(event))
        return {
            name: value if name == "_tag" else self._writing.json(value)
            for name, value in fields.items()
            if value is not None
        }

    def _look(self) -> None:
        """Write the changes in the project since the last call."""
        text = self._writing.text
        commits: list[CommitMade] = []
        head = head_commit(self._project)
        if head is not None and head != self._head:
            for commit in commits_since(self._project, self._head, head, state=self._state):
                update: dict[str, object] = {
                    "message": text(commit.message),
                    "author": text(commit.author),
                    "email": text(commit.email),
                    "files": {
                        text(path): state
                        for path, state in commit.files.items()
                        if not self._tree.leaves_out(path)
                    },
                }
                commits.append(commit.model_copy(update=update))
        self._head = head
        files = self._tree.changes()
        if not files and not commits:
            return
        n, at = self._next()
        changed = FilesChanged(
            session=self._session, n=n, at=at, files=files, commits=tuple(commits)
        )
        self._line(changed)

    def _state(self, data: bytes, executable: bool) -> Any:
        return content_state(data, executable=executable, writing=self._writing)

    def _next(self) -> tuple[int, float]:
        self._n += 1
        return self._n, round((self._lane.now - self._began).total_seconds(), 6)

    def _line(self, line: Line) -> None:
        write_line(self._path, line)

    def _error(self, error: Exception) -> RecordedError:
        text = self._writing.text
        hint, resets_at = getattr(error, "hint", None), getattr(error, "resets_at", None)
        reason = getattr(error, "reason", None)
        return RecordedError(
            type=type(error).__name__,
            message=text(str(error)),
            hint=text(hint) if isinstance(hint, str) else None,
            reason=text(reason) if isinstance(reason, str) else None,
            resets_at=resets_at if isinstance(resets_at, datetime) else None,
        )


class RecordedSubscription:
    """One subscription to a recorded session."""

    def __init__(self, observer: abc.ObserverBase[LlmAgentEvent], writer: SessionWriter) -> None:
        self._observer = observer
        self._writer = writer
        self._source: abc.DisposableBase = Disposable()
        self._is_over = False

    def subscribe(self, source: Observable[LlmAgentEvent], lane: abc.SchedulerBase) -> None:
        source_subscription = source.subscribe(
            self._on_next, self._on_error, self._on_completed, scheduler=lane
        )
        if self._is_over:
            source_subscription.dispose()
        self._source = source_subscription

    def dispose(self) -> None:
        self._source.dispose()  # first, as its last changes belong to the session
        if not self._is_over:
            self._is_over = True
            with suppress(CugginoError):  # no subscriber is left
                self._writer.end("disposed")

    def _on_next(self, event: LlmAgentEvent) -> None:
        if self._is_over:
            return
        try:
            self._writer.write(event)
        except CugginoError as error:
            self._is_over = True
            self._source.dispose()
            self._observer.on_error(error)
            return
        self._observer.on_next(event)

    def _on_error(self, error: Exception) -> None:
        self._finish(error)

    def _on_completed(self) -> None:
        self._finish(None)

    def _finish(self, error: Exception | None) -> None:
        if self._is_over:
            return
        self._is_over = True
        try:
            self._writer.end("completed" if error is None else "failed", error)
        except CugginoError as failure:
            error = error or failure
        if error is not None:
            self._observer.on_error(error)
        else:
            self._observer.on_completed()


def record_to(
    path: str | os.PathLike[str], agent: AgentLike, *, env: Mapping[str, str] | None = None
) -> RecordingAgent:
    """Return the agent, recorded to this file.

    A router is recorded as a whole: each of its sessions is one, whichever agents worked in it.

    `env` is searched for secrets, besides the environments of the agent's programs and of each
    session, and the settings of MCP servers; it defaults to that of this process.

    Raises:
        CassetteError: the file cannot be written, or already holds a recording.
    """
    return RecordingAgent(adopt(agent), path, env=env)


class RecordingAgent(DelegatingAgent):
    """Delegates to the other agent, and records every session as it runs; see `record_to`.

    The file is created when the first session starts. Recording does not change a session, except
    for short pauses in which the files of the project are scanned: when it starts, after each tool
    that may have written, and at its end. Interactive sessions are not recorded.
    """

    def __init__(
        self,
        agent: LlmAgent,
        path: str | os.PathLike[str],
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(agent)
        self.path = Path(path).absolute()
        self._masker = Masker(os.environ if env is None else env)
        for own in agent.environments:
            self._masker = self._masker.with_env(own)
        self._sessions = 0
        self._known: dict[str, int] = {}
        self._began: datetime | None = None
        self._last: dict[Role | None, SessionWriter] = {}
        check_new(self.path)

    @property
    def own_files(self) -> tuple[Path, ...]:
        return (self.path, *self.agent.own_files)

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session of the agent and record it; see `LlmAgent.spawn`.

        Each event is in the file before it is emitted, except deltas of an unfinished message. If
        recording fails, the agent is ended and the session fails with `StorageError`.
        """

        def subscribe(
            observer: abc.ObserverBase[LlmAgentEvent],
            scheduler: abc.SchedulerBase | None = None,
        ) -> abc.DisposableBase:
            lane = serial(scheduler)
            writer = self._begin(options, lane)
            session = RecordedSubscription(observer, writer)
            session.subscribe(self.agent.spawn(replace(options, drafts=True)), lane)
            return Disposable(session.dispose)

        return Observable(subscribe)

    def _begin(self, options: SpawnOptions, lane: abc.SchedulerBase) -> SessionWriter:
        masker = self._masker.with_env(options.env).with_servers(options.mcp_servers)
        writing = Writing(masker, Places.of(options))
        if self._began is None:
            check_new(self.path)
            header = Header(
                cuggino=__version__,
                agent=self.agent.name,
                agent_version=writing.text(_version(self.agent)),
                can_resume=self.agent.capabilities.resume,
                capabilities=_plain(self.agent.capabilities),
                recorded_at=lane.now,
            )
            write_line(self.path, header)
            self._began = lane.now
        self._sessions += 1
        number, resumed = self._sessions, options.resume_session_id
        if options.session_id is not None:
            self._known[options.session_id] = number
        write_line(
            self.path,
            SessionBegan(
                session=number,
                at=(lane.now - self._began).total_seconds(),
                role=options.role,
                turn=options.turn,
                resumes=None if resumed is None else self._known.get(resumed, 0),
                prompt=writing.text(options.prompt),
                system_prompt=(
                    None if options.system_prompt is None else writing.text(options.system_prompt)
                ),
                model=None if options.model is None else writing.text(options.model),
                guard=(
                    None
                    if options.guard is None
                    else writing.json(json.loads(options.guard.to_json()))
                ),
                held=self._held(options.role),
                mcp_servers=tuple(writing.text(name) for name in options.mcp_servers),
            ),
        )
        writer = self._last[options.role] = SessionWriter(
            self.path,
            number,
            lane=lane,
            project=options.cwd,
            writing=writing,
            session_file=options.env.get("CUGGINO_SESSION_FILE"),
            on_id=lambda name: self._known.__setitem__(name, number),
        )
        return writer

    def _held(self, role: Role | None) -> GuardLevel:
        return weakest_guard(each.capabilities.guard for each in self.agent.agents_for(role))

    def fall_back(self, role: Role | None, error: Exception) -> Observable[SupervisionEvent]:
        """Record which agent took over; see `LlmAgent.fall_back`."""
        note: Callable[[SupervisionEvent], None] = partial(self._fell_back, role)
        return self.agent.fall_back(role, error).pipe(ops.do_action(note))

    def _fell_back(self, role: Role | None, event: SupervisionEvent) -> None:
        if (writer := self._last.get(role)) is not None:
            writer.write_fallback(event)


def _version(agent: LlmAgent) -> str:
    try:
        return agent.check()
    except CugginoError:
        return ""


def _plain(capabilities: Capabilities) -> dict[str, object]:
    return {name: getattr(capabilities, name) for name in Capabilities.__slots__}
