"""The program that is asked before each tool call, and answers as Claude Code's hooks do.

Run by path with nothing but the standard library (`python -I -S hook.py POLICY SHFMT TOKEN MANNER`,
one process for each call), it reads the call as JSON from standard input and prints one JSON
object. It never prints an answer that it is not sure of: when anything fails, it ends with an error
and without a word, and whoever runs it must take that for a no.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from cuggino.security.policy import Policy
    from cuggino.security.verdict import Verdict

Manner: TypeAlias = Literal["allow", "leave"]
"""What is said of a call that may pass: `allow` it, or `leave` it to the agent's own rules."""

ALARM_SECONDS = 8
"""After so long the program ends itself, before the agent gives it up and may take that for yes."""

LIVE = "live"
"""What the canary says when all is well."""

_OUT_OF_SCOPE = (
    "Reading outside of the project is not allowed: what you need must be in the project, or the "
    "user has to allow its folder"
)
_LONGEST_REASON = 2000
_LONGEST_PART = 500
_MOST_REASONS = 5


def answer(
    data: Mapping[str, Any], policy: Policy, *, shfmt: str, token: str, manner: Manner
) -> dict[str, Any]:
    """What to print for the hook input `data`; every error while judging is a no.

    Under the key `cuggino` stands what the agent's program passes on unread: the token of the
    session, and for a tool call the verdict with the call's id. At `SessionStart` it is the
    canary: `live`, or a sentence about what does not work.

    Raises:
        ValueError: the input is of no event that this program is asked about.
    """
    match data.get("hook_event_name"):
        case "SessionStart":
            return {
                "suppressOutput": True,
                "cuggino": {"token": token, "canary": _canary(policy, shfmt)},
            }
        case "PreToolUse":
            left: Manner = "leave" if _is_scoped_read(data, policy) else manner
            return _before_tool(_judge(data, policy, shfmt), data, token, left)
        case "PermissionRequest":
            if _is_scoped_read(data, policy):
                return refusal("PermissionRequest", _OUT_OF_SCOPE, token=token)
            return _on_request(_judge(data, policy, shfmt), token)
        case event:
            raise ValueError(f"not asked about {event}")


def _is_scoped_read(data: Mapping[str, Any], policy: Policy) -> bool:
    """Whether the agent's own rules decide: what is in the project they let pass unasked."""
    if not policy.scoped_reads:
        return False
    from cuggino.security.tools import READERS

    return data.get("tool_name") in READERS


def refusal(event: str, reason: str, *, token: str) -> dict[str, Any]:
    """The answer of the event in place of one that could not be made: no, for that reason."""
    match event:
        case "PreToolUse":
            return _decision("deny", reason, {"token": token})
        case "PermissionRequest":
            return _requested({"behavior": "deny", "message": reason}, token)
        case _:
            return {"suppressOutput": True, "cuggino": {"token": token, "canary": reason}}


def _before_tool(
    verdict: Verdict, data: Mapping[str, Any], token: str, manner: Manner
) -> dict[str, Any]:
    own = {
        "token": token,
        "tool_use_id": data.get("tool_use_id"),
        "tool": data.get("tool_name"),
        "decision": verdict.decision,
    }
    if not verdict.is_allowed:
        own["part"] = next(p.text for p in verdict.parts if p.reason)[:_LONGEST_PART]
        own["reason"] = _reason(verdict)
        return _decision("deny", _reason(verdict), own)
    if manner == "leave":
        return {"suppressOutput": True, "cuggino": own}
    return _decision("allow", "", own)


def _on_request(verdict: Verdict, token: str) -> dict[str, Any]:
    if verdict.is_allowed:
        return _requested({"behavior": "allow"}, token)
    return _requested({"behavior": "deny", "message": _reason(verdict)}, token)


def _decision(decision: str, reason: str, own: Mapping[str, Any]) -> dict[str, Any]:
    said = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    if reason:
        said["permissionDecisionReason"] = reason
    return {"suppressOutput": True, "hookSpecificOutput": said, "cuggino": own}


def _requested(decision: Mapping[str, Any], token: str) -> dict[str, Any]:
    said = {"hookEventName": "PermissionRequest", "decision": decision}
    return {"suppressOutput": True, "hookSpecificOutput": said, "cuggino": {"token": token}}


def _reason(verdict: Verdict) -> str:
    """Why, for the agent: the reasons of all parts, each once."""
    reasons = list(dict.fromkeys(part.reason for part in verdict.parts if part.reason))
    return "\n".join(reasons[:_MOST_REASONS])[:_LONGEST_REASON]


def _judge(data: Mapping[str, Any], policy: Policy, shfmt: str) -> Verdict:
    from cuggino.security.tools import judge
    from cuggino.security.verdict import denied

    tool, tool_input, cwd = data.get("tool_name"), data.get("tool_input"), data.get("cwd")
    if not isinstance(tool, str) or not isinstance(tool_input, dict) or not isinstance(cwd, str):
        return denied(str(tool), "The guard does not understand this call, so it is not run.")
    try:
        return judge(policy, tool, tool_input, cwd, shfmt=shfmt)
    except Exception as error:
        # Whatever it is: what has not been judged does not run.
        told = f"The guard failed over this call ({type(error).__name__}), so it is not run."
        return denied(tool, f"{told} Put it in a plainer way, or do it in smaller steps.")


def _canary(policy: Policy, shfmt: str) -> str:
    """Judge a call that must be denied and one that must not, with the parser that is used."""
    for command, expected in (("echo ready", "allow"), ("echo $(", "deny")):
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "cwd": policy.project}
        verdict = _judge(call, policy, shfmt)
        if verdict.decision != expected:
            why = f": {verdict.reason}" if verdict.reason else ""
            return f"it answers {verdict.decision} to `{command}`{why}"
    return LIVE


def main() -> None:
    """Answer what stands on standard input; see the module."""
    # The default action ends the program without an answer, whatever it is in the midst of.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ALARM_SECONDS)
    # The path is isolated, so the package is found by where this file is, behind all others.
    sys.path.append(__file__.rsplit("/", 3)[0])
    from cuggino.security.policy import Policy

    _, policy, shfmt, token, manner = sys.argv
    data = json.loads(sys.stdin.buffer.read())
    # What is not told to allow leaves the call to the agent's own rules.
    wanted: Manner = "allow" if manner == "allow" else "leave"
    said = answer(data, Policy.from_json(policy), shfmt=shfmt, token=token, manner=wanted)
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Neither collecting garbage nor tidying up is worth its time in a process this short.
    gc.disable()
    main()
    os._exit(0)
