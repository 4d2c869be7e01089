"""How a run of Claude Code ended, and if it failed, which error that is.

Decided on what the program says about itself (`is_error`, `terminal_reason`, `api_error_status`,
its own API-error lines) and never on the model's text, nor on the subtype or the exit code alone:
an API error is reported as `subtype: success`, and an interrupted run exits with 0. A usage limit
is known by its own events; for want of them, by the program's words about a failure.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from cuggino.agents.claude_events import Json, message_text, text_or_none
from cuggino.domain.quota import is_quota_answer, is_quota_text, parse_reset
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    BudgetExceeded,
    LlmSessionError,
    QuotaExceeded,
)
from cuggino.events import RateLimited, SessionOutcome

_LOGIN = "log in with `claude` and /login, or set ANTHROPIC_API_KEY"
_STDERR_LINES = 5
_MESSAGE_LIMIT = 2000

_REASON_OF_STATUS: dict[int, AgentFailure] = {
    401: "auth",
    403: "auth",
    402: "billing",
    408: "connection",
    413: "prompt_too_long",
    429: "rate_limit",
    529: "overloaded",
}
_HINT_OF_REASON: dict[AgentFailure, str] = {
    "auth": _LOGIN,
    "billing": "check the credit of the account behind the API key",
    "connection": "check the network, a proxy, and ANTHROPIC_BASE_URL",
    "max_turns": "allow more turns, or give the agent a smaller task",
    "overloaded": "try again in a few minutes",
    "prompt_too_long": "give the agent less to read at once",
    "rate_limit": "try again in a few minutes",
    "server": "try again in a few minutes",
}
_CONNECTION = re.compile(
    r"\bE(?:CONN[A-Z]+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|NETDOWN)\b"
    r"|[Cc]onnection (?:error|lost|dropped|refused|closed)|timed out"
)
_REFUSALS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"cannot be used with root"),
        "run as a normal user, or set IS_SANDBOX=1 inside a container",
    ),
    (
        re.compile(r"error: unknown option"),
        "this claude does not know an option that is needed: update it with `claude update`",
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
"""What the program refuses before it starts working, and what to do then."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What is known of a run when its process has ended."""

    result: Json | None
    """The first `result` line: the main answer. Later ones are answers to background tasks."""
    api_error: Json | None = None
    """The last API-error line, unless the model spoke after it."""
    limit: RateLimited | None = None
    """The last usage limit that was reported."""
    interrupted: bool = False
    """The program said that it was interrupted."""
    program: str = "claude"
    """What the program is called in messages."""
    now: datetime
    """When it ended, with a zone."""
    zone: Callable[[], tzinfo]
    """The zone of a time that the program tells without one."""


def failure_of(ending: Ending, *, exit_code: int, stderr_tail: str) -> LlmSessionError | None:
    """The error of this run, or None when it succeeded.

    An exit code is no failure after a successful result: the answer is there. Unless that is a
    usage limit, which some versions call a success and exit with 1 (AUT-024, AUT-076).
    """
    if ending.result is None:
        return _without_result(ending, exit_code=exit_code, stderr_tail=stderr_tail)
    if not _is_failure(ending.result):
        answer = text_or_none(ending.result.get("result")) or ""
        if exit_code != 0 and is_quota_answer(answer):
            return _quota(_cut(answer), ending)
        return None
    return _of_result(ending.result, ending)


def outcome_of(error: LlmSessionError | None) -> SessionOutcome:
    """How a session with this error is said to have ended."""
    match error:
        case None:
            return "completed"
        case QuotaExceeded():
            return "quota"
        case BudgetExceeded():
            return "budget"
        case AgentFailed(reason="aborted"):
            return "interrupted"
        case AgentFailed(reason="max_turns"):
            return "max_turns"
        case _:
            return "failed"


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
        return _failed(message, "max_turns")
    if terminal.startswith("aborted_"):
        return AgentFailed(f"{ending.program} was interrupted", reason="aborted")
    if terminal in ("prompt_too_long", "blocking_limit"):
        return _failed(message, "prompt_too_long")
    for pattern, hint in _REFUSALS:
        if pattern.search(message):
            return AgentFailed(message, reason="bad_request", hint=hint)
    reason = _api_reason(result, ending.api_error or {}, message)
    # A limit may be met and the work go on (paid beyond it), to fail later for another reason.
    # A limit that somebody set for an API key is told as a bad request.
    if reason in ("rate_limit", "unknown") and _limit_told(ending):
        return _quota(message, ending)
    if reason in ("rate_limit", "unknown", "bad_request") and is_quota_text(message):
        return _quota(message, ending)
    return _failed(message, reason)


def _api_reason(result: Json, api_error: Json, message: str) -> AgentFailure:
    kind = api_error.get("error")
    if kind == "billing_error":
        return "billing"
    status = result.get("api_error_status")
    if not isinstance(status, int):
        status = api_error.get("api_error_status")
    if isinstance(status, int) and status >= 400:
        return _REASON_OF_STATUS.get(status, "server" if status >= 500 else "bad_request")
    if kind == "authentication_failed" or message.startswith("Not logged in"):
        return "auth"
    if api_error.get("api_error") == "connection_failed" or _CONNECTION.search(message):
        return "connection"
    return "unknown"


def _limit_told(ending: Ending) -> bool:
    """Whether the program reported in its events that a usage limit was met."""
    rejected = ending.limit is not None and ending.limit.status == "rejected"
    return rejected or (ending.api_error or {}).get("api_error") == "usage_limit_reached"


def _quota(message: str, ending: Ending) -> QuotaExceeded:
    resets_at = ending.limit.resets_at if ending.limit and _limit_told(ending) else None
    if resets_at is None:
        resets_at = parse_reset(message, now=ending.now, zone=ending.zone())
    return QuotaExceeded(message, resets_at=resets_at)


def _without_result(ending: Ending, *, exit_code: int, stderr_tail: str) -> LlmSessionError:
    if ending.interrupted:
        return AgentFailed(f"{ending.program} was interrupted", reason="aborted")
    lines = [line.rstrip() for line in stderr_tail.splitlines() if line.strip()]
    tail = "\n".join(lines[-_STDERR_LINES:])
    said = message_text(ending.api_error) if ending.api_error else ""
    for text in filter(None, (said, tail)):
        if is_quota_text(text):
            return _quota(_cut(text), ending)
    if _limit_told(ending):
        return _quota(_cut(said or tail or "a usage limit was met"), ending)
    for pattern, hint in _REFUSALS:
        if pattern.search(stderr_tail):
            return AgentFailed(_cut(tail), reason="bad_request", hint=hint)
    message = f"{ending.program} {_ending_text(exit_code)}" + (f": {tail}" if tail else "")
    return AgentFailed(_cut(message), reason="crash")


def _ending_text(exit_code: int) -> str:
    if exit_code == 0:
        return "ended without a result"
    # The program answers a signal by exiting with 128 + its number, like a shell.
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        return f"was ended by {signal.Signals(number).name}"
    except ValueError:
        pass
    return f"was ended by signal {number}" if exit_code < 0 else f"exited with code {exit_code}"


def _failed(message: str, reason: AgentFailure) -> AgentFailed:
    return AgentFailed(message, reason=reason, hint=_HINT_OF_REASON.get(reason))


def _message(result: Json) -> str:
    errors: Any = result.get("errors")
    said = [e for e in errors if isinstance(e, str) and e] if isinstance(errors, list) else []
    text = "\n".join(said) or text_or_none(result.get("result"))
    return _cut(text or text_or_none(result.get("error")) or "Unknown error")


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE_LIMIT else text[:_MESSAGE_LIMIT] + " ..."
