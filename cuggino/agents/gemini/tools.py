"""Gemini's tools with Claude Code's names, which events, policies and reports use.

It needs only the standard library, as the hook (`gemini.hook`) imports it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from cuggino.agents.base.calls import Call, Tools

_NAMES = {
    "run_shell_command": "Bash",
    "write_file": "Write",
    "replace": "Edit",
    "read_file": "Read",
    "read_many_files": "Read",
    "list_directory": "LS",
    "glob": "Glob",
    "grep_search": "Grep",
    "search_file_content": "Grep",
    "web_fetch": "WebFetch",
    "google_web_search": "WebSearch",
    "get_internal_docs": "ToolSearch",
    "write_todos": "TodoWrite",
    "update_topic": "TodoWrite",
    "tracker_create_task": "TaskCreate",
    "tracker_update_task": "TaskUpdate",
    "tracker_add_dependency": "TaskUpdate",
    "tracker_get_task": "TaskGet",
    "tracker_list_tasks": "TaskList",
    "tracker_visualize": "TaskList",
    "activate_skill": "Skill",
    "invoke_agent": "Task",
    "complete_task": "TaskUpdate",
    "list_background_processes": "BashOutput",
    "read_background_output": "BashOutput",
    "list_mcp_resources": "ListMcpResourcesTool",
    "read_mcp_resource": "ReadMcpResourceTool",
    "ask_user": "AskUserQuestion",
    "enter_plan_mode": "EnterPlanMode",
    "exit_plan_mode": "ExitPlanMode",
}
"""Gemini's own tools."""

_INPUTS = {
    "LS": {"dir_path": "path"},
    "Glob": {"dir_path": "path"},
    "Grep": {"dir_path": "path"},
    "Task": {"agent_name": "subagent_type"},
}
"""Inputs whose names differ."""

_READ = ("file_path", "path", "include", "paths")
"""Inputs of readers that name files or folders."""
_MCP = "mcp_"

ORDER = "wait_for_previous"
"""An input of all tools that controls when they run."""

MARK = "cuggino_verdict"
"""The input with which the guard allows a call."""

_WRAPPED = ("eval", "--")

ASKING = ("ask_user", "enter_plan_mode", "exit_plan_mode")
"""Tools that wait for a person."""

WRITERS = ("run_shell_command", "write_file", "replace")
"""Gemini's own tools that change something."""

READERS = (
    *("read_file", "read_many_files", "list_directory"),
    *("glob", "grep_search", "search_file_content"),
)
"""Tools that read files."""

HARMLESS = tuple(name for name in _NAMES if name not in (*WRITERS, *READERS, *ASKING))
"""Tools that read or plan something else."""


def _read(tool: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every file or folder in the input; a pattern of files counts too."""
    keys = (*_READ, "pattern") if tool == "Glob" else _READ
    found = [given.get(key) for key in keys]
    each = [path for value in found for path in (value if isinstance(value, list) else [value])]
    return tuple(path for path in each if isinstance(path, str))


TOOLS = Tools(
    names=_NAMES,
    inputs=_INPUTS,
    shell_keys=("command", "description", "dir_path", "is_background", "delay_ms", ORDER),
    folder="dir_path",
    readers=READERS,
    reads=_read,
    paths=("file_path", "path"),
    prefix=f"{_MCP}{{server}}_",
)


def call_of(
    name: str,
    given: Any,
    *,
    cwd: str,
    server: tuple[str, str] | None = None,
    servers: Iterable[str] = (),
) -> Call:
    """Return the call of a tool; see `Tools.call`. One of an unknown server ends at `_`."""
    if server is None and name not in _NAMES and name.startswith(_MCP):
        head, _, rest = name.removeprefix(_MCP).partition("_")
        server = TOOLS.server_of(name, servers) or ((head, rest) if rest else None)
    return TOOLS.call(name, given, cwd=cwd, server=server)


def marked(arguments: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Add the mark to the input; a command is wrapped, so that it has no parts to be checked."""
    made = {**arguments, MARK: token}
    if isinstance(command := made.get("command"), str):
        made["command"] = shlex.join((*_WRAPPED, command))
    return made


def unmarked(arguments: Any) -> Any:
    """Remove the mark from the input.

    Models see the marked calls of a resumed session, and imitate them.
    """
    if not isinstance(arguments, Mapping) or MARK not in arguments:
        return arguments
    made = {key: value for key, value in arguments.items() if key != MARK}
    if isinstance(command := made.get("command"), str) and command.startswith(_WRAPPED[0]):
        try:
            first, second, *rest = shlex.split(command)
        except ValueError:
            return made
        if (first, second) == _WRAPPED and len(rest) == 1:
            made["command"] = rest[0]
    return made
