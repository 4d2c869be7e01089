"""The outcome of an OpenCode session, and the error if it failed.

The decision uses what the program reports about itself (`error` with its name and status), never
the model's text; and its message only if nothing else is reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any

from cuggino.agents.base.failure import (
    CONNECTION,
    api_failure,
    crash,
    cut,
    failed,
    last_lines,
    reason_of_status,
)
from cuggino.agents.base.wire import Json
from cuggino.errors import AgentFailed, AgentFailure, LlmSessionError, QuotaExceeded

PATIENCE_SECONDS = 300.0
"""Longest accepted wait; the program waits as long as a server asks for, even days."""

MOST_RETRIES = 3
"""Retries accepted from the program itself, which take 14 s; the loop retries anyway."""

START_ANEW = "the session cannot be resumed: start a new one"

_HINTS: Mapping[AgentFailure, str] = {
    "auth": "log in with `opencode auth login`, or set the key of the provider",
    "connection": "check the network, a proxy, and the address of the provider",
}
_REASON_OF_NAME: Mapping[str, AgentFailure] = {
    "ProviderAuthError": "auth",
    "MessageAbortedError": "aborted",
    "ContextOverflowError": "prompt_too_long",
    "ProviderModelNotFoundError": "bad_request",
    "ModelNotFoundError": "bad_request",
    "ProviderInitError": "bad_request",
}
_WORDS: tuple[tuple[re.Pattern[str], AgentFailure], ...] = (
    (CONNECTION, "connection"),
    (re.compile(r"[Cc]annot connect|[Uu]nable to connect|socket|fetch failed"), "connection"),
    (re.compile(r"[Mm]odel not found|[Nn]o (?:models?|providers?) "), "bad_request"),
    (re.compile(r"API key|[Uu]nauthori[sz]ed"), "auth"),
)
_OUTAGES: tuple[tuple[re.Pattern[str], AgentFailure], ...] = (
    (re.compile(r"[Oo]verloaded"), "overloaded"),
    (re.compile(r"[Ss]erver error|[Bb]ad gateway|[Uu]navailable|[Gg]ateway time"), "server"),
    *(known for known in _WORDS if known[1] == "connection"),
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def failure_of(error: Json, *, now: datetime, zone: tzinfo) -> LlmSessionError:
    """Return the error of an `error` line.

    `now` is timezone-aware; `zone` is the zone of times without one.
    """
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    told = data.get("message") or error.get("message") or error.get("name")
    message = cut(told if isinstance(told, str) and told else "Unknown error")
    reason = _reason(error, data, message)
    failure = api_failure(message, reason, now=now, zone=zone, hints=_HINTS)
    resets_at = _retry_after(data.get("responseHeaders"), now)
    if isinstance(failure, QuotaExceeded):
        return failure if failure.resets_at else QuotaExceeded(message, resets_at=resets_at)
    far = now + timedelta(seconds=PATIENCE_SECONDS)
    if reason == "rate_limit" and resets_at is not None and resets_at > far:
        return QuotaExceeded(message, resets_at=resets_at)
    return failure


def waits_too_long(
    message: str, until: datetime, *, attempt: int, now: datetime, zone: tzinfo
) -> LlmSessionError | None:
    """Return the error that replaces a wait before the next attempt, or None to let it wait.

    The program reports waits by their message alone. A long wait that is not an outage is a usage
    limit.
    """
    is_far = until - now > timedelta(seconds=PATIENCE_SECONDS)
    reason = next((reason for pattern, reason in _OUTAGES if pattern.search(message)), None)
    told = api_failure(cut(message), reason or "rate_limit", now=now, zone=zone, hints=_HINTS)
    if isinstance(told, QuotaExceeded):
        return (
            told if told.resets_at or not is_far else QuotaExceeded(told.message, resets_at=until)
        )
    if is_far and reason is None:
        return QuotaExceeded(cut(message), resets_at=until)
    return told if is_far or attempt > MOST_RETRIES else None


def says_nothing(error: Json) -> bool:
    """Return whether the program only repeats that something failed, without the reason."""
    data = error.get("data")
    return isinstance(data, dict) and str(data.get("message")).startswith("Unexpected server error")


def elsewhere(folder: str) -> AgentFailed:
    """Return the error of a session that belongs to another folder."""
    return AgentFailed(
        f"the session belongs to another folder: {folder}", reason="bad_request", hint=START_ANEW
    )


def broken_off(times: int) -> AgentFailed:
    """Return the error of an endless loop: the program retries whenever an answer breaks off."""
    return failed(f"the model's answer broke off {times} times", "connection", hints=_HINTS)


def ended_early(program: str, exit_code: int, stderr_tail: str, reason: str | None) -> AgentFailed:
    """Return the error of a run that neither failed nor finished."""
    tail = _ANSI.sub("", stderr_tail)
    if "Session not found" in tail:
        return AgentFailed(cut(last_lines(tail)), reason="bad_request", hint=START_ANEW)
    if exit_code == 0 and reason is not None:
        return AgentFailed(f"{program} stopped after a tool call", reason="crash")
    return crash(program, exit_code, tail)


def _reason(error: Json, data: Json, message: str) -> AgentFailure:
    status = data.get("statusCode")
    name = error.get("name")
    if isinstance(name, str) and name in _REASON_OF_NAME:
        return _REASON_OF_NAME[name]
    if isinstance(status, int) and status >= 400:
        return "overloaded" if status == 503 else reason_of_status(status)
    return next((reason for pattern, reason in _WORDS if pattern.search(message)), "unknown")


def _retry_after(headers: Any, now: datetime) -> datetime | None:
    """Return when the server accepts requests again, by its headers."""
    if not isinstance(headers, dict):
        return None
    told = headers.get("retry-after")
    if not isinstance(told, str):
        return None
    try:
        if told.strip().isdecimal():
            return now + timedelta(seconds=int(told))
        return parsedate_to_datetime(told).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
