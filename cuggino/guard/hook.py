"""The program that an agent runs before each tool call, in the protocol of Claude Code's hooks.

It is run by path with only the standard library (`python -I -S hook.py POLICY SHFMT TOKEN MANNER`,
one process per call), reads the call as JSON from standard input and prints one JSON object. On any
failure it exits with an error and prints nothing, which the agent's program must treat as a denial.
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
    from cuggino.guard.policy import Policy
    from cuggino.guard.verdict import Verdict

Manner: TypeAlias = Literal["allow", "leave", "judge"]
"""The answer for an allowed call.

`leave` leaves it to the agent's own permission rules. `allow` allows it, but leaves a call that the
policy's rules decide about to the agent, which has been given these rules. `judge` is for agents
without such rules: the guard applies them.
"""

ALARM_SECONDS = 45
"""Seconds after which the program ends itself, before an agent times out and allows the call."""

LIVE = "live"
"""The canary's answer when everything works."""

_LONGEST_REASON = 2000
_LONGEST_PART = 500
_MOST_REASONS = 5


def answer(
    data: Mapping[str, Any], policy: Policy, *, shfmt: str, token: str, manner: Manner
) -> dict[str, Any]:
    """Return the output for the hook input `data`; an error while judging denies the call.

    The key `cuggino` holds data that the agent's program forwards unread: the token of the
    session and, for a tool call, the verdict with the call's id. At `SessionStart` it holds the
    canary: `live`, or a sentence about the problem.

    Raises:
        ValueError: the input is of an event that this program does not handle.
    """
    match data.get("hook_event_name"):
        case "SessionStart":
            return {
                "suppressOutput": True,
                "cuggino": {"token": token, "canary": _canary(policy, shfmt)},
            }
        case "PreToolUse":
            return _before_tool(_judge(data, policy, shfmt), data, policy, token, manner)
        case "PermissionRequest":
            if _is_by_rules(data, policy):
                from cuggino.guard.rules import unlisted

                why = unlisted(str(data.get("tool_name")))
                return refusal("PermissionRequest", why, token=token)
            return _on_request(_judge(data, policy, shfmt), token)
        case event:
            raise ValueError(f"not asked about {event}")


def _is_by_rules(data: Mapping[str, Any], policy: Policy) -> bool:
    """Return whether permission rules decide about a call that the guard allows (AUT-261)."""
    if policy.rules is None:
        return False
    from cuggino.guard.tools import FILE_TOOLS, SHELLS

    return data.get("tool_name") not in SHELLS | FILE_TOOLS


def refusal(event: str, reason: str, *, token: str) -> dict[str, Any]:
    """Return a denial for the event, used when no verdict could be made."""
    match event:
        case "PreToolUse":
            return _decision("deny", reason, {"token": token})
        case "PermissionRequest":
            return _requested({"behavior": "deny", "message": reason}, token)
        case _:
            return {"suppressOutput": True, "cuggino": {"token": token, "canary": reason}}


def _before_tool(
    verdict: Verdict, data: Mapping[str, Any], policy: Policy, token: str, manner: Manner
) -> dict[str, Any]:
    if _is_by_rules(data, policy):
        if manner == "judge":
            verdict = _by_rules(verdict, data, policy)
        else:
            manner = "leave"
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


def _by_rules(verdict: Verdict, data: Mapping[str, Any], policy: Policy) -> Verdict:
    from cuggino.guard.rules import with_rules
    from cuggino.guard.tools import READERS

    tool, given = str(data.get("tool_name")), data.get("tool_input")
    # Agents check themselves what is read: their own files outside the project may be.
    if tool in READERS or not isinstance(given, dict):
        return verdict
    return with_rules(verdict, policy, tool, given, str(data.get("cwd")))


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
    """Join the distinct reasons of all parts, for the agent."""
    reasons = list(dict.fromkeys(part.reason for part in verdict.parts if part.reason))
    return "\n".join(reasons[:_MOST_REASONS])[:_LONGEST_REASON]


def _judge(data: Mapping[str, Any], policy: Policy, shfmt: str) -> Verdict:
    from cuggino.guard.tools import judge
    from cuggino.guard.verdict import denied

    tool, tool_input, cwd = data.get("tool_name"), data.get("tool_input"), data.get("cwd")
    if not isinstance(tool, str) or not isinstance(tool_input, dict) or not isinstance(cwd, str):
        return denied(str(tool), "The guard does not understand this call, so it is not run.")
    try:
        return judge(policy, tool, tool_input, cwd, shfmt=shfmt)
    except Exception as error:
        # Deny every call that could not be checked, for any reason.
        told = f"The guard failed over this call ({type(error).__name__}), so it is not run."
        return denied(tool, f"{told} Put it in a plainer way, or do it in smaller steps.")


def _canary(policy: Policy, shfmt: str) -> str:
    """Judge one call that must be denied and one that must be allowed, with the real parser."""
    for command, expected in (("echo ready", "allow"), ("echo $(", "deny")):
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "cwd": policy.project}
        verdict = _judge(call, policy, shfmt)
        if verdict.decision != expected:
            why = f": {verdict.reason}" if verdict.reason else ""
            return f"it answers {verdict.decision} to `{command}`{why}"
    return LIVE


def main() -> None:
    """Answer the call on standard input; see the module."""
    # The default action terminates the program at any point, without an answer.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ALARM_SECONDS)
    # The path is isolated, so append this package's folder, after all others.
    sys.path.append(__file__.rsplit("/", 3)[0])
    from cuggino.guard.policy import Policy

    _, policy, shfmt, token, manner = sys.argv
    data = json.loads(sys.stdin.buffer.read())
    # Only Claude Code runs this program; it has been given the rules.
    wanted: Manner = "allow" if manner == "allow" else "leave"
    said = answer(data, Policy.from_json(policy), shfmt=shfmt, token=token, manner=wanted)
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Garbage collection and cleanup are not worth the time in such a short process.
    gc.disable()
    main()
    os._exit(0)
