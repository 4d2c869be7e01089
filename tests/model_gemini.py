"""The scripted model with Google's Gemini API, for the Gemini CLI.

Requests are converted to the shape of the Messages API (`model_server`), so that scripts see the
same `ModelRequest`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from typing_extensions import override

from tests.model_script import ApiError, Block, Message, Script, Text, Thought, Tool
from tests.model_server import ModelServer, _Handler

_PIECE = 24
"""Characters of text in one chunk."""

_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_QUOTA_FAILURE = "type.googleapis.com/google.rpc.QuotaFailure"

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


@dataclass(frozen=True)
class GoogleError(ApiError):
    """An error of the API with details."""

    details: Sequence[Mapping[str, Any]] = ()


def usage_limit(retry_after: str | None, message: str = "Quota exceeded.") -> GoogleError:
    """Return an exhausted usage limit, for a duration (`3600s`) or for the rest of the day."""
    details: list[Mapping[str, Any]] = [
        {
            "@type": _QUOTA_FAILURE,
            "violations": [{"quotaId": "RequestsPerDay" if retry_after is None else "Requests"}],
        }
    ]
    if retry_after is not None:
        details.append({"@type": _RETRY_INFO, "retryDelay": retry_after})
    return GoogleError(429, "RESOURCE_EXHAUSTED", message, details=details)


class GeminiServer(ModelServer):
    """A `ModelServer` whose `url` is a base URL of the Gemini API."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        server = self

        class Handler(_GeminiHandler):
            owner = server

        self._http.RequestHandlerClass = Handler


class _GeminiHandler(_Handler):
    @override
    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        model, _, method = urlsplit(self.path).path.rpartition("/")[2].partition(":")
        if method == "countTokens":
            self._send_json(200, {"totalTokens": len(raw) // 4})
            return
        if method not in ("generateContent", "streamGenerateContent"):
            self._send_json(404, _error(404, f"no {self.path} here", ()))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = as_messages(json.loads(raw), model)
        body["stream"] = method == "streamGenerateContent"
        self._answer(self.owner._receive(self.path, headers, body), body)

    def _answer(self, reply: Any, body: dict[str, Any]) -> None:
        match reply:
            case Message() if body["stream"]:
                self._stream(self._chunks(reply, body))
            case Message():
                self._send_json(200, whole(reply, model=body["model"]))
            case GoogleError(status, _, message, headers):
                self._send_json(status, _error(status, message, reply.details), headers)
            case ApiError(status, _, message, headers):
                self._send_json(status, _error(status, message, ()), headers)
            case _:
                super()._answer(reply, body)

    def _begin(self, message: Message | None, after_events: int, body: dict[str, Any]) -> None:
        if message is not None:
            made = list(self._chunks(message, body))
            self._stream(iter(made[:after_events]), ends=False)

    def _chunks(self, reply: Message, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        return chunks(reply, number=next(self.owner._ids), model=body["model"])

    def _stream(self, made: Iterator[dict[str, Any]], *, ends: bool = True) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for chunk in made:
            event = f"data: {json.dumps(chunk)}\r\n\r\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        if ends:
            self.wfile.write(b"0\r\n\r\n")


def as_messages(asked: dict[str, Any], model: str) -> dict[str, Any]:
    """Convert a request for content to one for a message."""
    tools = [
        declared
        for tool in asked.get("tools") or []
        for declared in tool.get("functionDeclarations") or []
    ]
    messages = [
        {
            "role": "assistant" if content.get("role") == "model" else "user",
            "content": [{"type": "text", "text": _told(part)} for part in content["parts"]],
        }
        for content in asked.get("contents") or []
    ]
    system = [_told(part) for part in (asked.get("systemInstruction") or {}).get("parts") or []]
    return {
        "model": model,
        "system": [{"type": "text", "text": text} for text in system],
        "messages": messages,
        "tools": tools,
    }


def _told(part: dict[str, Any]) -> str:
    """Return the text of a part; for a tool's answer, without its envelope."""
    if "text" in part:
        return str(part["text"])
    answered = (part.get("functionResponse") or {}).get("response")
    if isinstance(answered, dict):
        said = [value for value in answered.values() if isinstance(value, str)]
        return "\n".join(said) or json.dumps(answered)
    return json.dumps(part, ensure_ascii=False)


def chunks(reply: Message, *, number: int, model: Any) -> Iterator[dict[str, Any]]:
    """Yield the chunks that stream this message, its usage in the last one."""
    for index, block in enumerate(reply.blocks):
        for part in _parts(block, f"call_{number}_{index}"):
            yield _chunk([part], model)
    yield {**_chunk([{"text": ""}], model, finish="STOP"), "usageMetadata": _usage(reply)}


def whole(reply: Message, *, model: Any) -> dict[str, Any]:
    """Return the message in one piece."""
    parts = [{"text": block.text} for block in reply.blocks if isinstance(block, Text)]
    return {**_chunk(parts, model, finish="STOP"), "usageMetadata": _usage(reply)}


def _chunk(parts: list[dict[str, Any]], model: Any, finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": model}


def _usage(reply: Message) -> dict[str, int]:
    return {
        "promptTokenCount": reply.input_tokens,
        "candidatesTokenCount": reply.output_tokens,
        "totalTokenCount": reply.input_tokens + reply.output_tokens,
    }


def _parts(block: Block, call: str) -> Iterator[dict[str, Any]]:
    match block:
        case Text(text):
            for piece in _pieces(text):
                yield {"text": piece}
        case Thought(text):
            for piece in _pieces(text):
                yield {"text": piece, "thought": True}
        case Tool(name, arguments, given_id):
            asked = {"id": given_id or call, "name": name, "args": dict(arguments)}
            yield {"functionCall": asked}


def _pieces(text: str) -> list[str]:
    return [text[i : i + _PIECE] for i in range(0, len(text), _PIECE)]


def _error(status: int, message: str, details: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "code": status,
        "message": message,
        "status": _STATUS.get(status, "UNKNOWN"),
    }
    if details:
        told["details"] = [dict(detail) for detail in details]
    return {"error": told}
