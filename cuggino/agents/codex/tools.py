"""Codex's items with Claude Code's tool names, which events, policies and reports use."""

from __future__ import annotations

import json
import shlex
from pathlib import PurePath
from typing import Any

from cuggino.agents.base.wire import (
    Json,
    dict_or_empty,
    list_or_empty,
    output_text,
    shown,
    text_or_none,
)
from cuggino.events import LlmAgentEvent, ToolCall, ToolResult

_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_TOOL_OF_CHANGE = {"add": "Write", "update": "Edit", "delete": "Edit"}
_FAILED = frozenset({"failed", "declined"})


def is_tool(item: Json) -> bool:
    """Return whether the item is a tool call."""
    return item.get("type") in (
        "command_execution",
        "file_change",
        "mcp_tool_call",
        "collab_tool_call",
        "web_search",
        "function_call",
    )


def calls_of(item: Json, *, command: str | None = None) -> list[ToolCall]:
    """Return the calls of an item: a change of several files has one for each.

    `command` overrides the command of the item.
    """
    own = text_or_none(item.get("id")) or ""
    match item.get("type"):
        case "command_execution":
            text = command if command is not None else command_of(item)
            return [ToolCall(name="Bash", input={"command": text}, id=own)]
        case "file_change":
            return [
                ToolCall(name=tool, input=given, id=call)
                for call, tool, given in _changes(item, own)
            ]
        case "mcp_tool_call":
            name = f"mcp__{item.get('server')}__{item.get('tool')}"
            return [ToolCall(name=name, input=shown(item.get("arguments")), id=own)]
        case "collab_tool_call":
            given = {"description": item.get("tool"), "prompt": item.get("prompt")}
            return [ToolCall(name="Task", input=shown(given), id=own)]
        case "web_search":
            return [ToolCall(name="WebSearch", input={"query": shown(item.get("query"))}, id=own)]
        case "function_call":
            name = text_or_none(item.get("name")) or "unknown"
            return [ToolCall(name=name, input=_arguments(item.get("arguments")), id=own)]
        case _:
            return []


def results_of(item: Json) -> list[LlmAgentEvent]:
    """Return the results of the calls of a complete item."""
    own = text_or_none(item.get("id"))
    failed = text_or_none(item.get("status")) in _FAILED
    match item.get("type"):
        case "command_execution":
            output = text_or_none(item.get("aggregated_output")) or ""
            is_error = failed or item.get("exit_code") != 0
            return [ToolResult(name=own or "Bash", output=output, is_error=is_error)]
        case "file_change":
            kinds = {"add": "added", "update": "updated", "delete": "deleted"}
            return [
                ToolResult(
                    name=call,
                    output="failed" if failed else kinds.get(str(given.get("kind")), "changed"),
                    is_error=failed,
                )
                for call, _, given in _changes(item, own or "")
            ]
        case "mcp_tool_call":
            error = text_or_none(dict_or_empty(item.get("error")).get("message"))
            parts = list_or_empty(dict_or_empty(item.get("result")).get("content"))
            output = error if error is not None else output_text(parts)
            is_error = failed or error is not None
            return [ToolResult(name=own or "unknown", output=output, is_error=is_error)]
        case "collab_tool_call" | "web_search":
            return [ToolResult(name=own or "unknown", output="", is_error=failed)]
        case "function_call_output":
            name = own or text_or_none(item.get("name")) or "unknown"
            told = item.get("output")
            output = output_text(told) if isinstance(told, str | list) else ""
            return [ToolResult(name=name, output=output, is_error=failed)]
        case _:
            return []


def command_of(item: Json) -> str:
    """Return the command without the shell that Codex adds, always by its absolute path."""
    text = text_or_none(item.get("command")) or ""
    words = shell_words(text)
    is_shell = len(words) == 3 and text[:1] == "/" and PurePath(words[0]).name in _SHELLS
    return words[2] if is_shell and words[1] in ("-lc", "-c") else text


def shell_words(text: str) -> list[str]:
    """Return the words of a command line, or none if it has unbalanced quotes."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _changes(item: Json, own: str) -> list[tuple[str, str, Json]]:
    """Return the id, tool and input of each file change."""
    changes = item.get("changes")
    told = [dict_or_empty(change) for change in (changes if isinstance(changes, list) else [])]
    return [
        (
            own if number == 0 else f"{own}:{number}",
            _TOOL_OF_CHANGE.get(str(change.get("kind")), "Edit"),
            {"file_path": text_or_none(change.get("path")), "kind": shown(change.get("kind"))},
        )
        for number, change in enumerate(told)
    ]


def _arguments(value: Any) -> Any:
    if not isinstance(value, str):
        return shown(value)
    try:
        return shown(json.loads(value))
    except (ValueError, RecursionError):
        return value
