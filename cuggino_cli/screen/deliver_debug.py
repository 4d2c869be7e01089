"""Debug lines of the deliver loop, as Autonoe prints them."""

from __future__ import annotations

import json

from pydantic import JsonValue

from cuggino import events as ev
from cuggino_cli.screen.text import clip

_LINE_LIMIT = 200
_PART_LIMIT = 100

_OUTCOMES: dict[ev.DeliverOutcome, str] = {
    "completed": "completed",
    "execution_error": "execution_error",
    "max_turns": "max_iterations",
    "budget": "budget_exceeded",
    "quota": "quota_exceeded",
    "interrupted": "interrupted",
}


def debug_line(event: ev.Event) -> str | None:
    """Return `[Recv] <kind>: <event>`, cut after 200 characters; None if it is shown anyway."""
    if (found := received(event)) is None:
        return None
    kind, text = found
    return f"[Recv] {kind}: {clip(text, _LINE_LIMIT)}"


def sent_line(instruction: str) -> str:
    """Return `[Send] <instruction>`, cut after 200 characters."""
    return f"[Send] {clip(instruction, _LINE_LIMIT)}"


def received(event: ev.Event) -> tuple[str, str] | None:
    """Return the event's kind, in Autonoe's terms, and its text.

    None for pings and events with a line of their own.

    The loop reports the end of a session, because it knows the last message and the error.
    """
    match event:
        case ev.AgentMessage(text=text):
            return ("stream_text", text)
        case ev.Thinking(text=text):
            return ("stream_thinking", f"[thinking] {clip(text, _LINE_LIMIT)}")
        case ev.ToolCall(name=name, input=tool_input):
            shown = f"[tool: {name}] {clip(_json(tool_input), _PART_LIMIT)}"
            return ("stream_tool_invocation", shown)
        case ev.ToolResult(output=output, is_error=is_error):
            label = "[result ERROR]" if is_error else "[result]"
            return ("stream_tool_response", f"{label} {clip(output, _PART_LIMIT)}")
        case ev.DeliverSessionEnded(outcome="error", message=message):
            return ("stream_error", f"[error] {message}")
        case ev.DeliverSessionEnded():
            return ("stream_end", _ended(event))
        case ev.SystemMessage(text=text):
            return ("system", text)
        case ev.UserMessage(text=text):
            return ("user", text)
        case ev.UnknownEvent(tag=tag):
            return (tag, "[unknown]")
        case _:
            return None


def _ended(event: ev.DeliverSessionEnded) -> str:
    shown = f"[session: {_OUTCOMES[event.outcome]}]"
    match event.outcome:
        case "completed" | "quota" if event.message:
            return f"{shown} {event.message}"
        case "execution_error" if event.message:
            return f"{shown} {', '.join(event.message.splitlines())}"
        case _:
            return shown


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
