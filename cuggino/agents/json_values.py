"""Values in the JSON of a program, which may print anything in the place of anything."""

from __future__ import annotations

import json
from typing import Any, TypeAlias, TypeGuard

Json: TypeAlias = dict[str, Any]

MOST_LEVELS = 100
"""An event cannot hold more than 255 levels."""

_TOO_DEEP = "(nested too deeply to be shown)"


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
