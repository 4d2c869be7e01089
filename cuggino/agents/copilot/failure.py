"""The outcome of a GitHub Copilot session, and the error if it failed.

The decision uses what the program reports about itself (`session.error`: its type, code and
status), never the model's text; and its message only if nothing else is reported.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from typing import Any

from cuggino.agents.base.failure import cut, failed, reason_of_status
from cuggino.agents.base.wire import Json
from cuggino.domain import is_quota_text, parse_reset
from cuggino.errors import AgentFailed, AgentFailure, LlmSessionError, QuotaExceeded

LOGIN = (
    "log in with `copilot login`, or set COPILOT_GITHUB_TOKEN; "
    "for a model of your own set COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL"
)

_REASON_OF_TYPE: dict[str, AgentFailure] = {
    "authentication": "auth",
    "authorization": "auth",
    "policy": "auth",
    "context_limit": "prompt_too_long",
    "rate_limit": "rate_limit",
}
_HINTS: dict[AgentFailure, str] = {
    "auth": LOGIN,
    "connection": "check the network, a proxy, and COPILOT_PROVIDER_BASE_URL",
}
_WORDS: tuple[tuple[re.Pattern[str], AgentFailure], ...] = (
    (re.compile(r"No GitHub OAuth token|[Nn]ot (?:logged|signed) in|Authentication"), "auth"),
    (re.compile(r"prompt as too long|prompt budget|context (?:length|window)"), "prompt_too_long"),
    (
        re.compile(
            r"[Cc]ould not connect|\bE(?:CONN[A-Z]+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN)\b"
            r"|[Cc]onnection (?:reset|closed)|error sending request|timed out"
            r"|finalize .{0,40}stream"
        ),
        "connection",
    ),
)


def failure_of(error: Json, *, now: datetime, zone: tzinfo) -> LlmSessionError:
    """Return the error of a `session.error`.

    `now` is timezone-aware; `zone` is the zone of times without one.
    """
    message = cut(_text(error.get("message")) or "Unknown error")
    kind, code = _text(error.get("errorType")), _text(error.get("errorCode"))
    reason = _reason(kind, code, error.get("statusCode"), message)
    met = kind == "quota" and reason != "billing"
    # Limits of the user are lifted in hours or days, those of the service within moments.
    met = met or (kind == "rate_limit" and code.startswith("user_"))
    told = reason in ("rate_limit", "unknown", "bad_request") and is_quota_text(message)
    if met or told:
        return QuotaExceeded(message, resets_at=parse_reset(message, now=now, zone=zone))
    return failed(message, reason, hints=_HINTS)


def refusal(program: str, error: Exception) -> AgentFailed:
    """Return the error of a session that could not start, or whose connection broke."""
    said = re.sub(r"^JSON-RPC Error -?\d+: ", "", str(error)) or type(error).__name__
    if "Session not found" in said:
        again = "the session cannot be resumed: start a new one"
        return AgentFailed(cut(said), reason="bad_request", hint=again)
    for pattern, reason in _WORDS:
        if pattern.search(said):
            return failed(cut(said), reason, hints=_HINTS)
    hint = None
    if "protocol version" in said or "Unknown PermissionRequest" in said:
        hint = f"{program} and github-copilot-sdk are incompatible: update both"
    return AgentFailed(cut(f"{program}: {said}"), reason="crash", hint=hint)


def _reason(kind: str, code: str, status: Any, message: str) -> AgentFailure:
    if kind == "quota" and code == "billing_not_configured":
        return "billing"
    if kind in _REASON_OF_TYPE:
        return _REASON_OF_TYPE[kind]
    if isinstance(status, int) and status >= 400:
        return "overloaded" if status == 503 else reason_of_status(status)
    return next((reason for pattern, reason in _WORDS if pattern.search(message)), "unknown")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
