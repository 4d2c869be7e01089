"""The cassette: a file with every stream of the agents of a run, one JSON object a line.

The first line (`cassette`) says what was recorded and in which version of the format; then each
session has a line when it begins (`session`), one for each of its events (`event`) and whenever it
has changed files (`files`), and one when it is over (`end`), behind which another agent may take
over (`gave_way`). `session` numbers the sessions from 1,
`n` the lines of a session as they are to be played (those of a message that was still being written
may stand further down), `at` is in seconds since the session began. Secrets are masked, the
project's folder and the id of the run are words (`cassettes.text`).

A line is written in one piece as soon as it is known, so a run that was killed leaves a cassette
of all that had happened; the half line at its end is not read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from cuggino.agents.cassettes.lines import (
    VERSION,
    CommitMade,
    EventTold,
    FilesChanged,
    FileState,
    GaveWay,
    Header,
    Line,
    RecordedError,
    SessionBegan,
    SessionOver,
)
from cuggino.errors import CassetteError, StorageError

__all__ = [
    "VERSION",
    "Cassette",
    "CommitMade",
    "EventTold",
    "FileState",
    "FilesChanged",
    "GaveWay",
    "Header",
    "Line",
    "RecordedError",
    "RecordedSession",
    "SessionBegan",
    "SessionOver",
    "check_new",
    "read_cassette",
    "write_line",
]


_KINDS: dict[str, type[Line]] = {
    "cassette": Header,
    "session": SessionBegan,
    "event": EventTold,
    "files": FilesChanged,
    "end": SessionOver,
    "gave_way": GaveWay,
}


@dataclass(slots=True)
class RecordedSession:
    """A session as it stands in a cassette."""

    began: SessionBegan
    lines: list[EventTold | FilesChanged] = field(default_factory=list)
    """In the order in which they are to be played."""
    over: SessionOver | None = None
    """None when the recording was cut off in its midst."""
    gave_way: GaveWay | None = None
    """The agent that took over behind it."""


class Cassette(NamedTuple):
    """What a cassette holds."""

    header: Header
    sessions: list[RecordedSession]


def read_cassette(path: Path) -> Cassette:
    """The cassette in the file. A last line that is cut off is passed over.

    Raises:
        CassetteError: there is none, it is of a newer version, or a line cannot be read.
    """
    lines = _lines(path)
    first = next(lines, None)
    if first is None or not isinstance(first[1], Header):
        raise _broken(path, None, "it does not begin as a cassette does")
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
            case GaveWay() if session is not None:
                session.gave_way = line
            case _:
                raise _broken(path, number, "it does not belong where it stands")
    for session in sessions.values():
        session.lines.sort(key=lambda line: line.n)
    return Cassette(first[1], list(sessions.values()))


def write_line(path: Path, line: Line) -> None:
    """Append the line to the cassette, in one piece; the header makes the file.

    Raises:
        StorageError: it could not be written; the line may be there in part.
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
            f"cannot go on recording to {path}: {error.strerror or error}",
            hint="check the permissions and the free space of the folder",
        ) from error


def check_new(path: Path) -> None:
    """Whether a cassette can be recorded to this file: it is new or empty, its folder writable.

    Raises:
        CassetteError: it cannot.
    """
    if not path.parent.is_dir():
        raise CassetteError(
            f"cannot record to {path}: there is no folder {path.parent}", hint="make it first"
        )
    if path.is_dir():
        raise CassetteError(f"cannot record to {path}: it is a folder", hint="name a file")
    if path.exists() and path.stat().st_size > 0:
        raise CassetteError(
            f"cannot record to {path}: it is there already",
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
    """What is written though it is the default."""
    return {"version": line.version} if isinstance(line, Header) else {}


def _lines(path: Path) -> Iterator[tuple[int, Line]]:
    try:
        parts = path.read_bytes().split(b"\n")
    except OSError as error:
        raise CassetteError(
            f"cannot read the cassette {path}: {error.strerror or error}",
            hint="--record FILE writes one",
        ) from error
    for number, part in enumerate(parts, start=1):
        if not part.strip():
            continue
        try:
            raw = json.loads(part)
        except ValueError as error:
            if number == len(parts) and number > 1:
                return  # the run was killed while it was being written
            raise _broken(path, number, "it is no JSON") from error
        if number == 1:
            _check_version(path, raw)
        try:
            yield number, _KINDS[raw["kind"]].model_validate(raw)
        except (ValidationError, KeyError, TypeError) as error:
            raise _broken(path, number, "it is none of a cassette") from error


def _check_version(path: Path, raw: Any) -> None:
    is_header = isinstance(raw, dict) and raw.get("kind") == "cassette"
    version = raw.get("version") if is_header else None
    if not isinstance(version, int):
        raise _broken(path, None, "it does not begin as a cassette does")
    if version > VERSION:
        raise CassetteError(
            f"the cassette {path} is of version {version}, and this cuggino reads {VERSION}",
            hint="update cuggino, or record it anew",
        )


def _broken(path: Path, line: int | None, why: str) -> CassetteError:
    where = "" if line is None else f", line {line}"
    return CassetteError(
        f"the cassette {path}{where} cannot be read: {why}",
        hint="take the file as it was recorded, or record it anew",
    )
