"""Errors of GitHub Copilot sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from cuggino.agents.base.failure import crash
from cuggino.agents.copilot.failure import connection_failure
from cuggino.errors import AgentFailed, QuotaExceeded
from tests.agents.copilot.test_wire import NOW, ended, raw

ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"errorType": "authentication", "statusCode": 401}, "auth"),
    ({"errorType": "authorization", "statusCode": 403}, "auth"),
    ({"errorType": "policy"}, "auth"),
    ({"errorType": "context_limit"}, "prompt_too_long"),
    ({"errorType": "rate_limit", "statusCode": 429}, "rate_limit"),
    ({"errorType": "rate_limit", "errorCode": "rate_limited"}, "rate_limit"),
    ({"errorType": "rate_limit", "errorCode": "user_weekly_rate_limited"}, "quota"),
    ({"errorType": "quota", "errorCode": "quota_exceeded"}, "quota"),
    ({"errorType": "quota", "errorCode": "billing_not_configured"}, "billing"),
    ({"errorType": "query", "statusCode": 500}, "server"),
    ({"errorType": "query", "statusCode": 503}, "overloaded"),
    ({"errorType": "query", "statusCode": 402}, "billing"),
    ({"errorType": "query", "statusCode": 400}, "bad_request"),
    ({"errorType": "query", "message": "Could not connect to local model provider"}, "connection"),
    ({"errorType": "query", "message": "Failed to finalize chat-completions stream"}, "connection"),
    ({"errorType": "query", "message": "No GitHub OAuth token or key provided"}, "auth"),
    ({"errorType": "query", "message": "You've reached your monthly quota"}, "quota"),
    ({"errorType": "query", "message": "Request exceeds the prompt budget"}, "prompt_too_long"),
    ({"errorType": "query", "message": "what is this"}, "unknown"),
    ({}, "unknown"),
]


@pytest.mark.parametrize(("data", "expected"), ERRORS)
def test_errors(data: dict[str, Any], expected: str) -> None:
    """An error of the program has a reason and a matching outcome."""
    outcome, error = ended(raw("session.error", **data), raw("session.idle"))
    if expected == "quota":
        assert isinstance(error, QuotaExceeded)
        assert "quota" == outcome
        return
    assert isinstance(error, AgentFailed)
    assert (expected, "failed") == (error.reason, outcome)
    assert ("copilot login" in (error.hint or "")) == (expected == "auth")


def test_reset_times() -> None:
    """A time in the program's message is the reset time."""
    said = "You have exceeded your Copilot usage limits. Try again in 2 hours."
    _, error = ended(raw("session.error", errorType="quota", message=said))
    assert isinstance(error, QuotaExceeded)
    assert datetime.fromtimestamp(NOW + 7200, UTC) == error.resets_at


@pytest.mark.parametrize(
    ("code", "stderr", "message"),
    [
        (0, "", "copilot ended without a result"),
        (1, "a\n\nb\n", "copilot exited with code 1: a\nb"),
        (-9, "", "copilot was ended by SIGKILL"),
        (143, "", "copilot was ended by SIGTERM"),
        (-99, "", "copilot was ended by signal 99"),
    ],
)
def test_a_program_that_ended(code: int, stderr: str, message: str) -> None:
    """The error contains the exit code or the signal, and the end of stderr."""
    error = crash("copilot", code, stderr)
    assert ("crash", message) == (error.reason, error.message)


@pytest.mark.parametrize(
    ("said", "reason", "hint"),
    [
        ("JSON-RPC Error -32603: Session not found: x", "bad_request", "start a new one"),
        ("SDK protocol version mismatch", "crash", "update both"),
        ("Unknown PermissionRequest kind: 'x'", "crash", "update both"),
        ("[Errno 111] ECONNREFUSED", "connection", "network"),
        ("", "crash", ""),
    ],
)
def test_a_session_that_could_not_start(said: str, reason: str, hint: str) -> None:
    """An exception of the SDK becomes an error with a reason and possibly a hint."""
    now = datetime.fromtimestamp(NOW, UTC)
    error = connection_failure("copilot", ValueError(said), now=now, zone=UTC)
    assert isinstance(error, AgentFailed)
    assert reason == error.reason
    assert hint in (error.hint or "")
    assert "JSON-RPC" not in error.message
