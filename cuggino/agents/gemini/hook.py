# ruff: noqa: PTH118, PTH123
"""The hook of the Gemini CLI: checks a tool call, and marks the ones that may run.

Run by path with nothing but the standard library (`python -I -S hook.py ORDERS`, one process per
call), it reads the call as JSON from standard input, appends its verdict to the session's log and
prints one JSON object. If anything fails, it exits with an error and prints nothing, which callers
must treat as a denial.

Gemini runs a call if a hook fails silently. So an allowed call is marked: the answer repeats the
call's input with the session's token in it, and the session's rules require that mark for tools
that change something. A command is wrapped in `eval`, because the rules also look at the parts of a
compound command, which would have no mark.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from cuggino.agents.gemini.tools import Call
    from cuggino.guard import Policy

Json: TypeAlias = dict[str, Any]

ALARM_SECONDS = 45
"""The program ends itself after this time."""

_PATHS = ("file_path", "path", "include", "paths")

_OUT_OF_SCOPE = (
    "Reading outside of the project is not allowed: what you need must be in the project, or the "
    "user has to allow its folder"
)


def answer(data: Mapping[str, Any], orders: Mapping[str, Any]) -> tuple[Json, Json]:
    """Return what to print for the hook input `data`, and what to log.

    `orders` are those of the session; see `gemini.guard`.

    Raises:
        ValueError: the input is of an event that this program does not handle.
    """
    from cuggino.agents.gemini.tools import unmarked
    from cuggino.guard import hook
    from cuggino.guard.policy import Policy

    policy = Policy.from_json(orders["policy"])
    asked = {"shfmt": orders["shfmt"], "token": orders["token"]}
    if data.get("hook_event_name") == "SessionStart":
        said = hook.answer(data, policy, **asked, manner="judge")
        return {}, {"canary": said["cuggino"]["canary"]}
    if data.get("hook_event_name") != "BeforeTool":
        raise ValueError(f"not asked about {data.get('hook_event_name')}")
    given = dict(unmarked(data["tool_input"]))
    call = _call(data, given, orders)
    common = {
        "hook_event_name": "PreToolUse",
        "tool_name": call.tool,
        "tool_input": call.input,
        "cwd": call.cwd,
    }
    own = hook.answer(common, policy, **asked, manner="judge")["cuggino"]
    part, reason = own.get("part", ""), own.get("reason", "")
    if own["decision"] == "allow":
        part, reason = _more(call, policy, orders)
    told = {"name": data["tool_name"], "input": given, "tool": call.tool}
    if reason:
        return {"decision": "deny", "reason": reason}, {**told, "part": part, "reason": reason}
    return _allowed(str(data["tool_name"]), given, orders), told


def _call(data: Mapping[str, Any], given: Json, orders: Mapping[str, Any]) -> Call:
    context = data.get("mcp_context") or {}
    server, tool = context.get("server_name"), context.get("tool_name")
    from cuggino.agents.gemini.tools import common_call

    return common_call(
        str(data["tool_name"]),
        given,
        cwd=str(data["cwd"]),
        server=(server, tool) if server and tool else None,
        servers=orders["servers"],
    )


def _more(call: Call, policy: Policy, orders: Mapping[str, Any]) -> tuple[str, str]:
    """Check what the common hook does not: return the part and the reason, or "" if allowed."""
    if not call.is_known:
        why = "is not known to the guard: use run_shell_command, or the tools for files"
        return call.tool, f"Tool '{call.tool}' {why}"
    from cuggino.agents.gemini.tools import unknown_keys

    if keys := unknown_keys(call):
        return call.tool, f"Leave out {keys}"
    from cuggino.guard.tools import READERS

    if policy.rules is not None and call.tool in READERS:
        roots = [os.path.realpath(root) for root in (policy.project, *orders["readable"])]
        for path in _paths(call.tool, call.input):
            real = os.path.realpath(os.path.join(call.cwd, path))
            if not any(os.path.commonpath([root, real]) == root for root in roots):
                return f"{call.tool} {path}", _OUT_OF_SCOPE
    return "", ""


def _paths(tool: str, given: Mapping[str, Any]) -> list[str]:
    """Return every file or folder in the input; a pattern of files counts too."""
    found: list[str] = []
    for key in (*_PATHS, *(["pattern"] if tool == "Glob" else [])):
        value = given.get(key)
        found += [p for p in (value if isinstance(value, list) else [value]) if isinstance(p, str)]
    return found


def _allowed(name: str, given: Json, orders: Mapping[str, Any]) -> Json:
    if name not in orders["marked"]:
        return {"decision": "allow"}
    from cuggino.agents.gemini.tools import marked

    return {
        "decision": "allow",
        "hookSpecificOutput": {
            "hookEventName": "BeforeTool",
            "tool_input": marked(given, orders["token"]),
        },
    }


def main() -> None:
    """Answer the call on standard input; see the module."""
    # The default action ends the program without an answer, whatever it is doing.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ALARM_SECONDS)
    with open(sys.argv[1], encoding="utf-8") as file:
        orders = json.load(file)
    # The path is isolated, so the package is added after all other paths.
    sys.path.append(orders["package"])
    said, told = answer(json.loads(sys.stdin.buffer.read()), orders)
    line = json.dumps(told).encode() + b"\n"
    log = os.open(orders["log"], os.O_WRONLY | os.O_APPEND)
    os.write(log, line)
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Garbage collection and cleanup are not worthwhile in a process this short.
    gc.disable()
    main()
    os._exit(0)
