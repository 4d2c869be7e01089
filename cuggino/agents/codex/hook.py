"""The adapter of the Codex CLI for the hook program.

The answer is a denial with its reason, or the call to run. An allowed command is wrapped for the
bash it was checked for, as the model may name another shell (`shell: sh`), in which the same text
can mean something else. It runs in the folder it was checked for, even if the user's profile
changes folder.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from cuggino.agents.base.calls import (
    Call,
    Orders,
    patch_call,
    server_call,
    server_tool,
    shell_call,
    unknown_call,
)

_HARMLESS = {
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
"""Tools that neither write nor start anything. Sub-agent tools are left out, so they are
unknown."""

_IN_FOLDER = 'builtin cd -- "$1" && unset OLDPWD && exec "$0" -c "$2"'
_SHOWN = 20_000
"""Maximum characters of a patch in an event."""


def common_call(name: str, given: Any, *, servers: Iterable[str] = ()) -> Call:
    """Convert a call to Claude Code's tool names; `servers` are the MCP servers. Never raises."""
    if not isinstance(given, Mapping):
        return unknown_call(name, given)
    match name, given.get("command"), given.get("path"):
        case "Bash", str(), _:
            return shell_call(Call("Bash", dict(given)), ("command",))
        case "apply_patch", str() as patch, _:
            return patch_call(patch)
        case "view_image", _, str() as path:
            return Call("Read", {"file_path": path}, reads=(path,))
        case _:
            pass
    if own := _HARMLESS.get(name):
        return Call(own, dict(given))
    if name.startswith("mcp__"):
        # Codex replaces characters of the server's name.
        prefixes = {f"mcp__{plain(server)}__": server for server in servers}
        found = server_tool(name, prefixes)
        return server_call(*found, dict(given)) if found else Call(name, dict(given))
    return unknown_call(name, dict(given))


def plain(name: str) -> str:
    """Return the name as Codex passes it to its hook, with plain characters only."""
    return re.sub("[^A-Za-z0-9_]", "_", name)


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
    call = common_call(name, data.get("tool_input"), servers=settings["servers"])
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
