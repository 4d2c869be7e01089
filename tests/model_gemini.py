"""The scripted model with Google's Gemini API, for the Gemini CLI."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from tests.model_script import ApiError, Block, Message, Text, Thought, Tool
from tests.model_server import ModelServer
from tests.model_sse import Events, pieces

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

    counter = (":countTokens", "totalTokens")

    @override
    def read(self, route: str, raw: bytes) -> dict[str, Any] | None:
        model, _, method = route.rpartition("/")[2].partition(":")
        if method not in ("generateContent", "streamGenerateContent"):
            return None
        streams = method == "streamGenerateContent"
        return {**as_messages(json.loads(raw), model), "stream": streams}

    @override
    def whole(self, reply: Message, body: Mapping[str, Any]) -> dict[str, Any]:
        parts = [{"text": block.text} for block in reply.blocks if isinstance(block, Text)]
        return {**_chunk(parts, body["model"], finish="STOP"), "usageMetadata": _usage(reply)}

    @override
    def events(self, reply: Message, body: Mapping[str, Any]) -> Events:
        number, model = next(self._ids), body["model"]
        for index, block in enumerate(reply.blocks):
            for part in _parts(block, f"call_{number}_{index}"):
                yield None, _chunk([part], model)
        end = _chunk([{"text": ""}], model, finish="STOP")
        yield None, {**end, "usageMetadata": _usage(reply)}

    @override
    def failed(self, error: ApiError) -> dict[str, Any]:
        status = _STATUS.get(error.status, "UNKNOWN")
        told: dict[str, Any] = {"code": error.status, "message": error.message, "status": status}
        if isinstance(error, GoogleError) and error.details:
            told["details"] = [dict(detail) for detail in error.details]
        return {"error": told}


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
            for piece in pieces(text):
                yield {"text": piece}
        case Thought(text):
            for piece in pieces(text):
                yield {"text": piece, "thought": True}
        case Tool(name, arguments, given_id):
            asked = {"id": given_id or call, "name": name, "args": dict(arguments)}
            yield {"functionCall": asked}
