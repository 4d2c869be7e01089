"""The scripted model with OpenAI's chat completions, for GitHub Copilot and OpenCode."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from typing_extensions import override

from tests.model_script import ApiError, Block, Message, Text, Thought, Tool
from tests.model_server import ModelServer
from tests.model_sse import Events, pieces

_CALLS = "tool_calls"


class OpenAiServer(ModelServer):
    """A `ModelServer` whose `url` is a base URL for chat completions, all of them streamed."""

    counter = ("", "")
    last = "data: [DONE]\n\n"
    route = "/v1/chat/completions"

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    @override
    def read(self, route: str, raw: bytes) -> dict[str, Any] | None:
        return (
            {**self.as_messages(json.loads(raw)), "stream": True} if route == self.route else None
        )

    def as_messages(self, asked: dict[str, Any]) -> dict[str, Any]:
        return as_messages(asked)

    @override
    def events(self, reply: Message, body: Mapping[str, Any]) -> Events:
        for chunk in chunks(reply, number=next(self._ids), model=body["model"]):
            yield None, chunk

    @override
    def failed(self, error: ApiError) -> dict[str, Any]:
        return {"error": {"type": error.type, "code": error.type, "message": error.message}}


def as_messages(asked: dict[str, Any]) -> dict[str, Any]:
    """Convert a request for a chat completion to one for a message."""
    said = asked.get("messages") or []
    system = [m.get("content") for m in said if m.get("role") in ("system", "developer")]
    rest = [m for m in said if m.get("role") not in ("system", "developer")]
    tools = [
        tool.get("function") or tool.get("custom") or tool for tool in asked.get("tools") or []
    ]
    return {
        "model": asked.get("model"),
        "system": [{"type": "text", "text": _plain(text)} for text in system],
        "messages": [{**m, "content": _plain(m.get("content"))} for m in rest],
        "tools": tools,
    }


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def chunks(reply: Message, *, number: int, model: Any) -> Iterator[dict[str, Any]]:
    """Yield the chunks that stream this message, its usage in the last one."""
    make = _chunks_of(number, model)
    yield make({"role": "assistant", "content": ""})
    calls = 0
    for index, block in enumerate(reply.blocks):
        for delta in _deltas(block, index=calls, call=f"call_{number}_{index}"):
            yield make(delta)
        calls += isinstance(block, Tool)
    yield make({}, finish=_CALLS if calls else "stop")
    usage = {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
    yield {**make({}), "choices": [], "usage": usage}


def _chunks_of(number: int, model: Any) -> Callable[..., dict[str, Any]]:
    def make(delta: dict[str, Any], *, finish: str | None = None) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{number:05d}",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }

    return make


def _deltas(block: Block, *, index: int, call: str) -> Iterator[dict[str, Any]]:
    match block:
        case Text(text):
            for piece in pieces(text):
                yield {"content": piece}
        case Thought(text):
            for piece in pieces(text):
                yield {"reasoning_content": piece}
        case Tool(name, arguments, given_id):
            begun = {"name": name, "arguments": ""}
            first = {"index": index, "id": given_id or call, "type": "function", "function": begun}
            yield {_CALLS: [first]}
            for piece in pieces(json.dumps(dict(arguments))):
                yield {_CALLS: [{"index": index, "function": {"arguments": piece}}]}
