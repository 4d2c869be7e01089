"""The adapter of the Codex CLI for the hook program.

The answer is a denial with its reason, or the call to run. An allowed command is wrapped for the
bash it was checked for, as the model may name another shell (`shell: sh`), in which the same text
can mean something else. It runs in the folder it was checked for, even if the user's profile
changes folder.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from cuggino.agents.base.calls import Call, Orders, Tools

_NAMES = {
    "Bash": "Bash",
    "apply_patch": "MultiEdit",
    "view_image": "Read",
    "update_plan": "TodoWrite",
    "get_goal": "TodoRead",
    "create_goal": "TodoWrite",
    "update_goal": "TodoWrite",
    "tool_search": "ToolSearch",
    "list_mcp_resources": "ListMcpResourcesTool",
    "list_mcp_resource_templates": "ListMcpResourcesTool",
    "read_mcp_resource": "ReadMcpResourceTool",
    "clockcurr_time": "Sleep",
    "clocksleep": "Sleep",
    "sleep": "Sleep",
    "wait": "BashOutput",
}
"""Codex's own tools. Those of sub-agents are left out, so they are unknown."""

TOOLS = Tools(
    names=_NAMES,
    inputs={"Read": {"path": "file_path"}},
    shell_keys=("command",),
    needs={"apply_patch": "command", "view_image": "path"},
    readers=("view_image",),
    reads=lambda _tool, given: (given["file_path"],),
    prefix="mcp__{server}__",
    replaced="[^A-Za-z0-9_]",
)

_IN_FOLDER = 'builtin cd -- "$1" && unset OLDPWD && exec "$0" -c "$2"'
_SHOWN = 20_000
"""Maximum characters of a patch in an event."""


def call_of(name: str, given: Any, *, servers: Iterable[str] = ()) -> Call:
    """Return the call of a tool; one of an unknown MCP server keeps its name."""
    call = TOOLS.call(name, given, servers=servers)
    is_of_server = name.startswith("mcp__") and isinstance(given, Mapping)
    return Call(name, dict(given)) if call.unknown and is_of_server else call


def plain(name: str) -> str:
    """Return the name as Codex passes it to its hook, with plain characters only."""
    return TOOLS.plain(name)


def in_bash(command: str, bash: str, cwd: str) -> str:
    """Wrap a command so that any shell passes it to this bash unchanged, in this folder."""
    words = shlex.join([bash, "-c", _IN_FOLDER, bash, cwd, command])
    return f"unset BASH_ENV; exec {words}"


def judged_command(words: Sequence[str], bash: str) -> tuple[str, str] | None:
    """Return the folder and command that `in_bash` wrapped, or None for other words."""
    start = ["unset", "BASH_ENV;", "exec", bash, "-c", _IN_FOLDER, bash]
    return (words[7], words[8]) if list(words[:7]) == start and len(words) == 9 else None


def answer(
    data: Mapping[str, Any], orders: Orders, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what to print for the hook input, and the verdict with the call.

    `settings` are `bash`, the shell for allowed commands, and `servers`, the names of the MCP
    servers.

    Raises:
        ValueError: the input is of an event that is not handled, or a path is invalid.
    """
    event = data.get("hook_event_name")
    if event == "SessionStart":
        return {}, orders.canary()
    if event != "PreToolUse":
        raise ValueError(f"not asked about {event}")
    name, cwd = str(data.get("tool_name")), str(data.get("cwd"))
    call = call_of(name, data.get("tool_input"), servers=settings["servers"])
    if not PurePath(cwd).is_absolute():
        raise ValueError(f"no folder for the call: {cwd}")
    own = orders.verdict(call, call_id=data.get("tool_use_id"), cwd=cwd)
    own |= {"name": name, "cwd": cwd, "input": _shown(call.input)}
    if own["decision"] != "allow":
        return denial(own["reason"] or "It is not allowed"), own
    if call.tool != "Bash":
        return {}, own
    passed = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    command = {"command": in_bash(call.input["command"], settings["bash"], cwd)}
    return {"hookSpecificOutput": {**passed, "updatedInput": command}}, own


def denial(reason: str) -> dict[str, Any]:
    """Return the answer that denies a call."""
    said = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
    return {"hookSpecificOutput": {**said, "permissionDecisionReason": reason}}


def _shown(given: Any) -> Any:
    if isinstance(given, dict) and isinstance(given.get("patch"), str):
        return {**given, "patch": given["patch"][:_SHOWN]}
    return given
