"""The texts between a client and its attempts: events, files and errors, and orders back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from cuggino import errors
from cuggino.errors import CugginoError
from cuggino.events import Event, dump_event, parse_event
from cuggino.placement.assignment import packed, unpacked
from cuggino.placement.limits import Limit, Window


class FileGrown(NamedTuple):
    """A file of the attempt's state: new content at an offset, or the whole file."""

    name: str
    start: int | None
    """The offset of the content in the file; None for the whole file."""
    content: bytes


class FileGone(NamedTuple):
    """A removed file of the attempt's state."""

    name: str


class Failed(NamedTuple):
    """The error of the attempt; the last text."""

    error: CugginoError


class Limits(NamedTuple):
    """The usage limits that the attempt has met, and the usage windows that it knows."""

    limits: tuple[Limit, ...]
    windows: tuple[Window, ...] = ()


Said: TypeAlias = Event | FileGrown | FileGone | Failed | Limits


def encode(said: Said) -> str:
    """Encode a message of an attempt, or usage limits sent to one, as a text."""
    match said:
        case FileGrown(name, start, content):
            return json.dumps({"file": name, "start": start, "content": packed(content)})
        case FileGone(name):
            return json.dumps({"gone": name})
        case Failed(error):
            return json.dumps({"error": error_fields(error)})
        case Limits(limits, windows):
            return json.dumps(
                {
                    "limits": [limit.model_dump(mode="json") for limit in limits],
                    "windows": [window.model_dump(mode="json") for window in windows],
                }
            )
        case _:
            return dump_event(said)


def decode(text: str) -> Said:
    """Decode a text.

    Raises:
        ValueError: the message is unknown.
    """
    if text.startswith('{"_tag"'):
        return parse_event(text)
    match json.loads(text):
        case {"file": str(name), "start": int() | None as start, "content": str(content)}:
            return FileGrown(name, start, unpacked(content))
        case {"gone": str(name)}:
            return FileGone(name)
        case {"error": dict(fields)}:
            return Failed(error_of(fields))
        case {"limits": list(limits), "windows": list(windows)}:
            return Limits(
                tuple(map(Limit.model_validate, limits)),
                tuple(map(Window.model_validate, windows)),
            )
        case _:
            raise ValueError("the attempt says something unknown")


def error_fields(error: CugginoError) -> dict[str, Any]:
    """Return an error as JSON, with its cause."""
    fields = {name: _field(value) for name, value in vars(error).items()}
    known = {name: value for name, value in fields.items() if value is not NotImplemented}
    return {"type": type(error).__name__, "fields": known}


def error_of(raw: Mapping[str, Any]) -> CugginoError:
    """Rebuild an error; an unknown kind becomes a `CugginoError`."""
    kind = getattr(errors, str(raw.get("type")), CugginoError)
    if not (isinstance(kind, type) and issubclass(kind, CugginoError)):
        kind = CugginoError
    given = raw.get("fields")
    fields = (
        {name: _value(value) for name, value in given.items()} if isinstance(given, dict) else {}
    )
    error = kind.__new__(kind)
    CugginoError.__init__(error, str(fields.get("message", "it failed")))
    for name, value in fields.items():
        if name.isidentifier() and not name.startswith("_") and name != "code":
            setattr(error, name, value)
    cause = fields.get("cause")
    if isinstance(cause, CugginoError):
        error.__cause__ = cause
    return error


def _field(value: object) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return {"at": value.isoformat()}
        case CugginoError():
            return error_fields(value)
        case list() | tuple():
            kept: list[Literal["list"] | Any] = [_field(one) for one in value]
            return [one for one in kept if one is not NotImplemented]
        case _:
            return NotImplemented


def _value(raw: Any) -> Any:
    match raw:
        case {"at": str(when)}:
            return datetime.fromisoformat(when)
        case {"type": str(), "fields": dict()}:
            return error_of(raw)
        case list():
            return tuple(_value(one) for one in raw)
        case _:
            return raw
