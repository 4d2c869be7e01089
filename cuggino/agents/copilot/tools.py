"""Copilot's tools with Claude Code's names, which events, policies and reports use."""

from __future__ import annotations

from collections.abc import Iterable
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

_SHELL_KEYS = frozenset({"command", "description", "shellId", "mode", "detach", "initial_wait"})
_GITHUB = "github-mcp-server"
"""The server that comes with the program for users who are logged in."""


def common_call(
    name: str, arguments: Any, *, server: tuple[str, str] | None = None, servers: Iterable[str] = ()
) -> Call:
    """Convert a call to Claude Code's tool names; unknown tools keep their names.

    `server` is the MCP server and its tool, if reported; otherwise it is the longest of `servers`
    that is a prefix of the tool's name. Never raises.
    """
    own = _NAMES.get(name)
    if own == "MultiEdit":
        return patch_call(arguments)
    if own is not None:
        call = renamed_call(own, arguments, _INPUTS.get(own, {}))
        return shell_call(call, _SHELL_KEYS) if own == "Bash" and not call.unknown else call
    found = server or server_tool(name, {f"{one}-": one for one in (*servers, _GITHUB)})
    return server_call(*found, arguments) if found else unknown_call(name, arguments)
