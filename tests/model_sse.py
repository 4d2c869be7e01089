"""A message of the Messages API, complete or as a stream of server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from tests.model_script import Block, Message, Text, Thought, Tool

PIECE = 24
"""Characters of text in one delta."""

Events: TypeAlias = Iterator[tuple[str | None, dict[str, Any]]]
"""Server-sent events, each with its name if it has one."""


def complete_message(reply: Message, *, number: int, model: str | None) -> dict[str, Any]:
    """Return the complete message; ids are derived from `number`."""
    content = [_content(block, f"toolu_{number}_{i}") for i, block in enumerate(reply.blocks)]
    calls_tool = any(isinstance(block, Tool) for block in reply.blocks)
    return {
        "id": f"msg_{number:05d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if calls_tool else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.input_tokens,
            "output_tokens": reply.output_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _content(block: Block, tool_id: str) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thought(text):
            return {"type": "thinking", "thinking": text, "signature": "c2lnbmF0dXJl"}
        case Tool(name, arguments, given_id):
            return {
                "type": "tool_use",
                "id": given_id or tool_id,
                "name": name,
                "input": dict(arguments),
            }


def sse_events(message: dict[str, Any]) -> Events:
    """Yield the events that stream this message, each with its name."""
    start = {
        **message,
        "content": [],
        "stop_reason": None,
        "usage": {**message["usage"], "output_tokens": 1},
    }
    yield "message_start", {"type": "message_start", "message": start}
    for index, content in enumerate(message["content"]):
        empty, deltas = _opened(content)
        yield (
            "content_block_start",
            {"type": "content_block_start", "index": index, "content_block": empty},
        )
        yield "ping", {"type": "ping"}
        for delta in deltas:
            yield (
                "content_block_delta",
                {"type": "content_block_delta", "index": index, "delta": delta},
            )
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    yield (
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": message["usage"]["output_tokens"]},
        },
    )
    yield "message_stop", {"type": "message_stop"}


def _opened(content: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the block as it starts, and the deltas that complete it."""
    match content["type"]:
        case "text":
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(content["text"])]
            return {**content, "text": ""}, deltas
        case "thinking":
            deltas = [
                {"type": "thinking_delta", "thinking": piece}
                for piece in pieces(content["thinking"])
            ]
            deltas.append({"type": "signature_delta", "signature": content["signature"]})
            return {**content, "thinking": "", "signature": ""}, deltas
        case _:
            parts = pieces(json.dumps(content["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in parts]
            return {**content, "input": {}}, deltas


def pieces(text: str) -> list[str]:
    """Return the text cut into the parts of its deltas."""
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
