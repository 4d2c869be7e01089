"""The cassette: a file with all sessions of the agents of a run, one JSON object per line.

The first line (`cassette`) states what was recorded, in which version of the format. Each session
has a line when it starts (`session`), one for each of its events (`event`) and whenever it has
changed files (`files`), and one when it ends (`end`), after which another agent may take over
(`gave_way`). `session` numbers the sessions from 1; `n` numbers the lines of a session in the order
of replay (those of an unfinished message may come later in the file); `at` is in seconds since the
session started. Secrets are masked, and the project's folder and the id of the run are placeholders
(`cassettes.masking`, `cassettes.places`).

A line is written as a whole as soon as it is known, so a killed run leaves a cassette of everything
that had happened; an incomplete last line is ignored.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cuggino.agents.base.agent import GuardLevel
from cuggino.errors import CassetteError, StorageError
from cuggino.files import read_regular

VERSION = 1
"""Version of the format; a reader supports its own and all earlier ones."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Header(_Line):
    """The recorded agent, and the version of cuggino that recorded it."""

    kind: Literal["cassette"] = "cassette"
    version: int = VERSION
    cuggino: str
    """Version of cuggino."""
    agent: str
    agent_version: str = ""
    can_resume: bool = False
    capabilities: dict[str, Any] = Field(default_factory=dict)
    recorded_at: datetime


class SessionBegan(_Line):
    """The start of a session, with its options."""

    kind: Literal["session"] = "session"
    session: int
    at: float = 0.0
    """Seconds since the first session started."""
    role: str | None = None
    turn: int | None = None
    resumes: int | None = None
    """The session that it resumes; 0 for one that is not in this cassette."""
    prompt: str
    system_prompt: str | None = None
    model: str | None = None
    guard: dict[str, Any] | None = None
    """The policy, or None."""
    held: GuardLevel = "none"
    """The guard supported by every agent that could have worked in this role."""
    mcp_servers: tuple[str, ...] = ()
    """Names of the MCP servers."""

    @property
    def title(self) -> str:
        """Name in messages."""
        turn = "" if self.turn is None else f" {self.turn}"
        return f"session {self.session} ({self.role or 'no role'}{turn})"


class EventTold(_Line):
    """An event, as written by `dump_event`."""

    kind: Literal["event"] = "event"
    session: int
    n: int
    at: float
    event: dict[str, Any]


class FileState(_Line):
    """The state of a file after a change."""

    text: str | None = None
    base64: str | None = None
    link: str | None = None
    """Target of a symbolic link."""
    gone: bool = False
    executable: bool = False
    omitted: str | None = None
    """The reason why the content is missing."""
    sha256: str | None = None
    """Hash of a missing content."""


class CommitMade(_Line):
    """A commit made by the agent itself."""

    message: str
    author: str
    email: str
    files: dict[str, FileState]


class FilesChanged(_Line):
    """Files of the project that the session changed since the previous line, by path."""

    kind: Literal["files"] = "files"
    session: int
    n: int
    at: float
    files: dict[str, FileState] = Field(default_factory=dict)
    commits: tuple[CommitMade, ...] = ()
    """Commits since then, made before the changes in `files`."""


class RecordedError(_Line):
    """The error of a session."""

    type: str
    """Name of its class in `cuggino.errors`."""
    message: str
    hint: str | None = None
    reason: str | None = None
    resets_at: datetime | None = None


class SessionOver(_Line):
    """The end of a session's stream; `disposed` means by its subscriber."""

    kind: Literal["end"] = "end"
    session: int
    n: int
    at: float
    how: Literal["completed", "failed", "disposed"]
    error: RecordedError | None = None


class FellBack(_Line):
    """Another agent took over the role after a permanent failure (`LlmAgent.fall_back`)."""

    kind: Literal["gave_way"] = "gave_way"
    session: int
    event: dict[str, Any]
    """The `AgentFellBack`."""


Line = Header | SessionBegan | EventTold | FilesChanged | SessionOver | FellBack

_KINDS: dict[str, type[Line]] = {
    "cassette": Header,
    "session": SessionBegan,
    "event": EventTold,
    "files": FilesChanged,
    "end": SessionOver,
    "gave_way": FellBack,
}


@dataclass(slots=True)
class RecordedSession:
    """A session in a cassette."""

    began: SessionBegan
    lines: list[EventTold | FilesChanged] = field(default_factory=list)
    """In the order of replay."""
    over: SessionOver | None = None
    """None if the recording was interrupted."""
    fell_back: FellBack | None = None
    """The agent that took over afterwards."""


class Cassette(NamedTuple):
    """The contents of a cassette."""

    header: Header
    sessions: list[RecordedSession]


def read_cassette(path: Path) -> Cassette:
    """Read the cassette, without an incomplete last line.

    Raises:
        CassetteError: it is missing, of a newer version, or has an unreadable line.
    """
    lines = _lines(path)
    first = next(lines, None)
    if first is None or not isinstance(first[1], Header):
        raise _broken(path, None, "it is not a cassette")
    sessions: dict[int, RecordedSession] = {}
    for number, line in lines:
        if isinstance(line, SessionBegan) and line.session not in sessions:
            sessions[line.session] = RecordedSession(line)
            continue
        session = None if isinstance(line, Header) else sessions.get(line.session)
        match line:
            case EventTold() | FilesChanged() if session is not None:
                session.lines.append(line)
            case SessionOver() if session is not None:
                session.over = line
            case FellBack() if session is not None:
                session.fell_back = line
            case _:
                raise _broken(path, number, "the line is out of place")
    for session in sessions.values():
        session.lines.sort(key=lambda line: line.n)
    return Cassette(first[1], list(sessions.values()))


def write_line(path: Path, line: Line) -> None:
    """Append the line to the cassette in one piece; the header creates the file.

    Raises:
        StorageError: it cannot be written; a part of the line may exist.
    """
    fields = line.model_dump(exclude_none=True, exclude_defaults=True)
    whole = {"kind": line.kind, **_kept(line), **fields}
    text = json.dumps(whole, ensure_ascii=False, default=_time)
    try:
        data = text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        data = json.dumps(json.loads(text)).encode()
    flags = os.O_WRONLY | os.O_APPEND | (os.O_CREAT if isinstance(line, Header) else 0)
    try:
        file = os.open(path, flags, 0o600)
        try:
            rest = memoryview(data + b"\n")
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
    except OSError as error:
        raise StorageError(
            "record",
            f"cannot continue recording to {path}: {error.strerror or error}",
            hint="check the permissions and the free space of the folder",
        ) from error


def check_new(path: Path) -> None:
    """Check that a cassette can be recorded to this file: it is new or empty, its folder writable.

    Raises:
        CassetteError: it cannot.
    """
    if not path.parent.is_dir():
        raise CassetteError(
            f"cannot record to {path}: there is no folder {path.parent}", hint="make it first"
        )
    if path.is_dir():
        raise CassetteError(f"cannot record to {path}: it is a folder", hint="name a file")
    if path.exists() and not path.is_file():
        raise CassetteError(f"cannot record to {path}: it is not a file", hint="name a file")
    if path.exists() and path.stat().st_size > 0:
        raise CassetteError(
            f"cannot record to {path}: it already exists",
            hint="remove it, or record to another file; a recording is never overwritten",
        )
    place = path if path.exists() else path.parent
    if not os.access(place, os.W_OK):
        raise CassetteError(
            f"cannot record to {path}: {place} cannot be written",
            hint="check the owner and permissions of the folder",
        )


def _time(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _kept(line: Line) -> dict[str, Any]:
    """Return defaults that are written nevertheless."""
    return {"version": line.version} if isinstance(line, Header) else {}


def _lines(path: Path) -> Iterator[tuple[int, Line]]:
    try:
        parts = read_regular(path, biggest=sys.maxsize).split(b"\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise CassetteError(
            f"cannot read the cassette {path}: {why or error}",
            hint="--record FILE writes one",
        ) from error
    for number, part in enumerate(parts, start=1):
        if not part.strip():
            continue
        try:
            raw = json.loads(part)
        except ValueError as error:
            if number == len(parts) and number > 1:
                return  # the run was killed while writing it
            raise _broken(path, number, "it is not JSON") from error
        if number == 1:
            _check_version(path, raw)
        try:
            yield number, _KINDS[raw["kind"]].model_validate(raw)
        except (ValidationError, KeyError, TypeError) as error:
            raise _broken(path, number, "it is not a line of a cassette") from error


def _check_version(path: Path, raw: Any) -> None:
    is_header = isinstance(raw, dict) and raw.get("kind") == "cassette"
    version = raw.get("version") if is_header else None
    if not isinstance(version, int):
        raise _broken(path, None, "it is not a cassette")
    if version > VERSION:
        raise CassetteError(
            f"the cassette {path} has version {version}, but this cuggino supports up to {VERSION}",
            hint="update cuggino, or record it again",
        )


def _broken(path: Path, line: int | None, why: str) -> CassetteError:
    where = "" if line is None else f", line {line}"
    return CassetteError(
        f"the cassette {path}{where} cannot be read: {why}",
        hint="take the file as it was recorded, or record it again",
    )
