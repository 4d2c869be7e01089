"""Copilot's tools with Claude Code's names, which events, policies and reports use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cuggino.guard import patched_files

_NAMES = {
    "bash": "Bash",
    "view": "Read",
    "create": "Write",
    "edit": "Edit",
    "apply_patch": "MultiEdit",
    "grep": "Grep",
    "rg": "Grep",
    "glob": "Glob",
    "web_fetch": "WebFetch",
    "web_search": "WebSearch",
    "semantic_code_search": "WebSearch",
    "task": "Task",
    "skill": "Skill",
    "sql": "TodoWrite",
    "update_todo": "TodoWrite",
    "report_intent": "TodoWrite",
    "read_bash": "BashOutput",
    "list_bash": "BashOutput",
    "stop_bash": "KillShell",
    "read_agent": "TaskOutput",
    "list_agents": "ListAgents",
    "write_agent": "SendMessage",
    "send_inbox": "SendMessage",
    "context_board": "SendMessage",
    "task_complete": "TaskUpdate",
    "exit_plan_mode": "ExitPlanMode",
    "tool_search": "ToolSearch",
    "fetch_copilot_cli_documentation": "WebFetch",
}
"""Copilot's own tools. `sql` queries a database of the session, in which it keeps its tasks; the
program itself refuses to attach another one. `write_bash`, which types into a running shell, is
left out, so it is unknown."""

_INPUTS = {
    "Read": {"path": "file_path"},
    "Write": {"path": "file_path", "file_text": "content"},
    "Edit": {"path": "file_path", "old_str": "old_string", "new_str": "new_string"},
    "Grep": {"paths": "path"},
    "Glob": {"paths": "path"},
    "Task": {"agent_type": "subagent_type"},
}
"""Inputs whose names differ."""

_GITHUB = "github-mcp-server"
"""The server that comes with the program for users who are logged in."""


class Call(NamedTuple):
    """A tool call."""

    tool: str
    input: Any
    is_known: bool
    """True if the effect of the input is known."""


def common_call(
    name: str, arguments: Any, *, server: tuple[str, str] | None = None, servers: Iterable[str] = ()
) -> Call:
    """Convert a call to Claude Code's tool names; unknown tools keep their names.

    `server` is the MCP server and its tool, if reported; otherwise it is the longest of `servers`
    that is a prefix of the tool's name. Never raises.
    """
    if own := _NAMES.get(name):
        return _own_call(own, arguments)
    if server is None:
        server = _server_of(name, servers)
    if server is not None:
        return Call(f"mcp__{server[0]}__{server[1]}", arguments, True)
    return Call(name, arguments, False)


def _own_call(tool: str, arguments: Any) -> Call:
    if tool == "MultiEdit":
        return _patch_call(arguments)
    if not isinstance(arguments, Mapping):
        return Call(tool, arguments, False)
    names = _INPUTS.get(tool, {})
    given = {names.get(key, key): value for key, value in arguments.items()}
    # With two names for one input it is unknown which one counts.
    return Call(tool, given, len(given) == len(arguments))


def _patch_call(arguments: Any) -> Call:
    """Convert a patch, given as a text or in an object; it may change several files."""
    if isinstance(arguments, Mapping):
        texts = [value for value in arguments.values() if isinstance(value, str)]
        arguments = "\n".join(texts)
    if not isinstance(arguments, str):
        return Call("MultiEdit", arguments, False)
    files = patched_files(arguments)
    edits = [{"file_path": file} for file in files]
    return Call("MultiEdit", {"edits": edits, "patch": arguments}, bool(files))


def _server_of(name: str, servers: Iterable[str]) -> tuple[str, str] | None:
    for server in sorted({*servers, _GITHUB}, key=len, reverse=True):
        if name.startswith(f"{server}-"):
            return server, name[len(server) + 1 :]
    return None


def same_text(arguments: Any) -> str:
    """Return equal texts for equal arguments."""
    try:
        return json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(type(arguments))
