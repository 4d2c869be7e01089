"""The program that the Codex CLI asks before each tool call: our judge in its hook's words.

Run by path with nothing but the standard library
(`python -I -S hook.py POLICY SHFMT TOKEN BASH LOG [SERVER...]`, one process for each call),
it reads the call from standard input and prints one JSON object: a denial with its reason, or what
may pass. A command that may pass is put into the words of the bash that it was judged for, as the
model may name another shell (`shell: sh`), for which the same text can mean something else; and it
is run in the folder for which it was judged, wherever the user's profile would have it begin.

Every verdict goes to LOG as well, one JSON object a line: Codex does not tell what was denied. When
anything fails, this program ends with an error and without a word, and whoever runs it must take
that for a no.
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
    from cuggino.security.policy import Policy

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
"""Tools that write nothing and start nothing. Not in here, and so unknown: those of sub-agents."""

_PATCHED = re.compile(
    r"^[^\S\n]*\*\*\*[^\S\n]*(?:(?:Add|Update|Delete)[^\S\n]+File|Move[^\S\n]+to)[^\S\n]*:(.*)$",
    re.MULTILINE,
)
_IN_FOLDER = 'builtin cd -- "$1" && unset OLDPWD && exec "$0" -c "$2"'
_SHOWN = 20_000
"""Characters of a patch that an event shows."""


class Call(NamedTuple):
    """A call in the names of Claude Code."""

    tool: str
    input: Any
    is_known: bool = True
    """Whether it is known what the tool does with its input."""


def common_call(name: str, given: Any, *, servers: Iterable[str] = ()) -> Call:
    """The call as Claude Code would name it; `servers` are the MCP servers. Never raises."""
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


def patched_files(patch: str) -> list[str]:
    """The files that a patch adds, changes, removes or moves, in order.

    With blanks around a name both readings are given, as the program may take them or leave them.
    """
    found = _PATCHED.findall(patch)
    names = [name for raw in found for name in (raw.strip(), raw.removeprefix(" ").rstrip("\r"))]
    return [name for name in dict.fromkeys(names) if name]


def in_bash(command: str, bash: str, cwd: str) -> str:
    """The command in words that every shell hands to this bash unread, to be run in this folder."""
    words = shlex.join([bash, "-c", _IN_FOLDER, bash, cwd, command])
    return f"unset BASH_ENV; exec {words}"


def judged_command(words: Sequence[str], bash: str) -> tuple[str, str] | None:
    """The folder and the command for which `in_bash` made these words, None for other words."""
    start = ["unset", "BASH_ENV;", "exec", bash, "-c", _IN_FOLDER, bash]
    return (words[7], words[8]) if list(words[:7]) == start and len(words) == 9 else None


def _patch_call(patch: Any) -> Call:
    if not isinstance(patch, str):
        return Call("MultiEdit", {"patch": patch}, False)
    edits = [{"file_path": file} for file in patched_files(patch)]
    return Call("MultiEdit", {"edits": edits, "patch": patch}, bool(edits))


def _server_tool(name: str, servers: Iterable[str]) -> str:
    """The name with the server as it is configured: Codex makes other letters of some."""
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
    """What to print for the hook input, and what to log; every error while judging is a no.

    Raises:
        ValueError: the input is of no event that this program is asked about.
    """
    from cuggino.security import hook

    event = data.get("hook_event_name")
    if event == "SessionStart":
        said = hook.answer(data, policy, shfmt=shfmt, token=token, manner="allow")
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
    if policy.scoped_reads and call.tool == "Read" and not _is_inside(policy.project, own):
        own |= {"decision": "deny", "part": call.tool, "reason": _OUT_OF_SCOPE}
        return _denial(own["reason"]), own
    asked = {"hook_event_name": "PreToolUse", "tool_name": call.tool, "tool_input": call.input}
    asked |= {"tool_use_id": data.get("tool_use_id"), "cwd": data.get("cwd")}
    said = hook.answer(asked, policy, shfmt=shfmt, token=token, manner="allow")["cuggino"]
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
    """Whether the file that is to be read is one of the project."""
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
    """Answer what stands on standard input; see the module."""
    # The package is found by where this file is, behind all others.
    sys.path.append(__file__.rsplit("/", 4)[0])
    from cuggino.security.hook import ALARM_SECONDS
    from cuggino.security.policy import Policy

    # The default action ends the program without an answer, whatever it is in the midst of.
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
    # Neither collecting garbage nor tidying up is worth its time in a process this short.
    gc.disable()
    main()
    os._exit(0)
