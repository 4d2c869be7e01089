"""OpenCode's tools with Claude Code's names, which events, policies and reports use.

It needs only the standard library, as the hook (`opencode.hook`) imports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cuggino.guard.patches import patched_files

_NAMES = {
    "bash": "Bash",
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "multiedit": "MultiEdit",
    "apply_patch": "MultiEdit",
    "patch": "MultiEdit",
    "grep": "Grep",
    "glob": "Glob",
    "list": "LS",
    "webfetch": "WebFetch",
    "websearch": "WebSearch",
    "codesearch": "WebSearch",
    "task": "Task",
    "skill": "Skill",
    "todowrite": "TodoWrite",
    "todoread": "TodoRead",
    "lsp": "LSP",
    "question": "AskUserQuestion",
    "plan_exit": "ExitPlanMode",
    "plan_enter": "EnterPlanMode",
    "list_mcp_resources": "ListMcpResourcesTool",
    "read_mcp_resource": "ReadMcpResourceTool",
}
"""OpenCode's own tools. `execute`, which runs scripts, is left out, so it is unknown."""

_INPUTS = {
    "filePath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "replaceAll": "replace_all",
    "include": "glob",
}
"""Inputs whose names differ."""

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class Call(NamedTuple):
    """A tool call."""

    tool: str
    input: Any
    is_known: bool
    """True if the effect of the input is known."""


def common_call(name: str, arguments: Any, *, servers: Iterable[str] = ()) -> Call:
    """Convert a call to Claude Code's tool names; unknown tools keep their names.

    The MCP server is the longest of `servers` that is a prefix of the tool's name. Never raises.
    """
    if name == "invalid":  # OpenCode's replacement for a call of a missing tool
        return Call("invalid", arguments, True)
    own = _NAMES.get(name)
    if own == "MultiEdit":
        return _patch_call(arguments)
    if own is not None:
        if not isinstance(arguments, Mapping):
            return Call(own, arguments, False)
        given = {_INPUTS.get(key, key): arguments[key] for key in arguments}
        # With two names for one input it is unknown which one counts.
        return Call(own, given, len(given) == len(arguments))
    for server in sorted(servers, key=len, reverse=True):
        safe = _UNSAFE.sub("_", server)
        if name.startswith(f"{safe}_"):
            return Call(f"mcp__{server}__{name[len(safe) + 1 :]}", arguments, True)
    return Call(name, arguments, False)


def _patch_call(arguments: Any) -> Call:
    """Convert a patch, which may write, move and remove several files."""
    if not isinstance(arguments, Mapping):
        return Call("MultiEdit", arguments, False)
    text = "\n".join(value for value in arguments.values() if isinstance(value, str))
    files = patched_files(text)
    edits = [{"file_path": file} for file in files]
    return Call("MultiEdit", {"edits": edits, "patch": text}, bool(files))


def tool_id(rule: str) -> str:
    """Return OpenCode's permission for a tool of Claude Code, or for a whole MCP server."""
    if rule.startswith("mcp__"):
        server, _, tool = rule.removeprefix("mcp__").partition("__")
        return f"{_UNSAFE.sub('_', server)}_{_UNSAFE.sub('_', tool) or '*'}"
    if rule in ("Write", "Edit", "MultiEdit"):
        return "edit"
    return next((name for name, tool in _NAMES.items() if tool == rule), rule)
