"""Failures of Agent Client Protocol sessions, classified by what the program reports.

Some programs report an error of their model only as text from the agent, and end the turn
normally. So a turn that is empty, or contains only an error message, counts as a failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

from cuggino.agents.base.failure import CONNECTION, api_failure, cut, failed, reason_of_status
from cuggino.agents.base.wire import Json, compact, dict_or_empty, is_number, text_or_none
from cuggino.domain import is_quota_text
from cuggino.errors import AgentFailed, AgentFailure, LlmSessionError

_NO_ACCOUNT = -32000
_METHOD_MISSING = -32601
_NO_SUCH = (-32002, -32602)

_REASON_OF_KIND: Mapping[str, AgentFailure] = {
    "authentication_failed": "auth",
    "billing_error": "billing",
    "invalid_request": "bad_request",
    "overloaded": "overloaded",
    "rate_limit": "rate_limit",
    "server_error": "server",
}
_STATUS = re.compile(
    r"(?:^|\bstatus(?: code)?:? |\bHTTP |\berror:? [('\"]?)([45]\d\d)\b", re.IGNORECASE
)
_TOO_LONG = re.compile(r"context (?:length|window)|too many tokens|too long", re.IGNORECASE)
_LOGIN = re.compile(r"api key|unauthorized|authenticat|not logged in|log ?in\b", re.IGNORECASE)
_BUSY = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)
_WORDS: tuple[tuple[re.Pattern[str], AgentFailure], ...] = (
    (_TOO_LONG, "prompt_too_long"),
    (_LOGIN, "auth"),
    (_BUSY, "rate_limit"),
    (re.compile(r"overloaded", re.IGNORECASE), "overloaded"),
)
_ERROR_TEXT = re.compile(
    r"\s*(?:\W*\s*)?(?:api |internal |server |network |provider |request )?"
    r"(?:error|failed|failure|exception)\b",
    re.IGNORECASE,
)


def failure_of(
    program: str, method: str, error: Json, *, now: datetime, zone: tzinfo, login: str
) -> LlmSessionError:
    """Return the error for an error response to `method`; `login` is the hint on how to log in."""
    code, data = error.get("code"), error.get("data")
    message = _message(error)
    kind = text_or_none(dict_or_empty(data).get("errorKind")) or ""
    hints: dict[AgentFailure, str] = {"auth": login}
    if method in ("session/load", "session/resume") and code != _NO_ACCOUNT:
        again = "the session cannot be resumed: start a new one"
        return AgentFailed(cut(f"{program}: {message}"), reason="bad_request", hint=again)
    reason = _REASON_OF_KIND.get(kind) or _by_code(code) or reason_of_text(message)
    return api_failure(cut(message), reason, now=now, zone=zone, hints=hints)


def reason_of_text(text: str) -> AgentFailure:
    """Return the reason that a message of the program names."""
    if found := _STATUS.search(text):
        status = int(found[1])
        if _TOO_LONG.search(text):
            return "prompt_too_long"
        return "overloaded" if status == 503 else reason_of_status(status)
    if is_quota_text(text):
        return "rate_limit"  # its advice may be to log in with another account
    for pattern, reason in _WORDS:
        if pattern.search(text):
            return reason
    return "connection" if CONNECTION.search(text) else "unknown"


def failed_turn(
    program: str, text: str, *, has_worked: bool, now: datetime, zone: tzinfo, login: str
) -> LlmSessionError | None:
    """Return the error of a turn that ended normally, or None if it produced an answer."""
    if has_worked:
        return None
    if not text.strip():
        return failed(f"{program} ended its turn without an answer", "unknown")
    if _ERROR_TEXT.match(text) is None and not _STATUS.match(text):
        return None
    reason = reason_of_text(text)
    return api_failure(cut(text.strip()), reason, now=now, zone=zone, hints={"auth": login})


def _by_code(code: Any) -> AgentFailure | None:
    if code == _NO_ACCOUNT:
        return "auth"
    if is_number(code) and 400 <= code < 600:
        return "overloaded" if code == 503 else reason_of_status(int(code))
    return "bad_request" if code == _METHOD_MISSING or code in _NO_SUCH else None


def _message(error: Json) -> str:
    """Return the message with its details, without boilerplate."""
    data = error.get("data")
    given = dict_or_empty(data)
    details = next(
        (text for key in ("details", "message", "error") if (text := text_or_none(given.get(key)))),
        data if isinstance(data, str) else compact(data) if data else "",
    )
    message = text_or_none(error.get("message")) or "Unknown error"
    if details and message in ("Internal error", "Unknown error"):
        return details
    return f"{message}: {details}" if details and details not in message else message
