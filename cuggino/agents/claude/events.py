"""What a line of Claude Code's stream-json means: JSON to events, without memory (CUG-082)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cuggino.agents.json_values import (
    MOST_LEVELS,
    Json,
    compact,
    dict_or_empty,
    failed_servers,
    is_number,
    text_or_none,
)
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    PingEvent,
    RateLimited,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    UserMessage,
)


def to_events(raw: Json, *, now: float) -> list[LlmAgentEvent]:
    """The events of one line, in the order of its blocks; unknown types give none (CUG-082).

    `now` (seconds since the epoch) is the time of a `PingEvent`. A `result` line gives no event: it
    is part of the session's ending.
    """
    match raw.get("type"):
        case "stream_event":
            return [PingEvent(timestamp=now)]
        case "assistant":
            return _assistant_events(raw)
        case "user":
            return _user_events(raw)
        case "system":
            return _system_events(raw)
        case "rate_limit_event":
            return [_rate_limited(raw)]
        case _:
            return []


def is_api_error(raw: Json) -> bool:
    """True for an assistant line in which not the model speaks, but the program about the API."""
    return bool(raw.get("is_api_error_message") or raw.get("api_error"))


def message_text(raw: Json) -> str:
    """The text of this line's message."""
    blocks = _blocks(dict_or_empty(raw.get("message")))
    texts = [block["text"] for block in blocks if isinstance(block, dict) and "text" in block]
    return "\n".join(text for text in texts if isinstance(text, str))


def _assistant_events(raw: Json) -> list[LlmAgentEvent]:
    message = dict_or_empty(raw.get("message"))
    events: list[LlmAgentEvent] = []
    for block in _blocks(message):
        match block:
            case {"type": "text", "text": str(text)} if is_api_error(raw):
                events.append(SystemMessage(text=text))
            case {"type": "text", "text": str(text)}:
                events.append(
                    AgentMessage(
                        text=text,
                        message_id=text_or_none(message.get("id")),
                        parent_tool_use_id=text_or_none(raw.get("parent_tool_use_id")),
                    )
                )
            case {"type": "thinking", "thinking": str(text)} if text:
                events.append(Thinking(text=text))
            case {"type": "tool_use", "name": str(name)}:
                events.append(
                    ToolCall(
                        name=name,
                        input=_tool_input(block.get("input")),
                        id=text_or_none(block.get("id")) or "",
                    )
                )
            case _:
                pass
    return events


def _user_events(raw: Json) -> list[LlmAgentEvent]:
    events: list[LlmAgentEvent] = []
    for block in _blocks(dict_or_empty(raw.get("message"))):
        match block:
            case {"type": "text", "text": str(text)}:
                events.append(UserMessage(text=text))
            case {"type": "tool_result"}:
                events.append(
                    ToolResult(
                        name=text_or_none(block.get("tool_use_id")) or "unknown",
                        output=_tool_output(block.get("content"), raw.get("tool_use_result")),
                        is_error=block.get("is_error") is True,
                    )
                )
            case _:
                pass
    return events


def _system_events(raw: Json) -> list[LlmAgentEvent]:
    match raw.get("subtype"):
        case "init":
            return [SystemMessage(text="Session initialized"), *_failed_servers(raw)]
        case "api_retry":
            return [SystemMessage(text=_retry_text(raw))]
        case _:
            return []


def _failed_servers(raw: Json) -> list[LlmAgentEvent]:
    """What is said of servers that could not be started.

    The program goes on without their tools, and says so here alone.
    """
    return [SystemMessage(text=text) for text in failed_servers(raw.get("mcp_servers"))]


def _retry_text(raw: Json) -> str:
    delay = raw.get("retry_delay_ms")
    wait = f", in {max(1, round(delay / 1000))}s" if is_number(delay) else ""
    reason = (text_or_none(raw.get("error")) or "unknown").replace("_", " ")
    if reason == "unknown":
        reason = "no answer from the API"
    status = raw.get("error_status")
    suffix = f" ({status})" if isinstance(status, int) else ""
    of = f"{raw.get('attempt', '?')} of {raw.get('max_retries', '?')}"
    return f"Retrying (attempt {of}{wait}): {reason}{suffix}"


def _rate_limited(raw: Json) -> RateLimited:
    info = raw.get("rate_limit_info")
    info = info if isinstance(info, dict) else raw
    return RateLimited(
        status=text_or_none(info.get("status")) or "unknown",
        resets_at=_time(info.get("resetsAt")),
        limit=text_or_none(info.get("rateLimitType")),
    )


def _time(value: Any) -> datetime | None:
    if not is_number(value):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _tool_input(value: Any) -> Any:
    """What is nested too deeply for an event is passed on as text."""
    return value if _depth_within(value, MOST_LEVELS) else compact(value)


def _depth_within(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    items = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_depth_within(item, levels - 1) for item in items)


def _tool_output(content: Any, tool_use_result: Any) -> str:
    if content is None:
        if isinstance(tool_use_result, dict):
            content = tool_use_result.get("stdout") or ""
        else:
            content = text_or_none(tool_use_result) or ""
    if isinstance(content, list):
        return "\n".join(map(_part_text, content))
    return content if isinstance(content, str) else compact(content)


def _part_text(part: Any) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case _:
            return compact(part)


def _blocks(message: Json) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []
