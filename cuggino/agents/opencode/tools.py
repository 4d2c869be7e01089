"""OpenCode's tools with Claude Code's names, which events, policies and reports use.

It needs only the standard library, as the hook (`opencode.hook`) imports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cuggino.agents.base.calls import (
    Call,
    patch_call,
    renamed_call,
    server_call,
    server_tool,
    shell_call,
    unknown_call,
)

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

_READERS = frozenset({"read", "grep", "glob", "list"})
_SHELL_KEYS = frozenset({"command", "description", "timeout", "workdir"})
_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
_OUTSIDE = "/"


def common_call(name: str, arguments: Any, *, servers: Iterable[str] = ()) -> Call:
    """Convert a call to Claude Code's tool names; unknown tools keep their names.

    The MCP server is the longest of `servers` that is a prefix of the tool's name. Never raises.
    """
    if name == "invalid":  # OpenCode's replacement for a call of a missing tool
        return Call("invalid", arguments)
    own = _NAMES.get(name)
    if own == "MultiEdit":
        is_object = isinstance(arguments, Mapping)
        return patch_call(arguments) if is_object else unknown_call(own, arguments)
    if own is not None:
        call = renamed_call(own, arguments, _INPUTS)
        if own == "Bash" and not call.unknown:
            folder = call.input.get("workdir")
            call = call._replace(cwd=str(folder) if folder else None)
            return shell_call(call, _SHELL_KEYS)
        is_reader = name in _READERS and not call.unknown
        return call._replace(reads=_read(own, call.input)) if is_reader else call
    prefixes = {f"{_UNSAFE.sub('_', server)}_": server for server in servers}
    found = server_tool(name, prefixes)
    return server_call(*found, arguments) if found else unknown_call(name, arguments)


def _read(tool: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the call reads; a pattern that may leave its folder reads everything."""
    path = str(given.get("file_path") or given.get("path") or "")
    patterns = f"{given.get('pattern') if tool == 'Glob' else ''} {given.get('glob') or ''}"
    leaves = ".." in patterns or patterns.lstrip().startswith(("/", "~"))
    return (path, _OUTSIDE) if leaves else (path,)


def tool_id(rule: str) -> str:
    """Return OpenCode's permission for a tool of Claude Code, or for a whole MCP server."""
    if rule.startswith("mcp__"):
        server, _, tool = rule.removeprefix("mcp__").partition("__")
        return f"{_UNSAFE.sub('_', server)}_{_UNSAFE.sub('_', tool) or '*'}"
    if rule in ("Write", "Edit", "MultiEdit"):
        return "edit"
    return next((name for name, tool in _NAMES.items() if tool == rule), rule)
