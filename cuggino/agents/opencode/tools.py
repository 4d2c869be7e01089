"""OpenCode's tools in the names of Claude Code, which events, policies and reports speak in.

Nothing but the standard library: the guard's program (`opencode.judge`) needs it as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cuggino.agents.patches import patched_files

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
"""OpenCode's own tools. Not in here, and so unknown: `execute`, which runs scripts of its own."""

_INPUTS = {
    "filePath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "replaceAll": "replace_all",
    "include": "glob",
}
"""The names of inputs, where they differ."""

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class Call(NamedTuple):
    """A call of a tool."""

    tool: str
    input: Any
    is_known: bool
    """Whether it is known what the tool does with its input."""


def common_call(name: str, arguments: Any, *, servers: Iterable[str] = ()) -> Call:
    """The call as Claude Code would name it; tools that are not known keep their names.

    The longest of the MCP `servers` whose name the tool's name begins with is its own. Never
    raises.
    """
    if name == "invalid":  # what OpenCode makes of a call of a tool that is not there
        return Call("invalid", arguments, True)
    own = _NAMES.get(name)
    if own == "MultiEdit":
        return _patch_call(arguments)
    if own is not None:
        if not isinstance(arguments, Mapping):
            return Call(own, arguments, False)
        given = {_INPUTS.get(key, key): arguments[key] for key in arguments}
        # Two names for one input: nobody knows which of them counts.
        return Call(own, given, len(given) == len(arguments))
    for server in sorted(servers, key=len, reverse=True):
        safe = _UNSAFE.sub("_", server)
        if name.startswith(f"{safe}_"):
            return Call(f"mcp__{server}__{name[len(safe) + 1 :]}", arguments, True)
    return Call(name, arguments, False)


def _patch_call(arguments: Any) -> Call:
    """A patch may write, move and remove several files."""
    if not isinstance(arguments, Mapping):
        return Call("MultiEdit", arguments, False)
    text = "\n".join(value for value in arguments.values() if isinstance(value, str))
    files = patched_files(text)
    edits = [{"file_path": file} for file in files]
    return Call("MultiEdit", {"edits": edits, "patch": text}, bool(files))


def tool_id(rule: str) -> str:
    """The permission of OpenCode that a tool of Claude Code needs, or a whole MCP server."""
    if rule.startswith("mcp__"):
        server, _, tool = rule.removeprefix("mcp__").partition("__")
        return f"{_UNSAFE.sub('_', server)}_{_UNSAFE.sub('_', tool) or '*'}"
    if rule in ("Write", "Edit", "MultiEdit"):
        return "edit"
    return next((name for name, tool in _NAMES.items() if tool == rule), rule)
