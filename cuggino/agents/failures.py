"""What all providers share in naming how a session failed: statuses, hints, crashes, limits."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from datetime import datetime, tzinfo

from cuggino.domain.quota import is_quota_text, parse_reset
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    BudgetExceeded,
    LlmSessionError,
    QuotaExceeded,
)
from cuggino.events import SessionOutcome

STDERR_LINES = 5
_MESSAGE_LIMIT = 2000

_REASON_OF_STATUS: Mapping[int, AgentFailure] = {
    401: "auth",
    403: "auth",
    402: "billing",
    408: "connection",
    413: "prompt_too_long",
    429: "rate_limit",
    529: "overloaded",
}

_HINT_OF_REASON: Mapping[AgentFailure, str] = {
    "billing": "check the plan or the credit of the account",
    "connection": "check the network, a proxy, and the address of the API",
    "max_turns": "allow more turns, or give the agent a smaller task",
    "overloaded": "try again in a few minutes",
    "prompt_too_long": "give the agent less to read at once",
    "rate_limit": "try again in a few minutes",
    "server": "try again in a few minutes",
}

CONNECTION = re.compile(
    r"\bE(?:CONN[A-Z]+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|NETDOWN)\b"
    r"|[Cc]ould not connect|[Cc]onnection (?:error|lost|dropped|refused|closed|reset)"
    r"|error sending request|timed out"
)
"""Words of a program that could not reach its API."""


def reason_of_status(status: int) -> AgentFailure:
    """What an HTTP status of 400 or more says of a failure."""
    return _REASON_OF_STATUS.get(status, "server" if status >= 500 else "bad_request")


def failed(
    message: str, reason: AgentFailure, *, hints: Mapping[AgentFailure, str] | None = None
) -> AgentFailed:
    """The error with what a person can do; `hints` of the provider count before the common ones."""
    hint = (hints or {}).get(reason) or _HINT_OF_REASON.get(reason)
    return AgentFailed(message, reason=reason, hint=hint)


def api_failure(
    message: str,
    reason: AgentFailure,
    *,
    now: datetime,
    zone: tzinfo,
    hints: Mapping[AgentFailure, str] | None = None,
) -> LlmSessionError:
    """The error of an API that refused: `QuotaExceeded` where its words tell a usage limit.

    A limit that somebody set for an API key is told as a bad request. `now` has a zone; `zone` is
    that of a time that is told without one.
    """
    if reason in ("rate_limit", "unknown", "bad_request") and is_quota_text(message):
        return QuotaExceeded(message, resets_at=parse_reset(message, now=now, zone=zone))
    return failed(message, reason, hints=hints)


def crash(program: str, exit_code: int, stderr_tail: str) -> AgentFailed:
    """The error of a program that ended without saying how its session went."""
    tail = last_lines(stderr_tail)
    message = f"{program} {ending_text(exit_code)}" + (f": {tail}" if tail else "")
    return AgentFailed(cut(message), reason="crash")


def interrupted(program: str) -> AgentFailed:
    """The error of a session that was interrupted, which is not retried."""
    return AgentFailed(f"{program} was interrupted", reason="aborted")


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


def last_lines(stderr_tail: str) -> str:
    """The last lines that say something."""
    lines = [line.rstrip() for line in stderr_tail.splitlines() if line.strip()]
    return "\n".join(lines[-STDERR_LINES:])


def ending_text(exit_code: int) -> str:
    """How a process ended; the code is negative when a signal ended it."""
    if exit_code == 0:
        return "ended without a result"
    # Programs answer a signal by exiting with 128 + its number, like a shell.
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        return f"was ended by {signal.Signals(number).name}"
    except ValueError:
        pass
    return f"was ended by signal {number}" if exit_code < 0 else f"exited with code {exit_code}"


def cut(text: str) -> str:
    """The text, its end left out when it is too long for a message."""
    return text if len(text) <= _MESSAGE_LIMIT else text[:_MESSAGE_LIMIT] + " ..."
