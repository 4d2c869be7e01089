"""The scripted model with OpenAI's Responses API, for the Codex CLI."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from tests.model_openai import OpenAiServer
from tests.model_script import ApiError, Block, Message, Text, Thought, Tool
from tests.model_sse import Events, pieces

_SAID_BY_MODEL = ("reasoning", "function_call", "custom_tool_call")
_ANSWERS = ("function_call_output", "custom_tool_call_output")


@dataclass(frozen=True, kw_only=True)
class UsageLimit(ApiError):
    """An exhausted usage limit of a plan."""

    resets_at: int
    """The time of its reset in seconds since the epoch."""
    status: int = 429
    type: str = "usage_limit_reached"
    message: str = "The usage limit has been reached"


class ResponsesServer(OpenAiServer):
    """A `ModelServer` whose `url` is a base URL for responses."""

    last = ""
    route = "/v1/responses"

    @override
    def as_messages(self, asked: dict[str, Any]) -> dict[str, Any]:
        return as_messages(asked)

    @override
    def events(self, reply: Message, body: Mapping[str, Any]) -> Events:
        return response_events(reply, number=next(self._ids), custom=body["custom_tools"])

    @override
    def failed(self, error: ApiError) -> dict[str, Any]:
        told = super().failed(error)
        if isinstance(error, UsageLimit):
            told["error"] |= {"plan_type": "pro", "resets_at": error.resets_at}
        return told


def as_messages(asked: dict[str, Any]) -> dict[str, Any]:
    """Convert a request for a response to one for a message."""
    system = [str(asked.get("instructions") or "")]
    messages: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] = list(asked.get("tools") or [])
    for item in asked.get("input") or []:
        kind, role = item.get("type"), item.get("role")
        if kind == "additional_tools":
            tools += item.get("tools") or []
        elif role in ("developer", "system"):
            system.append(_plain(item.get("content")))
        elif kind in _ANSWERS:
            messages.append({"role": "tool", "content": _plain(item.get("output"))})
        elif role == "assistant" or kind in _SAID_BY_MODEL:
            # Text, thoughts and calls are separate items of one answer.
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": []})
            text = _plain(item.get("content")) if role == "assistant" else ""
            messages[-1]["content"].append({"type": "text", "text": text})
        else:
            messages.append({"role": "user", "content": _plain(item.get("content"))})
    named = list(_each_tool(tools))
    return {
        "model": asked.get("model"),
        "system": [{"type": "text", "text": text} for text in system],
        "messages": messages,
        "tools": [{"name": tool.get("type"), **tool} for tool in named],
        "custom_tools": [tool.get("name") for tool in named if tool.get("type") == "custom"],
    }


def _each_tool(tools: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield every tool, including those of namespaces."""
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _each_tool(tool.get("tools") or [])
        else:
            yield tool


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)


def response_events(reply: Message, *, number: int, custom: list[str]) -> Events:
    """Yield the events that stream this message, each with its name, its usage in the last one.

    `custom` are the names of the tools that take plain text: the input `{"input": TEXT}`.
    """
    response = {"id": f"resp_{number:05d}", "object": "response", "status": "in_progress"}
    yield _event("response.created", response={**response, "output": []})
    for index, block in enumerate(reply.blocks):
        item = _item(block, f"{number}_{index}", custom)
        if item["type"] == "message":
            opened = {**item, "content": []}
            yield _event("response.output_item.added", output_index=index, item=opened)
            text = item["content"][0]["text"]
            for piece in pieces(text):
                yield _event(
                    "response.output_text.delta",
                    item_id=item["id"],
                    output_index=index,
                    content_index=0,
                    delta=piece,
                )
        yield _event("response.output_item.done", output_index=index, item=item)
    usage = {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
    done = {**response, "status": "completed", "output": [], "usage": usage}
    yield _event("response.completed", response=done)


def _event(name: str, **data: Any) -> tuple[str, dict[str, Any]]:
    return name, {"type": name, **data}


def _item(block: Block, number: str, custom: list[str]) -> dict[str, Any]:
    match block:
        case Text(text):
            return {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        case Thought(text):
            summary = [{"type": "summary_text", "text": text}]
            return {"type": "reasoning", "id": f"rs_{number}", "summary": summary}
        case Tool(name, given, call):
            called = {"id": f"fc_{number}", "call_id": call or f"call_{number}", "name": name}
            if name in custom:
                return {"type": "custom_tool_call", **called, "input": given["input"]}
            space, _, tool = name.rpartition("__")
            if space:  # for the tools of a server, and for those of subagents
                called |= {"name": tool, "namespace": space}
            return {"type": "function_call", **called, "arguments": json.dumps(dict(given))}
