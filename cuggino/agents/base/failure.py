"""What the failures of all providers share: hints, crashes, last words, time zones."""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Mapping
from datetime import datetime

from cuggino.agents.base.wire import plain_text
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
    r"|[Cc]onnection attempts? failed|error sending request|timed out"
)
"""Output of a program that could not reach its API."""


def failed(
    message: str,
    reason: AgentFailure,
    *,
    hints: Mapping[AgentFailure, str] | None = None,
    retry_at: datetime | None = None,
) -> AgentFailed:
    """Return the error with a hint, from the provider's `hints` or the common ones."""
    hint = (hints or {}).get(reason) or _HINT_OF_REASON.get(reason)
    return AgentFailed(message, reason=reason, hint=hint, retry_at=retry_at)


def crash(program: str, exit_code: int, stderr_tail: str) -> AgentFailed:
    """Return the error of a program that ended without a result."""
    tail = last_lines(stderr_tail)
    message = f"{program} {ending_text(exit_code)}" + (f": {tail}" if tail else "")
    return AgentFailed(cut(message), reason="crash")


def interrupted(program: str) -> AgentFailed:
    """Return the error of an interrupted session, which is not retried."""
    return AgentFailed(f"{program} was interrupted", reason="aborted")


def outcome_of(error: LlmSessionError | None) -> SessionOutcome:
    """Return the outcome of a session with this error."""
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


_JSON = re.compile(r"\{\s*(?:[\"}]|$)|\[\s*(?:[\[{\"\]]|$)")
"""The beginning of JSON, rather than of a text such as `[error] not enrolled`."""
_ERROR = re.compile(
    r"[\[\s]*\{(?:[^{}]{0,200},)?\s*\"(?:error|message|detail)\"\s*:\s*[{\"].*\}", re.DOTALL
)
"""An error of an API or a wrapper, which programs print as they got it."""


class PlainLines:
    """The last lines of a program's output that are plain text, as a terminal shows them.

    A program that fails before its session may print the reason in the place of its events.
    """

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=STDERR_LINES)

    def add(self, line: bytes) -> None:
        """Keep the line, unless it is blank or a part of JSON that tells of no error."""
        text = plain_text(line)
        if text and (not _JSON.match(text) or _ERROR.match(text)):
            self._lines.append(text)

    def after(self, stderr_tail: str) -> str:
        """Return the last words of the program: on standard error, then these lines."""
        return "\n".join(filter(None, (stderr_tail.rstrip("\n"), *self._lines)))


def last_lines(stderr_tail: str) -> str:
    """Return the last lines that are not blank."""
    lines = [line.rstrip() for line in stderr_tail.splitlines() if line.strip()]
    return "\n".join(lines[-STDERR_LINES:])


def ending_text(exit_code: int) -> str:
    """Describe how a process ended; the code is negative if a signal terminated it."""
    if exit_code == 0:
        return "ended without a result"
    # Programs report a signal by exiting with 128 + its number, like a shell.
    number = -exit_code if exit_code < 0 else exit_code - 128
    try:
        return f"was ended by {signal.Signals(number).name}"
    except ValueError:
        pass
    return f"was ended by signal {number}" if exit_code < 0 else f"exited with code {exit_code}"


def cut(text: str) -> str:
    """Shorten a text that is too long for a message."""
    return text if len(text) <= _MESSAGE_LIMIT else text[:_MESSAGE_LIMIT] + " ..."
