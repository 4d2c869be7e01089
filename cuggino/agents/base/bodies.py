"""What the APIs behind the programs answer: errors as JSON within messages, and headers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from cuggino.agents.base.quota import time_or_none
from cuggino.agents.base.wire import Json, dict_or_empty, is_number, list_or_empty, text_or_none
from cuggino.domain import parse_reset

_LEVELS = 8
"""Levels of JSON in JSON that are unwrapped."""
_READ = 20_000
_NAMES = ("type", "code", "reason", "status", "name")
_STATUSES = ("code", "status", "statusCode", "status_code")
_AFTER = frozenset(
    (
        "retryafter",
        "retryafterseconds",
        "retrydelay",
        "resetsinseconds",
        "resetinseconds",
        "resetsin",
        "resetafter",
        "resetafterseconds",
        "quotaresetdelay",
    )
)
_AT = frozenset(("resetsat", "resetat", "resettime", "resetdate", "retryat", "quotaresettimestamp"))
"""Members that hold the end of a limit, in lower case and without separators."""
_HEADERS = (
    "retry-after-ms",
    "retry-after",
    "anthropic-ratelimit-unified-reset",
    "x-ratelimit-reset",
    "ratelimit-reset",
)
"""Headers with the end of a limit, the most exact one first."""
_EPOCH = 1e9
"""A larger number is a time rather than a duration."""
_EPOCH_MS = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """An error of an API within a message."""

    message: str
    """The innermost message."""
    before: str = ""
    """The program's words before the JSON."""
    errors: tuple[Json, ...] = ()
    """From the outermost to the innermost one."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Types and codes, the innermost first."""
        told = list(reversed(self.errors))
        named = (error.get(name) for error in [*_details(told), *told] for name in _NAMES)
        return tuple(name for name in named if isinstance(name, str))

    @property
    def status(self) -> int | None:
        """The HTTP status, of the innermost error that has one."""
        for error in reversed(self.errors):
            for name in _STATUSES:
                if is_number(status := error.get(name)) and 400 <= status < 600:
                    return int(status)
        return None

    def resets_at(self, now: datetime) -> datetime | None:
        """Return when the limit is lifted, by a field of its own."""
        told = list(reversed(self.errors))
        found = (_reset(error, now) for error in [*told, *_details(told)])
        return next((at for at in found if at is not None), None)


def body_in(message: str) -> Body:
    """Return the error of an API within this message, which may be JSON in JSON."""
    told, before, errors = message, "", list[Json]()
    for _ in range(_LEVELS):
        start, value = _first_object(told)
        error = _error_of(value)
        if not error:
            break
        if not errors:
            before = told[:start].strip(" \t\n:[")
        errors.append(error)
        inner = text_or_none(error.get("message"))
        if not inner:
            break
        told = inner
    return Body(message=told, before=before, errors=tuple(errors))


def reset_of_headers(headers: Any, now: datetime) -> datetime | None:
    """Return when the server accepts requests again, by the headers of its answer."""
    given = {name.lower(): value for name, value in dict_or_empty(headers).items()}
    for name in _HEADERS:
        told = given.get(name)
        if name.endswith("-ms") and (number := _number(told)) is not None:
            told = number / 1000
        if (at := _after(told, now)) is not None:
            return at
    return None


def _first_object(text: str) -> tuple[int, Json]:
    """Return the first object in the text, which may be the first one of a list."""
    start = text.find("{", 0, _READ)
    if start < 0:
        return 0, {}
    try:
        return start, dict_or_empty(json.JSONDecoder().raw_decode(text, start)[0])
    except (ValueError, RecursionError):
        return 0, {}


def _error_of(value: Json) -> Json:
    """Return the error that this object is or has, with its message; else an empty object."""
    match value:
        case {"error": dict(error)} if error:
            return {**_own(value), **error}
        case {"error": str(text)} if text:
            return {"message": text, "type": text, **_own(value)}
        case {"message": str()} if any(name in value for name in _NAMES):
            return value
        case {"detail": str(text)} if text:
            return {**value, "message": text}
        case _:
            return {}


def _own(value: Json) -> Json:
    return {name: told for name, told in value.items() if name not in ("error", "type")}


def _details(errors: list[Json]) -> Iterator[Json]:
    """Yield the details of Google's errors, and their metadata."""
    for error in errors:
        for detail in map(dict_or_empty, list_or_empty(error.get("details"))):
            yield detail
            yield dict_or_empty(detail.get("metadata"))


def _reset(error: Mapping[str, Any], now: datetime) -> datetime | None:
    for name, value in error.items():
        key = name.replace("_", "").replace("-", "").lower()
        at = _after(value, now) if key in _AFTER else _time(value) if key in _AT else None
        if at is not None:
            return at
    return None


def _after(told: Any, now: datetime) -> datetime | None:
    """Return the end of a wait: seconds, a duration, a date, or seconds since the epoch."""
    number = _number(told)
    try:
        if number is not None:
            return _time(number) if number >= _EPOCH else now + timedelta(seconds=max(0, number))
        if not isinstance(told, str):
            return None
        if (at := parse_reset(f"retry in {told}", now=now, zone=UTC)) is not None:
            return at
        return parsedate_to_datetime(told).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _time(value: Any) -> datetime | None:
    number = _number(value)
    if number is None:
        return time_or_none(value)
    return time_or_none(number / 1000 if number >= _EPOCH_MS else number)


def _number(told: Any) -> float | None:
    if isinstance(told, str):
        try:
            told = float(told)
        except ValueError:
            return None
    return told if is_number(told) else None
