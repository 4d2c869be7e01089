"""The hook of OpenCode's plugin: checks a tool call before it runs.

Run by path with nothing but the standard library (`python -I -S hook.py POLICY SHFMT TOKEN`, one
process per call), it reads OpenCode's call as JSON from standard input, converts it to Claude
Code's names and prints the verdict as one JSON object. If anything fails, it exits with an error
and prints nothing, which the plugin treats as a denial.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuggino.guard import Policy

ALARM_SECONDS = 45
"""The program ends itself after this time, before the plugin gives up on it."""

_SHELL_KEYS = frozenset({"command", "description", "timeout", "workdir"})
_OUT_OF_SCOPE = (
    "Reading outside of the project is not allowed: what you need must be in the project, or the "
    "user has to allow its folder"
)


def answer(asked: Mapping[str, Any], policy: Policy, *, shfmt: str, token: str) -> dict[str, Any]:
    """Return what to print for the plugin's question.

    `asked` is `{"canary": true}`, or a call: `tool`, `args`, `call` (its id), `cwd`, `servers` (the
    names of the MCP servers) and `outputs` (the folder of long outputs, which may be read).

    Raises:
        LookupError: a part of that is missing.
    """
    from cuggino.agents.opencode.tools import common_call
    from cuggino.guard import hook

    if asked.get("canary") is True:
        start = {"hook_event_name": "SessionStart"}
        return hook.answer(start, policy, shfmt=shfmt, token=token, manner="judge")
    call = common_call(asked["tool"], asked["args"], servers=asked["servers"])
    cwd = str(asked["cwd"])
    reason = ""
    if not call.is_known:
        reason = f"Tool '{call.tool}' is not known to the guard: use bash, or the file tools"
    elif call.tool == "Bash":
        unknown = sorted(key for key in call.input if key not in _SHELL_KEYS)
        reason = f"Leave out {', '.join(unknown)}" if unknown else ""
        cwd = _joined(cwd, call.input.get("workdir"))
    elif policy.rules is not None:
        reason = _scope(call.tool, call.input, cwd, str(asked["outputs"]))
    # A call of a missing tool only reports that.
    name = "ToolSearch" if call.tool == "invalid" else call.tool
    data = {
        "hook_event_name": "PreToolUse",
        "tool_name": name,
        "tool_input": call.input,
        "tool_use_id": asked["call"],
        "cwd": os.path.normpath(cwd),
    }
    if reason:
        own = {"token": token, "tool_use_id": asked["call"], "tool": call.tool, "part": call.tool}
        return {"cuggino": {**own, "decision": "deny", "reason": reason}}
    return hook.answer(data, policy, shfmt=shfmt, token=token, manner="judge")


def _scope(tool: str, given: Mapping[str, Any], cwd: str, outputs: str) -> str:
    """Return why the file to read is outside the project, or ""."""
    from cuggino.guard.tools import READERS

    if tool not in READERS:
        return ""
    path = os.path.realpath(_joined(cwd, given.get("file_path") or given.get("path")))
    patterns = f"{given.get('pattern') if tool == 'Glob' else ''} {given.get('glob') or ''}"
    if ".." in patterns or patterns.lstrip().startswith(("/", "~")):
        return _OUT_OF_SCOPE
    roots = (os.path.realpath(cwd), os.path.realpath(outputs))
    inside = any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)
    return "" if inside else _OUT_OF_SCOPE


def _joined(folder: str, path: object) -> str:
    named = str(path or "")
    return named if named.startswith("/") else f"{folder}/{named}"


def main() -> None:
    """Answer the question on standard input; see the module."""
    # The default action ends the program without an answer, whatever it is doing.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ALARM_SECONDS)
    root, *_ = __file__.rsplit("/", 4)
    # The package is located relative to this file.
    sys.path.append(root)
    from cuggino.guard.policy import Policy

    _, policy, shfmt, token = sys.argv
    asked = json.loads(sys.stdin.buffer.read())
    said = answer(asked, Policy.from_json(policy), shfmt=shfmt, token=token)
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Garbage collection and cleanup are not worthwhile in a process this short.
    gc.disable()
    main()
    os._exit(0)
