"""Tool calls of agents in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_PARAMETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Bash": ("command",),
        "Read": ("file_path",),
        "Write": ("file_path",),
        "Edit": ("file_path",),
        "Glob": ("pattern",),
        "Grep": ("pattern",),
        "WebFetch": ("url",),
        "Task": ("description", "prompt"),
    }
)
"""The most informative inputs by tool."""


def tool_target(name: str, tool_input: object) -> str:
    """Return the most informative input of a tool call that is text, or ""."""
    if not isinstance(tool_input, dict):
        return ""
    keys = _PARAMETERS.get(name, tuple(tool_input))
    values = (tool_input.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str)), "")
