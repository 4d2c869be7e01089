"""One session of an agent as lines of a cassette, written as they become known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.agents.cassettes import git
from cuggino.agents.cassettes.cassette import (
    CommitMade,
    EventTold,
    FilesChanged,
    GaveWay,
    Line,
    RecordedError,
    SessionOver,
    write_line,
)
from cuggino.agents.cassettes.project_files import Tree, content_state
from cuggino.agents.cassettes.text import Writing
from cuggino.errors import CugginoError
from cuggino.events import (
    AgentMessage,
    Event,
    LlmAgentEvent,
    MessageDelta,
    PolicyEvent,
    SessionEnded,
    ToolCall,
    ToolResult,
    dump_event,
)
from cuggino.security.tools import READERS

_Part = tuple[int, float, MessageDelta]


class SessionWriter:
    """Writes the lines of one session; one object for each.

    Deltas are written when their message is there, so that a secret that is spread over several is
    seen as a whole.
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
        """Whether the agent has said how its session ended, behind which it changes nothing."""
        # The loop itself writes the session's file while the agent works.
        own = [path, *([] if session_file is None else [Path(session_file)])]
        self._tree = Tree(project, writing=writing, without=own)
        self._head = git.head(project)

    def write(self, event: LlmAgentEvent) -> None:
        """Write the event, before it the files that were changed when it may tell of that.

        Raises:
            StorageError: it could not be written.
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
        """Write how the session has ended.

        Raises:
            StorageError: it could not be written.
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

    def write_gave_way(self, event: PolicyEvent) -> None:
        """Write that another agent takes over behind this session.

        Raises:
            StorageError: it could not be written.
        """
        self._line(GaveWay(session=self._session, event=self._fields(event)))

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
        """Write what has changed in the project since the last look."""
        text = self._writing.text
        commits: list[CommitMade] = []
        head = git.head(self._project)
        if head is not None and head != self._head:
            for commit in git.commits_since(self._project, self._head, head, state=self._state):
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


class Recorded:
    """One subscription: the agent's session, and what writes it down."""

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
        self._source.dispose()  # first: what it does until then belongs to the session
        if not self._is_over:
            self._is_over = True
            with suppress(CugginoError):  # nobody listens any more; the cassette has no end then
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
