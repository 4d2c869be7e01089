"""The adapter of the Gemini CLI for the hook program: it marks the calls that may run.

Gemini runs a call if a hook fails silently. So an allowed call is marked: the answer repeats the
call's input with the session's token in it, and the session's rules require that mark for tools
that change something. A command is wrapped in `eval`, because the rules also look at the parts of a
compound command, which would have no mark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuggino.agents.base.calls import Orders
from cuggino.agents.gemini.tools import call_of, marked, unmarked


def answer(
    data: Mapping[str, Any], orders: Orders, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what to print for the hook input, and the verdict with Gemini's call.

    `settings` are `servers`, the names of the MCP servers, `marked`, the tools that need the mark,
    and `readable`, the folders outside the project that may be read.

    Raises:
        LookupError: a part of the input is missing.
        ValueError: the input is of an event that is not handled, or a path is invalid.
    """
    event = data.get("hook_event_name")
    if event == "SessionStart":
        return {}, orders.canary()
    if event != "BeforeTool":
        raise ValueError(f"not asked about {event}")
    name, cwd, given = str(data["tool_name"]), str(data["cwd"]), dict(unmarked(data["tool_input"]))
    context = data.get("mcp_context") or {}
    server, tool = context.get("server_name"), context.get("tool_name")
    call = call_of(
        name,
        given,
        cwd=cwd,
        server=(server, tool) if server and tool else None,
        servers=settings["servers"],
    )
    own = orders.verdict(call, call_id=None, cwd=cwd, readable=settings["readable"])
    own |= {"name": name, "input": given}
    if own["decision"] != "allow":
        return denial(own["reason"]), own
    output: dict[str, Any] = {"decision": "allow"}
    if name in settings["marked"]:
        held = {"hookEventName": "BeforeTool", "tool_input": marked(given, orders.token)}
        output["hookSpecificOutput"] = held
    return output, own


def denial(reason: str) -> dict[str, Any]:
    """Return the answer that denies a call."""
    return {"decision": "deny", "reason": reason}
