"""The scripted model with OpenAI's chat completions, for GitHub Copilot and OpenCode.

Requests are converted to the shape of the Messages API (`model_server`), so that scripts see the
same `ModelRequest`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from typing_extensions import override

from tests.model_script import ApiError, Block, Message, Script, Text, Thought, Tool
from tests.model_server import ModelServer, _Handler

_PIECE = 24
"""Characters of text in one delta."""

_CALLS = "tool_calls"


class OpenAiServer(ModelServer):
    """A `ModelServer` whose `url` is a base URL for chat completions."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        server = self

        class Handler(_OpenAiHandler):
            owner = server

        self._http.RequestHandlerClass = Handler

    @property
    def url(self) -> str:
        return f"{super().url}/v1"


class _OpenAiHandler(_Handler):
    @override
    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        route = urlsplit(self.path).path
        if route != "/v1/chat/completions":
            self._send_json(404, _error("not_found", f"no {route} here"))
            return
        asked = json.loads(raw)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = as_messages(asked)
        self._answer(self.owner._receive(self.path, headers, body), body)

    def _answer(self, reply: Any, body: dict[str, Any]) -> None:
        match reply:
            case Message():
                self._stream(chunks(reply, number=next(self.owner._ids), model=body["model"]))
            case ApiError(status, kind, message, headers):
                self._send_json(status, _error(kind, message), headers)
            case _:
                super()._answer(reply, body)

    def _begin(self, message: Message | None, after_events: int, body: dict[str, Any]) -> None:
        if message is not None:
            made = list(chunks(message, number=next(self.owner._ids), model=body["model"]))
            self._stream(iter(made[:after_events]), ends=False)

    def _stream(self, made: Iterator[dict[str, Any]], *, ends: bool = True) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in made:
            self._write(json.dumps(chunk))
        if ends:
            self._write("[DONE]")
            self.wfile.write(b"0\r\n\r\n")

    def _write(self, data: str) -> None:
        event = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.flush()


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
        "stream": bool(asked.get("stream")),
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
            for piece in _pieces(text):
                yield {"content": piece}
        case Thought(text):
            for piece in _pieces(text):
                yield {"reasoning_content": piece}
        case Tool(name, arguments, given_id):
            begun = {"name": name, "arguments": ""}
            first = {"index": index, "id": given_id or call, "type": "function", "function": begun}
            yield {_CALLS: [first]}
            for piece in _pieces(json.dumps(dict(arguments))):
                yield {_CALLS: [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str) -> list[str]:
    return [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"type": kind, "code": kind, "message": message}}
