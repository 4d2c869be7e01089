"""Errors of Codex CLI sessions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cuggino.agents.codex.wire import CodexSession
from cuggino.errors import AgentFailed, QuotaExceeded
from tests.agents.codex.test_wire import NOW, capture, read

STATUS = "unexpected status {}: no, url: http://127.0.0.1:1/v1/responses"

MESSAGES = [
    (STATUS.format("401 Unauthorized"), "auth"),
    (STATUS.format("402 Payment Required"), "billing"),
    (STATUS.format("403 Forbidden"), "auth"),
    (STATUS.format("404 Not Found"), "bad_request"),
    (STATUS.format("413 Payload Too Large"), "prompt_too_long"),
    (STATUS.format("503 Service Unavailable"), "overloaded"),
    (STATUS.format("529 <unknown status code>"), "overloaded"),
    ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
    ("rate limit exceeded: Rate limit reached for gpt. Please try again in 3s.", "rate_limit"),
    ("Selected model is at capacity. Please try a different model.", "overloaded"),
    ("We’re currently experiencing high demand, which may cause temporary errors.", "server"),
    ("Quota exceeded. Check your plan and billing details.", "billing"),
    ("To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com", "billing"),
    ("Codex ran out of room in the model's context window. Start a new thread", "prompt_too_long"),
    ("stream disconnected before completion: error sending request", "connection"),
    ("stream disconnected before completion: idle timeout waiting for SSE", "connection"),
    ("Connection failed: error sending request", "connection"),
    ("Missing environment variable: `MOCK_KEY`.", "auth"),
    ('{"error": {"message": "bad prompt"}}', "bad_request"),
    ('{"error": "bad prompt"}', "bad_request"),
    ("Rate limit reached for gpt. Please try again in 3s.", "rate_limit"),
    ("something else", "unknown"),
    ("something long " * 500, "unknown"),
]


@pytest.mark.parametrize(("message", "expected"), MESSAGES)
def test_messages(message: str, expected: str) -> None:
    """The message of a failed turn determines the reason, with a hint if the user can act."""
    line = json.dumps({"type": "turn.failed", "error": {"message": message}}).encode()
    _, ended, error = read([line], exit_code=1)
    assert isinstance(error, AgentFailed)
    assert (expected, "failed") == (error.reason, ended.outcome)
    assert (expected == "auth") == ("codex login" in (error.hint or ""))


def test_a_usage_limit() -> None:
    """A usage limit is a quota error whose reset time is in the program's time zone."""
    there = timezone(timedelta(hours=2))
    session = CodexSession(zone=lambda: there)
    for line in capture("quota"):
        session.feed(line, now=NOW)
    met = datetime(2026, 11, 21, 21, 0, tzinfo=UTC).timestamp()
    ended, error = session.end(exit_code=1, stderr_tail="", duration=1.0, now=met)
    assert isinstance(error, QuotaExceeded)
    assert datetime(2026, 11, 22, 0, 46, tzinfo=there) == error.resets_at
    assert "quota" == ended.outcome


def test_a_limit_without_a_time() -> None:
    """A usage limit without a time is a quota error without one."""
    line = b'{"type":"turn.failed","error":{"message":"You\xe2\x80\x99ve hit your usage limit."}}'
    _, _, error = read([line], exit_code=1)
    assert isinstance(error, QuotaExceeded)
    assert error.resets_at is None


@pytest.mark.parametrize(
    ("stderr", "code", "reason"),
    [
        ("Error: thread/resume: thread/resume failed: no rollout found for id", 1, "bad_request"),
        ("Error loading config.toml: invalid transport", 1, "bad_request"),
        ("error: unexpected argument '--new' found", 2, "bad_request"),
        ("Error: Not logged in", 1, "auth"),
        ("thread 'main' panicked at lib.rs", 101, "crash"),
        ("Error: Not logged in", -9, "crash"),
        ("", 0, "crash"),
    ],
)
def test_ended_early(stderr: str, code: int, reason: str) -> None:
    """A program that exits before its turn is classified by its last error, not its warnings."""
    said = f"WARNING: proceeding, even though idle timeout\n{stderr}\n"
    error = CodexSession().end(exit_code=code, stderr_tail=said, duration=1.0, now=NOW)[1]
    assert isinstance(error, AgentFailed)
    assert reason == error.reason
    assert "WARNING" not in str(error)
    assert (reason in ("bad_request", "auth")) == (error.hint is not None)
