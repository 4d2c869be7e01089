"""Values in the JSON of a program, which may print anything in the place of anything."""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias, TypeGuard

from pydantic_core import from_json

Json: TypeAlias = dict[str, Any]

MOST_LEVELS = 100
"""An event cannot hold more than 255 levels."""

_TOO_DEEP = "(nested too deeply to be shown)"
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_json_line(line: bytes) -> Json | None:
    """The JSON object on this line, or None: anything else on the wire is noise (CUG-082).

    Invalid UTF-8 and halves of surrogate pairs become U+FFFD, so every text can be written again.
    """
    try:
        value = from_json(line, cache_strings="keys")
    except ValueError:  # it is stricter: about halves of surrogate pairs, say
        return _parse_leniently(line)
    return value if isinstance(value, dict) else None


def dict_or_empty(value: Any) -> Json:
    """The object, or an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}


def text_or_none(value: Any) -> str | None:
    """The text, or None in the place of anything else."""
    return value if isinstance(value, str) else None


def is_number(value: Any) -> TypeGuard[int | float]:
    """True for a number that can be counted with: no truth value, not NaN, not endless."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def count_or_zero(value: Any) -> int:
    """How many of something there are; none in the place of anything else."""
    return max(0, int(value)) if is_number(value) else 0


def shown(value: Any, levels: int = MOST_LEVELS) -> Any:
    """The input of a tool as an event can hold it: what is nested too deeply is left out."""
    if levels == 0:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {str(key): shown(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [shown(item, levels - 1) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def compact(value: Any) -> str:
    """The value as JSON in one line."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return _TOO_DEEP


def failed_servers(servers: Any) -> list[str]:
    """One sentence for each MCP server of a list that tells with which it could not work."""
    return [
        f"MCP server {text_or_none(server.get('name')) or 'unknown'} failed"
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
