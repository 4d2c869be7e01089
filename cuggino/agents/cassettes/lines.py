"""The lines of a cassette: what stands in each; `cassette` tells in what order."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

VERSION = 1
"""Of the format; a reader knows its own and all before."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Header(_Line):
    """What was recorded, and by what."""

    kind: Literal["cassette"] = "cassette"
    version: int = VERSION
    cuggino: str
    """The version of cuggino."""
    agent: str
    agent_version: str = ""
    can_resume: bool = False
    capabilities: dict[str, Any] = Field(default_factory=dict)
    recorded_at: datetime


class SessionBegan(_Line):
    """A session, and what it was started with."""

    kind: Literal["session"] = "session"
    session: int
    at: float = 0.0
    """Seconds since the first session began."""
    role: str | None = None
    turn: int | None = None
    resumes: int | None = None
    """The session that it goes on with; 0 for one that is not in this cassette."""
    prompt: str
    system_prompt: str | None = None
    model: str | None = None
    guard: dict[str, Any] | None = None
    """The policy, None without one."""
    held: Literal["calls", "files", "none"] = "none"
    """How far every agent that could have worked in this role holds a policy."""
    mcp_servers: tuple[str, ...] = ()
    """Their names."""

    @property
    def title(self) -> str:
        """How messages call it."""
        turn = "" if self.turn is None else f" {self.turn}"
        return f"session {self.session} ({self.role or 'no role'}{turn})"


class EventTold(_Line):
    """An event, as `dump_event` writes it."""

    kind: Literal["event"] = "event"
    session: int
    n: int
    at: float
    event: dict[str, Any]


class FileState(_Line):
    """A file after a change: its content, or that it is gone."""

    text: str | None = None
    base64: str | None = None
    link: str | None = None
    """What a symbolic link points at."""
    gone: bool = False
    executable: bool = False
    omitted: str | None = None
    """Why its content is not here."""
    sha256: str | None = None
    """Of an omitted content."""


class CommitMade(_Line):
    """A commit that the agent itself has made."""

    message: str
    author: str
    email: str
    files: dict[str, FileState]


class FilesChanged(_Line):
    """Files of the project that the session has changed since the line before, by their paths."""

    kind: Literal["files"] = "files"
    session: int
    n: int
    at: float
    files: dict[str, FileState] = Field(default_factory=dict)
    commits: tuple[CommitMade, ...] = ()
    """Commits since then, made before `files` are as they are."""


class RecordedError(_Line):
    """An error with which a session has ended."""

    type: str
    """The name of its class in `cuggino.errors`."""
    message: str
    hint: str | None = None
    reason: str | None = None
    resets_at: datetime | None = None


class SessionOver(_Line):
    """How a session's stream has ended; `disposed`: whoever watched it has ended it."""

    kind: Literal["end"] = "end"
    session: int
    n: int
    at: float
    how: Literal["completed", "failed", "disposed"]
    error: RecordedError | None = None


class GaveWay(_Line):
    """Behind a session that failed for good another agent took over its role (`RoutingAgent`)."""

    kind: Literal["gave_way"] = "gave_way"
    session: int
    event: dict[str, Any]
    """The `AgentFellBack`."""


Line = Header | SessionBegan | EventTold | FilesChanged | SessionOver | GaveWay
