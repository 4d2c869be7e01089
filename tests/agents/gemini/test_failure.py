"""Errors of Gemini CLI sessions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cuggino.agents.gemini.wire import GeminiSession
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ADVICE = "\nPlease wait and try again later. To increase your limits, request a quota increase"


def failure(
    message: str | None, exit_code: int = 1, *, told: str = "", stderr: str = ""
) -> LlmSessionError | None:
    lines: list[dict[str, Any]] = [{"type": "error", "message": told}] if told else []
    if message is not None:
        error = {"type": "unknown", "message": message}
        lines.append({"type": "result", "status": "error", "error": error})
    return ended(lines, exit_code, stderr)


def ended(lines: list[dict[str, Any]], exit_code: int, stderr: str) -> LlmSessionError | None:
    session, now = GeminiSession(zone=lambda: UTC), NOW.timestamp()
    for line in lines:
        session.feed(json.dumps(line).encode(), now=now)
    return session.end(exit_code=exit_code, stderr_tail=stderr, duration=1.0, now=now)[1]


def api(code: int, message: str = "no") -> str:
    return f'[API Error: {{"error":{{"code":{code},"message":"{message}","status":"X"}}}}]'


@pytest.mark.parametrize(
    ("message", "exit_code", "expected"),
    [
        (api(400), 144, "bad_request"),
        (api(400, "API key not valid. Please pass a valid API key."), 144, "auth"),
        (api(400, "The input token count (2) exceeds the maximum"), 144, "prompt_too_long"),
        (api(401), 145, "auth"),
        (api(402), 146, "billing"),
        (api(403), 147, "auth"),
        (api(404), 148, "bad_request"),
        (api(413), 157, "prompt_too_long"),
        (api(500), 244, "server"),
        (api(503), 247, "overloaded"),
        ("[API Error: Internal error]", 244, "server"),
        ("[API Error: The model is busy]", 247, "overloaded"),
        (f"[API Error: mock says 429]{ADVICE}", 173, "rate_limit"),
        ("[API Error: exception TypeError: fetch failed sending request]", 1, "connection"),
        ("Reached max session turns for this session.", 53, "max_turns"),
        ("Context window will overflow (estimated: 9)", 1, "prompt_too_long"),
        ("what is this", 1, "unknown"),
    ],
)
def test_errors(message: str, exit_code: int, expected: str) -> None:
    """The API status or the program's message determines the reason."""
    error = failure(message, exit_code)
    assert isinstance(error, AgentFailed)
    assert expected == error.reason


def test_messages_of_the_api() -> None:
    """The message is the API's own, unwrapped."""
    error = failure(api(401, "mock says 401"), 145)
    assert error is not None
    assert "mock says 401" == error.message
    assert "GEMINI_API_KEY" in (error.hint or "")


@pytest.mark.parametrize(
    ("message", "lifted"),
    [
        ("Quota exceeded.\nSuggested retry after 3600s.", timedelta(hours=1)),
        ("Your quota will reset after 1h30m.", timedelta(minutes=90)),
        ("You have exhausted your daily quota on this model.", None),
        ("You exceeded your current quota, limit: 0.5", None),
        ("Quota exceeded. Please retry in 1.2.3s.", None),
        (f"Quota exceeded. Please retry in {'9' * 400}s.", None),
        ("Quota exceeded. Please retry in 99999999999999999d.", None),
    ],
)
def test_limits(message: str, lifted: timedelta | None) -> None:
    """A limit is a quota error, with the reset time if the message contains one."""
    error = failure(f"[API Error: {message}]{ADVICE}", 173)
    assert isinstance(error, QuotaExceeded)
    assert (None if lifted is None else NOW + lifted) == error.resets_at


def test_a_limit_of_seconds() -> None:
    """Too many requests at once are a rate limit, which names the time of the next try."""
    error = failure("[API Error: Slow down. Please retry in 90.5s.]", 173)
    assert isinstance(error, AgentFailed)
    assert ("rate_limit", NOW + timedelta(seconds=90.5)) == (error.reason, error.retry_at)


@pytest.mark.parametrize("more", ["", ", model: x\nPlease retry in 34.07s."])
def test_a_limit_of_zero(more: str) -> None:
    """A limit of zero never resets, so it is not a quota error, even with a time."""
    error = failure(f"[API Error: You exceeded your current quota, limit: 0{more}]{ADVICE}", 173)
    assert isinstance(error, AgentFailed)
    assert "billing" == error.reason


@pytest.mark.parametrize(
    ("exit_code", "stderr", "expected"),
    [
        (41, "Please set an Auth method", "auth"),
        (42, "Error resuming session: Invalid session identifier", "bad_request"),
        (42, 'Session ID "x" already exists.', "bad_request"),
        (52, "Invalid configuration", "bad_request"),
        (130, "", "aborted"),
        (0, "", "crash"),
        (1, "boom", "crash"),
        (-9, "", "crash"),
    ],
)
def test_without_a_result(exit_code: int, stderr: str, expected: str) -> None:
    """Without a result the exit code determines the error."""
    error = failure(None, exit_code, stderr=stderr)
    assert isinstance(error, AgentFailed)
    assert expected == error.reason


def test_a_crash() -> None:
    """Routine messages and startup output are not part of the error."""
    stderr = (
        "Warning: 256-color support not detected.\nYOLO mode is enabled.\n"
        "[STARTUP] Phase 'cleanup_ops' was started but never ended. Skipping metrics.\nboom\n"
    )
    error = failure(None, -9, stderr=stderr)
    assert error is not None
    assert "gemini was ended by SIGKILL: boom" == error.message


def test_a_loop() -> None:
    """A session that the program stopped because of a loop has failed."""
    told = "Loop detected, stopping execution"
    lines = [{"type": "error", "message": told}, {"type": "result", "status": "success"}]
    error = ended(lines, 0, "")
    assert error is not None
    assert told == error.message
