"""The hook of the Codex CLI: checks a tool call before it runs.

Run by path with nothing but the standard library (`python -I -S hook.py POLICY SHFMT TOKEN BASH LOG
[SERVER...]`, one process per call), it reads the call from standard input and prints one JSON
object: a denial with its reason, or the call to run. An allowed command is wrapped for the bash it
was checked for, as the model may name another shell (`shell: sh`), in which the same text can mean
something else. It runs in the folder it was checked for, even if the user's profile changes folder.

Every verdict is also appended to LOG as a line of JSON, because Codex does not report denials. If
anything fails, this program exits with an error and prints nothing, which callers must treat as a
denial.
"""

from __future__ import annotations

import gc
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cuggino.guard import Policy

UNKNOWN = "Tool '{}' is not known to the guard: use commands, or patches"

_OUT_OF_SCOPE = (
    "Reading outside of the project is not allowed: what you need must be in the project"
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


class Call(NamedTuple):
    """A call with Claude Code's tool names."""

    tool: str
    input: Any
    is_known: bool = True
    """True if the effect of the input is known."""


def common_call(name: str, given: Any, *, servers: Iterable[str] = ()) -> Call:
    """Convert a call to Claude Code's tool names; `servers` are the MCP servers. Never raises."""
    if not isinstance(given, Mapping):
        return Call(name, given, False)
    if name == "Bash":
        command = given.get("command")
        return Call("Bash", {"command": command}, len(given) == 1 and isinstance(command, str))
    if name == "apply_patch":
        return _patch_call(given.get("command"))
    if name == "view_image":
        return Call("Read", {"file_path": given.get("path")}, isinstance(given.get("path"), str))
    if own := _HARMLESS.get(name):
        return Call(own, dict(given))
    if name.startswith("mcp__"):
        return Call(_server_tool(name, servers), dict(given))
    return Call(name, dict(given), False)


def in_bash(command: str, bash: str, cwd: str) -> str:
    """Wrap a command so that any shell passes it to this bash unchanged, in this folder."""
    words = shlex.join([bash, "-c", _IN_FOLDER, bash, cwd, command])
    return f"unset BASH_ENV; exec {words}"


def judged_command(words: Sequence[str], bash: str) -> tuple[str, str] | None:
    """Return the folder and command that `in_bash` wrapped, or None for other words."""
    start = ["unset", "BASH_ENV;", "exec", bash, "-c", _IN_FOLDER, bash]
    return (words[7], words[8]) if list(words[:7]) == start and len(words) == 9 else None


def _patch_call(patch: Any) -> Call:
    from cuggino.guard.patches import patched_files

    if not isinstance(patch, str):
        return Call("MultiEdit", {"patch": patch}, False)
    edits = [{"file_path": file} for file in patched_files(patch)]
    return Call("MultiEdit", {"edits": edits, "patch": patch}, bool(edits))


def _server_tool(name: str, servers: Iterable[str]) -> str:
    """Restore the configured name of the server, in which Codex replaces characters."""
    for server in sorted(servers, key=len, reverse=True):
        prefix = f"mcp__{re.sub('[^A-Za-z0-9_]', '_', server)}__"
        if name.startswith(prefix):
            return f"mcp__{server}__{name.removeprefix(prefix)}"
    return name


def decide(
    data: Mapping[str, Any],
    policy: Policy,
    *,
    shfmt: str,
    token: str,
    bash: str,
    servers: Iterable[str] = (),
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what to print for the hook input, and what to log; every error is a denial.

    Raises:
        ValueError: the input is of an event that this program does not handle.
    """
    from cuggino.guard import hook

    event = data.get("hook_event_name")
    if event == "SessionStart":
        said = hook.answer(data, policy, shfmt=shfmt, token=token, manner="judge")
        return {}, said["cuggino"]
    if event != "PreToolUse":
        raise ValueError(f"not asked about {event}")
    name = str(data.get("tool_name"))
    call = common_call(name, data.get("tool_input"), servers=servers)
    own: dict[str, Any] = {"token": token, "tool_use_id": data.get("tool_use_id")}
    own |= {"name": name, "tool": call.tool, "cwd": data.get("cwd"), "input": _shown(call.input)}
    if not call.is_known:
        own |= {"decision": "deny", "part": call.tool, "reason": UNKNOWN.format(call.tool)}
        return _denial(own["reason"]), own
    if policy.rules is not None and call.tool == "Read" and not _is_inside(policy.project, own):
        own |= {"decision": "deny", "part": call.tool, "reason": _OUT_OF_SCOPE}
        return _denial(own["reason"]), own
    asked = {"hook_event_name": "PreToolUse", "tool_name": call.tool, "tool_input": call.input}
    asked |= {"tool_use_id": data.get("tool_use_id"), "cwd": data.get("cwd")}
    said = hook.answer(asked, policy, shfmt=shfmt, token=token, manner="judge")["cuggino"]
    own |= {key: said[key] for key in ("decision", "part", "reason") if key in said}
    if own["decision"] != "allow":
        return _denial(own["reason"] or "It is not allowed"), own
    if call.tool != "Bash":
        return {}, own
    if not PurePath(cwd := str(data.get("cwd"))).is_absolute():
        raise ValueError(f"no folder for the command: {cwd}")
    passed = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
    command = {"command": in_bash(call.input["command"], bash, cwd)}
    return {"hookSpecificOutput": {**passed, "updatedInput": command}}, own


def _is_inside(project: str, own: Mapping[str, Any]) -> bool:
    """Return whether the file to read belongs to the project."""
    path = PurePath(os.path.realpath(PurePath(str(own["cwd"]), own["input"]["file_path"])))
    return path.is_relative_to(os.path.realpath(project))


def _denial(reason: str) -> dict[str, Any]:
    said = {"hookEventName": "PreToolUse", "permissionDecision": "deny"}
    return {"hookSpecificOutput": {**said, "permissionDecisionReason": reason}}


def _shown(given: Any) -> Any:
    if isinstance(given, dict) and isinstance(given.get("patch"), str):
        return {**given, "patch": given["patch"][:_SHOWN]}
    return given


def main() -> None:
    """Answer the call on standard input; see the module."""
    # The package is located relative to this file, after all other paths.
    sys.path.append(__file__.rsplit("/", 4)[0])
    from cuggino.guard.hook import ALARM_SECONDS
    from cuggino.guard.policy import Policy

    # The default action ends the program at once, without an answer.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ALARM_SECONDS)
    _, policy, shfmt, token, bash, log, *servers = sys.argv
    data = json.loads(sys.stdin.buffer.read())
    parsed = Policy.from_json(policy)
    said, own = decide(data, parsed, shfmt=shfmt, token=token, bash=bash, servers=servers)
    line = (json.dumps(own) + "\n").encode()
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    if os.write(file, line) != len(line):
        raise OSError("the verdict could not be written whole")
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Garbage collection and cleanup are not worthwhile in a process this short.
    gc.disable()
    main()
    os._exit(0)
