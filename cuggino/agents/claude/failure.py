"""The outcome of a Claude Code run, and the error if it failed.

The decision uses what the program reports about itself (`is_error`, `terminal_reason`,
`api_error_status`, its own API-error lines), never the model's text, and never the subtype or exit
code alone: an API error is reported as `subtype: success`, and an interrupted run exits with 0. A
usage limit is recognized by its own events, or else by the message of a failure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from cuggino.agents.base.failure import (
    CONNECTION,
    crash,
    cut,
    failed,
    interrupted,
    last_lines,
    reason_of_status,
)
from cuggino.agents.base.wire import Json, text_or_none
from cuggino.domain import is_quota_answer, is_quota_text, parse_reset
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    BudgetExceeded,
    LlmSessionError,
    QuotaExceeded,
)
from cuggino.events import RateLimited

_LOGIN = "log in with `claude` and /login, or set ANTHROPIC_API_KEY"

_HINTS: dict[AgentFailure, str] = {
    "auth": _LOGIN,
    "billing": "check the credit of the account behind the API key",
    "connection": "check the network, a proxy, and ANTHROPIC_BASE_URL",
}
_REFUSALS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"cannot be used with root"),
        "run as a normal user, or set IS_SANDBOX=1 inside a container",
    ),
    (
        re.compile(r"error: unknown option"),
        "this claude lacks a required option: update it with `claude update`",
    ),
    (
        re.compile(r"No conversation found with session ID"),
        "the session cannot be resumed: start a new one",
    ),
    (
        re.compile(r"Session ID \S+ is already in use"),
        "resume the session, or start one with another id",
    ),
)
"""Reasons to refuse before any work starts, and what to do then."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """Everything known about a run when its process has ended."""

    result: Json | None
    """The first `result` line: the main answer. Later ones answer background tasks."""
    api_error: Json | None = None
    """The last API-error line, unless the model answered after it."""
    api_text: str = ""
    """Text of that line."""
    limit: RateLimited | None = None
    """The last usage limit that was reported."""
    interrupted: bool = False
    """True if the program reported an interruption."""
    program: str = "claude"
    """Name of the program in messages."""
    now: datetime
    """Time of the end, timezone-aware."""
    zone: Callable[[], tzinfo]
    """Returns the time zone for times without one."""


def failure_of(ending: Ending, *, exit_code: int, stderr_tail: str) -> LlmSessionError | None:
    """Return the error of this run, or None if it succeeded.

    A nonzero exit code after a successful result is ignored, as the answer is complete. The
    exception is a usage limit, which some versions report as a success with exit code 1 (AUT-024,
    AUT-076).
    """
    if ending.result is None:
        return _without_result(ending, exit_code=exit_code, stderr_tail=stderr_tail)
    if not _is_failure(ending.result):
        answer = text_or_none(ending.result.get("result")) or ""
        if exit_code != 0 and is_quota_answer(answer):
            return _quota(cut(answer), ending)
        return None
    return _of_result(ending.result, ending)


def refused_login(program: str) -> AgentFailed:
    """Return the error of a login that the API refuses."""
    return failed(f"the API refused the login of {program} (401)", "auth", hints=_HINTS)


def _is_failure(result: Json) -> bool:
    status = result.get("api_error_status")
    subtype = text_or_none(result.get("subtype")) or ""
    terminal = text_or_none(result.get("terminal_reason")) or ""
    return (
        result.get("is_error") is True
        or subtype not in ("", "success")
        or terminal in ("api_error", "prompt_too_long", "blocking_limit", "image_error")
        or terminal in ("max_turns", "budget_exhausted")
        or terminal.startswith("aborted_")
        or (isinstance(status, int) and status >= 400)
    )


def _of_result(result: Json, ending: Ending) -> LlmSessionError:
    message = _message(result)
    subtype = result.get("subtype")
    terminal = text_or_none(result.get("terminal_reason")) or ""
    if terminal == "budget_exhausted" or subtype == "error_max_budget_usd":
        return BudgetExceeded(message, hint="allow more with a larger budget")
    if terminal == "max_turns" or subtype == "error_max_turns":
        return failed(message, "max_turns", hints=_HINTS)
    if terminal.startswith("aborted_"):
        return interrupted(ending.program)
    if terminal in ("prompt_too_long", "blocking_limit"):
        return failed(message, "prompt_too_long", hints=_HINTS)
    for refusal, hint in _REFUSALS:
        if refusal.search(message):
            return AgentFailed(message, reason="bad_request", hint=hint)
    reason = _api_reason(result, ending.api_error or {}, message)
    # A limit may be reached and the work continue (at a price), to fail later for another reason.
    # A limit set on an API key is reported as a bad request.
    if reason in ("rate_limit", "unknown") and _limit_told(ending):
        return _quota(message, ending)
    if reason in ("rate_limit", "unknown", "bad_request") and is_quota_text(message):
        return _quota(message, ending)
    return failed(message, reason, hints=_HINTS)


def _api_reason(result: Json, api_error: Json, message: str) -> AgentFailure:
    kind = api_error.get("error")
    if kind == "billing_error":
        return "billing"
    status = result.get("api_error_status")
    if not isinstance(status, int):
        status = api_error.get("api_error_status")
    if isinstance(status, int) and status >= 400:
        return reason_of_status(status)
    if kind == "authentication_failed" or message.startswith("Not logged in"):
        return "auth"
    if api_error.get("api_error") == "connection_failed" or CONNECTION.search(message):
        return "connection"
    return "unknown"


def _limit_told(ending: Ending) -> bool:
    """Return whether the program's events reported a usage limit."""
    rejected = ending.limit is not None and ending.limit.status == "rejected"
    return rejected or (ending.api_error or {}).get("api_error") == "usage_limit_reached"


def _quota(message: str, ending: Ending) -> QuotaExceeded:
    resets_at = ending.limit.resets_at if ending.limit and _limit_told(ending) else None
    if resets_at is None:
        resets_at = parse_reset(message, now=ending.now, zone=ending.zone())
    return QuotaExceeded(message, resets_at=resets_at)


def _without_result(ending: Ending, *, exit_code: int, stderr_tail: str) -> LlmSessionError:
    if ending.interrupted:
        return interrupted(ending.program)
    tail = last_lines(stderr_tail)
    said = ending.api_text
    for text in filter(None, (said, tail)):
        if is_quota_text(text):
            return _quota(cut(text), ending)
    if _limit_told(ending):
        return _quota(cut(said or tail or "a usage limit was met"), ending)
    for refusal, hint in _REFUSALS:
        if refusal.search(stderr_tail):
            return AgentFailed(cut(tail), reason="bad_request", hint=hint)
    return crash(ending.program, exit_code, stderr_tail)


def _message(result: Json) -> str:
    errors: Any = result.get("errors")
    said = [e for e in errors if isinstance(e, str) and e] if isinstance(errors, list) else []
    text = "\n".join(said) or text_or_none(result.get("result"))
    return cut(text or text_or_none(result.get("error")) or "Unknown error")
