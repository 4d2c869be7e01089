"""The words for tool calls, tool results and other text that may be long."""

from __future__ import annotations

from pydantic import JsonValue

from cuggino_cli.output.sanitize import inert

_PARAMETER_LIMIT = 100
_PART_LIMIT = 100
_REASON_LIMIT = 500
_RESULT_LINES = 5

_PARAMETERS: dict[str, tuple[str, ...]] = {
    "Bash": ("command",),
    "Read": ("file_path",),
    "Write": ("file_path",),
    "Edit": ("file_path",),
    "Glob": ("pattern",),
    "Grep": ("pattern",),
    "WebFetch": ("url",),
    "Task": ("description", "prompt"),
}
"""The inputs that tell most about a call, by tool, the first that is text (CUG-131)."""


def cut(text: str, limit: int) -> str:
    """The inert text, after `limit` characters `...`."""
    shown = inert(text)
    return f"{shown[:limit]}..." if len(shown) > limit else shown


def denied_line(tool: str, part: str, reason: str) -> str:
    """What the guard denied, and the first line of why."""
    what = cut(" ".join(part.split()), _PART_LIMIT)
    if not what.startswith(tool):
        what = f"{tool}: {what}" if what else tool
    why = reason.strip().split("\n")[0]
    return f"[Guard] Denied {what} ({cut(why, _REASON_LIMIT)})"


def tool_line(name: str, tool_input: JsonValue) -> str:
    """`▶ Name: parameter`, or only the name when no input says more (CUG-131)."""
    parameter = _parameter(name, tool_input)
    return f"▶ {name}: {cut(parameter, _PARAMETER_LIMIT)}" if parameter else f"▶ {name}"


def numbered_lines(output: str) -> str:
    """The first five lines with their numbers, and how many there are when there are more."""
    lines = inert(output).split("\n")
    shown = [f"{number:5}→{line}" for number, line in enumerate(lines[:_RESULT_LINES], start=1)]
    if len(lines) > _RESULT_LINES:
        shown += ["  ...", f"  (showing {_RESULT_LINES} of {len(lines)} lines)"]
    return "\n".join(shown)


def _parameter(name: str, tool_input: JsonValue) -> str:
    if not isinstance(tool_input, dict):
        return ""
    keys = _PARAMETERS.get(name, tuple(tool_input))
    values = (tool_input.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str)), "")
