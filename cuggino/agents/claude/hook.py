"""The adapter of Claude Code for the hook program: the protocol of its hooks.

The scripted agent speaks it too. The key `cuggino` of an answer holds data that the agent's program
forwards unread: the verdict, or the canary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from cuggino.agents.base.calls import Call, Orders

Manner: TypeAlias = Literal["allow", "leave", "judge"]
"""The answer for an allowed call.

`leave` leaves it to the agent's own permission rules. `allow` allows it, but leaves a call that the
policy's rules decide about to the agent, which has been given these rules. `judge` is for agents
without such rules: the guard applies them.
"""


def answer(
    data: Mapping[str, Any], orders: Orders, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what to print for the hook input, and the verdict, which is a part of it.

    `settings` has the `manner`.

    Raises:
        ValueError: the input is of an event that is not handled.
    """
    event, tool, call_id = (data.get(k) for k in ("hook_event_name", "tool_name", "tool_use_id"))
    if event == "SessionStart":
        own = orders.canary()
        return {"suppressOutput": True, "cuggino": own}, own
    if event not in ("PreToolUse", "PermissionRequest"):
        raise ValueError(f"not asked about {event}")
    given, cwd = data.get("tool_input"), data.get("cwd")
    if event == "PermissionRequest":
        if orders.is_by_rules(tool):
            from cuggino.guard.rules import unlisted

            output = refusal(event, unlisted(str(tool)), token=orders.token)
            return output, output["cuggino"]
        own = orders.own(orders.judge(tool, given, cwd), tool, call_id)
        output = _requested(None if own["decision"] == "allow" else own["reason"], orders.token)
        return output, output["cuggino"]
    manner = settings["manner"]
    if manner == "judge":
        own = orders.verdict(Call(str(tool), given), call_id=call_id, cwd=str(cwd))
    else:
        own = orders.own(orders.judge(tool, given, cwd), tool, call_id)
    if own["decision"] != "allow":
        return _decided("deny", own["reason"], own), own
    if manner == "leave" or (manner == "allow" and orders.is_by_rules(tool)):
        return {"suppressOutput": True, "cuggino": own}, own
    return _decided("allow", "", own), own


def refusal(event: str, reason: str, *, token: str) -> dict[str, Any]:
    """Return a denial for the event, used when no verdict could be made."""
    match event:
        case "PreToolUse":
            return _decided("deny", reason, {"token": token})
        case "PermissionRequest":
            return _requested(reason, token)
        case _:
            return {"suppressOutput": True, "cuggino": {"token": token, "canary": reason}}


def _decided(decision: str, reason: str, own: Mapping[str, Any]) -> dict[str, Any]:
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    if reason:
        output["permissionDecisionReason"] = reason
    return {"suppressOutput": True, "hookSpecificOutput": output, "cuggino": own}


def _requested(reason: str | None, token: str) -> dict[str, Any]:
    decision = {"behavior": "allow"}
    if reason is not None:
        decision = {"behavior": "deny", "message": reason}
    output = {"hookEventName": "PermissionRequest", "decision": decision}
    return {"suppressOutput": True, "hookSpecificOutput": output, "cuggino": {"token": token}}
