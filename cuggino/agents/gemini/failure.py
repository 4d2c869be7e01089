"""The outcome of a Gemini CLI session, and the error if it failed.

The decision uses what the program reports about itself (its `result`, its `error` lines, its exit
code), never the model's text. The status of an API error is part of a message, as JSON, or is the
exit code modulo 256.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from cuggino.agents.base.failure import (
    CONNECTION,
    api_failure,
    crash,
    cut,
    failed,
    interrupted,
    last_lines,
    reason_of_status,
)
from cuggino.agents.base.wire import Json, dict_or_empty, text_or_none
from cuggino.domain import is_quota_text, parse_reset
from cuggino.errors import AgentFailed, AgentFailure, LlmSessionError, QuotaExceeded

_HINTS: dict[AgentFailure, str] = {
    "auth": "log in with `gemini`, or set GEMINI_API_KEY",
    "connection": "check the network, a proxy, and GOOGLE_GEMINI_BASE_URL",
}

_EXIT_CODES: dict[int, AgentFailure] = {41: "auth", 42: "bad_request", 44: "bad_request"}
_EXIT_CODES |= {52: "bad_request", 53: "max_turns", 55: "bad_request"}
_INTERRUPTED = 130
_STATUSES = (400, 401, 402, 403, 404, 408, 413, 429, 499, 500, 502, 503, 504, 529)

_WORDS: tuple[tuple[re.Pattern[str], AgentFailure], ...] = (
    (re.compile(r"API[_ ]key (?:not valid|expired)|API_KEY_INVALID|auth method"), "auth"),
    (
        re.compile(r"token count .{0,80}exceeds|[Cc]ontext window will overflow|too many tokens"),
        "prompt_too_long",
    ),
    (re.compile(r"max(?:imum)? session turns", re.IGNORECASE), "max_turns"),
    (re.compile(r"fetch failed|stream ended|Incomplete JSON|terminated"), "connection"),
    (CONNECTION, "connection"),
)
_WAIT = re.compile(r"(?:retry after|retry in|reset after)\s+((?:[\d.]+(?:ms|[dhms])\s*)+)")
_SPAN = re.compile(r"([\d.]+)(ms|[dhms])")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_USED_UP = re.compile(r"exhausted your|credits", re.IGNORECASE)
_NOTHING = re.compile(r"limit:\s*0(?![\d.])", re.IGNORECASE)
"""The model has no free tier, so waiting does not help."""
_RESUMING = re.compile(r"[Ee]rror resuming session|Invalid session identifier|already exists")
_NOISE = re.compile(
    r"256-color|^YOLO mode|^Ripgrep is not|^Data collection|^\[STARTUP\]", re.MULTILINE
)
"""Lines on standard error that occur in any session or during startup."""

LOOP = "Loop detected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Everything known at the end of a run."""

    result: Json | None
    told: str
    """The last error reported before."""
    began: bool
    program: str
    now: datetime
    zone: tzinfo


def failure_of(ending: Ending, *, exit_code: int, stderr_tail: str) -> LlmSessionError | None:
    """Return the error of the run, or None if it succeeded."""
    if ending.result is None:
        return _without_result(ending, exit_code, stderr_tail)
    if ending.result.get("status") == "success":
        return AgentFailed(ending.told, reason="unknown") if LOOP in ending.told else None
    told = text_or_none(dict_or_empty(ending.result.get("error")).get("message"))
    message, status = _api_error(told or ending.told or "Unknown error")
    if exit_code == _INTERRUPTED:
        return interrupted(ending.program)
    if status is None:
        status = next((s for s in _STATUSES if exit_code > 64 and s & 255 == exit_code), None)
    if status == 429 and _NOTHING.search(message):
        return failed(message, "billing", hints=_HINTS)
    if status == 429 and (limit := _limit(message, ending)):
        return limit
    reason = _reason(message, status) or _EXIT_CODES.get(exit_code, "unknown")
    return api_failure(message, reason, now=ending.now, zone=ending.zone, hints=_HINTS)


def _without_result(ending: Ending, exit_code: int, stderr_tail: str) -> LlmSessionError:
    if exit_code == _INTERRUPTED:
        return interrupted(ending.program)
    said = [line for line in stderr_tail.splitlines() if not _NOISE.search(line)]
    tail = last_lines("\n".join(said))
    if not ending.began and _RESUMING.search(stderr_tail):
        again = "the session cannot be resumed: start a new one"
        return AgentFailed(cut(tail), reason="bad_request", hint=again)
    if reason := _EXIT_CODES.get(exit_code):
        return failed(cut(tail or f"exit code {exit_code}"), reason, hints=_HINTS)
    return crash(ending.program, exit_code, tail)


def _reason(message: str, status: int | None) -> AgentFailure | None:
    for pattern, reason in _WORDS:
        if pattern.search(message):
            return reason
    if status is None:
        return None
    return "overloaded" if status == 503 else reason_of_status(status)


def _limit(message: str, ending: Ending) -> QuotaExceeded | None:
    """Return the error of a limit with a known reset time, or of an exhausted quota."""
    if found := _WAIT.search(message):
        with suppress(ValueError, OverflowError):  # not a number, or not a date
            seconds = sum(float(n) * _UNIT[unit] for n, unit in _SPAN.findall(found[1]))
            return QuotaExceeded(message, resets_at=ending.now + timedelta(seconds=seconds))
    if _USED_UP.search(message) or is_quota_text(message):
        resets_at = parse_reset(message, now=ending.now, zone=ending.zone)
        return QuotaExceeded(message, resets_at=resets_at)
    return None


def _api_error(message: str) -> tuple[str, int | None]:
    """Return the API's own message, and its status if reported.

    The text after the bracket is advice that is the same for all limits.
    """
    found = re.match(r"\[API Error: (.*)\]", message, re.DOTALL)
    words = found[1] if found else message
    start = words.find("{")
    if start >= 0:
        try:
            error = dict_or_empty(dict_or_empty(json.loads(words[start:])).get("error"))
        except (ValueError, RecursionError):
            error = {}
        code = error.get("code")
        if told := text_or_none(error.get("message")):
            return cut(told), code if isinstance(code, int) else None
    return cut(words), None
