"""JSON and text printed by a program, where any value may have any type."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias, TypeGuard

from pydantic_core import from_json

from cuggino.events import McpServerFailed

Json: TypeAlias = dict[str, Any]

MOST_LEVELS = 100
"""An event holds at most 255 levels."""

_TOO_DEEP = "(nested too deeply to be shown)"
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json_line(line: bytes) -> Json | None:
    """Return the JSON object on this line, or None for anything else (CUG-082).

    Invalid UTF-8 and lone surrogates become U+FFFD, so that every text can be encoded.
    """
    try:
        value = from_json(line, cache_strings="keys")
    except ValueError:  # it is stricter, for example about lone surrogates
        return _parse_leniently(line)
    return value if isinstance(value, dict) else None


def dict_or_empty(value: Any) -> Json:
    """Return the object, or an empty one for any other type."""
    return value if isinstance(value, dict) else {}


def list_or_empty(value: Any) -> list[Any]:
    """Return the list, or an empty one for any other type."""
    return value if isinstance(value, list) else []


def text_or_none(value: Any) -> str | None:
    """Return the text, or None for any other type."""
    return value if isinstance(value, str) else None


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return True for a finite number of sensible size; booleans are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def count_or_zero(value: Any) -> int:
    """Return the value as a count, or 0 for any other type."""
    return max(0, int(value)) if is_number(value) else 0


def shown(value: Any, levels: int = MOST_LEVELS) -> Any:
    """Return a tool's input in a form that events can hold; deeply nested parts are left out."""
    if levels == 0:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {str(key): shown(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item, levels - 1) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def compact(value: Any) -> str:
    """Return the value as JSON in one line."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return _TOO_DEEP


def failed_servers(servers: Any) -> list[McpServerFailed]:
    """Return one event for each MCP server of the list that failed."""
    return [
        McpServerFailed(server=text_or_none(server.get("name")) or "unknown")
        for server in (servers if isinstance(servers, list) else [])
        if isinstance(server, dict) and server.get("status") == "failed"
    ]


def _parse_leniently(line: bytes) -> Json | None:
    text = line.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
        if "\\ud" in text or "\\uD" in text:
            value = _without_surrogates(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


class Pieces:
    """Texts that arrive in pieces, each with a key.

    A surrogate pair split across pieces is joined; a lone half becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._half: dict[str | None, str] = {}

    def add(self, key: str | None, piece: str) -> str:
        """Add a piece and return the text that is complete."""
        text = self._half.pop(key, "") + piece
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half[key] = text[:-1], text[-1]
        if _SURROGATE.search(text):
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def end(self, key: str | None) -> str:
        """Finish the text and return the rest of it."""
        return "\ufffd" if self._half.pop(key, "") else ""
