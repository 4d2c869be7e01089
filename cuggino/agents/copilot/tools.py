"""Copilot's tools in the names of Claude Code, which events, policies and reports speak in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cuggino.agents.patches import patched_files

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
"""Copilot's own tools. `sql` asks a database of the session, in which it keeps its tasks; the
program itself refuses to attach another one. Not in here, and so unknown: `write_bash`, which types
into a running shell."""

_INPUTS = {
    "Read": {"path": "file_path"},
    "Write": {"path": "file_path", "file_text": "content"},
    "Edit": {"path": "file_path", "old_str": "old_string", "new_str": "new_string"},
    "Grep": {"paths": "path"},
    "Glob": {"paths": "path"},
    "Task": {"agent_type": "subagent_type"},
}
"""The names of inputs, where they differ."""

_GITHUB = "github-mcp-server"
"""The server that the program brings along for those who are logged in."""


class Call(NamedTuple):
    """A call of a tool."""

    tool: str
    input: Any
    is_known: bool
    """Whether it is known what the tool does with its input."""


def common_call(
    name: str, arguments: Any, *, server: tuple[str, str] | None = None, servers: Iterable[str] = ()
) -> Call:
    """The call as Claude Code would name it; tools that are not known keep their names.

    `server` is the MCP server and its tool, where the program says so; else the longest of
    `servers` whose name the tool's name begins with is it. Never raises.
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
    # Two names for one input: nobody knows which of them counts.
    return Call(tool, given, len(given) == len(arguments))


def _patch_call(arguments: Any) -> Call:
    """A patch is a text, or an object with it; it may write, move and remove several files."""
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
    """Equal texts for equal arguments."""
    try:
        return json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(type(arguments))
