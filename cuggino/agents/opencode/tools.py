"""OpenCode's tools with Claude Code's names, which events, policies and reports use.

It needs only the standard library, as the hook (`opencode.hook`) imports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cuggino.agents.base.calls import Call, Tools

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

_RENAMED = {
    "filePath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "replaceAll": "replace_all",
    "include": "glob",
}
"""Inputs whose names differ, of any tool."""

_OUTSIDE = "/"


def _read(tool: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the call reads; a pattern that may leave its folder reads everything."""
    path = str(given.get("file_path") or given.get("path") or "")
    patterns = f"{given.get('pattern') if tool == 'Glob' else ''} {given.get('glob') or ''}"
    leaves = ".." in patterns or patterns.lstrip().startswith(("/", "~"))
    return (path, _OUTSIDE) if leaves else (path,)


TOOLS = Tools(
    names=_NAMES,
    inputs=dict.fromkeys(_NAMES.values(), _RENAMED),
    shell_keys=("command", "description", "timeout", "workdir"),
    folder="workdir",
    readers=("read", "grep", "glob", "list"),
    reads=_read,
    replaced="[^a-zA-Z0-9_-]",
)


def call_of(name: str, given: Any, *, servers: Iterable[str] = ()) -> Call:
    """Return the call of a tool. `invalid` is the program's call for one that is missing."""
    return Call(name, given) if name == "invalid" else TOOLS.call(name, given, servers=servers)


def tool_id(rule: str) -> str:
    """Return OpenCode's permission for a tool of Claude Code, or for a whole MCP server."""
    if rule.startswith("mcp__"):
        server, _, tool = rule.removeprefix("mcp__").partition("__")
        return f"{TOOLS.plain(server)}_{TOOLS.plain(tool) or '*'}"
    if rule in ("Write", "Edit", "MultiEdit"):
        return "edit"
    return next(iter(TOOLS.of(rule)), rule)
