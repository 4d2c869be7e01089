"""The outcome of a Codex CLI session, and the error if it failed.

The decision uses what the program reports about itself: the message of `turn.failed`, or its last
lines on stderr if it ended before its turn. Never the model's text, nor the exit code alone.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, tzinfo

from cuggino.agents.base.failure import (
    CONNECTION,
    api_failure,
    crash,
    cut,
    failed,
    last_lines,
    reason_of_status,
)
from cuggino.errors import AgentFailed, AgentFailure, LlmSessionError

_RESUME_AGAIN = "the session cannot be resumed: start a new one"

_HINTS: dict[AgentFailure, str] = {
    "auth": "log in with `codex login`, or set the API key of the model provider",
    "connection": "check the network, a proxy, and the base_url of the model provider",
}
_STATUS = re.compile(r"(?:unexpected|last) status:? (\d{3})")
_WORDS: tuple[tuple[re.Pattern[str], AgentFailure], ...] = (
    (re.compile(r"hit your usage limit"), "rate_limit"),
    (re.compile(r"[Qq]uota exceeded|upgrade to Plus|out of credits|billing"), "billing"),
    (re.compile(r"[Rr]ate limit (?:exceeded|reached)|[Tt]oo many requests"), "rate_limit"),
    (re.compile(r"at capacity|[Oo]verloaded"), "overloaded"),
    (re.compile(r"experiencing high demand"), "server"),
    (re.compile(r"context window|context_length_exceeded"), "prompt_too_long"),
    (
        re.compile(
            r"Missing environment variable|[Nn]ot (?:logged|signed) in|sign in again"
            r"|access token could not|[Ii]nvalid API key|[Uu]nauthorized"
        ),
        "auth",
    ),
    (
        re.compile(
            rf"{CONNECTION.pattern}|[Ss]tream disconnected|Connection failed|idle timeout"
            r"|waiting for network"
        ),
        "connection",
    ),
)
_REFUSALS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"no rollout found|thread/resume failed"), _RESUME_AGAIN),
    (re.compile(r"Error loading config|invalid value|is not trusted"), "check config.toml"),
    (
        re.compile(r"error: unexpected argument|[Uu]nknown feature flag"),
        "this codex lacks a required option: update it through npm",
    ),
    (re.compile(r"required MCP server"), "check the MCP servers of this session"),
)
"""Reasons to refuse before any work starts, and what to do then."""

_WARNING = re.compile(r"^(?:WARNING|warning):|^\S+Z\s+(?:WARN|INFO)\b")


def failure_of(message: str, *, now: datetime, zone: tzinfo) -> LlmSessionError:
    """Return the error of a `turn.failed`. `now` is timezone-aware; `zone` is that of its times."""
    plain = _plain(message) or "Unknown error"
    text, reason = cut(plain), reason_of(plain)
    if reason == "billing":
        return failed(text, reason, hints=_HINTS)
    if plain != message and reason == "unknown":
        reason = "bad_request"  # a message of the API, passed on unchanged for this status alone
    return api_failure(text, reason, now=now, zone=zone, hints=_HINTS)


def no_session(thread: str) -> AgentFailed:
    """Return the error of a session that cannot be resumed."""
    return AgentFailed(
        cut(f"there is no session {thread}"), reason="bad_request", hint=_RESUME_AGAIN
    )


def reason_of(message: str) -> AgentFailure:
    """Return the reason of a failure from the program's message."""
    if found := _STATUS.search(message):
        status = int(found[1])
        return "overloaded" if status == 503 else reason_of_status(status)
    return next((reason for pattern, reason in _WORDS if pattern.search(message)), "unknown")


def ended_early(program: str, *, exit_code: int, stderr_tail: str) -> AgentFailed:
    """Return the error of a program that ended before its turn did."""
    said = "\n".join(line for line in stderr_tail.splitlines() if not _WARNING.match(line))
    for pattern, hint in _REFUSALS:
        if pattern.search(said):
            return AgentFailed(cut(last_lines(said)), reason="bad_request", hint=hint)
    reason = reason_of(said) if exit_code > 0 else "unknown"
    if reason in ("auth", "connection"):
        return failed(cut(last_lines(said)), reason, hints=_HINTS)
    return crash(program, exit_code, said)


def _plain(message: str) -> str:
    """Extract the message from an API response that is passed on unchanged."""
    if not message.startswith("{"):
        return message
    try:
        said = json.loads(message)["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return message
    return said if isinstance(said, str) else message
