"""What an agent's program prints for people before it fails is kept for its error."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cuggino.agents.base.reader import LineReader
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.codex.wire import CodexSession
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.agents.opencode.wire import OpenCodeSession
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded

NOW = datetime(2026, 10, 6, 12, tzinfo=UTC)
LIMIT = "You've hit your limit · resets 2pm (Europe/Lisbon)"

READERS = (ClaudeSession, CodexSession, GeminiSession, OpenCodeSession)
Reader = Callable[..., LineReader]


def error_of(kind: Reader, *lines: str, stderr: str = "") -> LlmSessionError | None:
    reader = kind(zone=lambda: ZoneInfo("Europe/Rome"))
    for line in lines:
        list(reader.feed(line.encode(), now=NOW.timestamp()))
    return reader.end(exit_code=1, stderr_tail=stderr, duration=1.0, now=NOW.timestamp())[1]


@pytest.mark.parametrize("kind", READERS)
def test_a_reason_on_either_pipe(kind: Reader) -> None:
    """The error has the plain lines of the output and of standard error, and no event."""
    said = "corp-wrapper: this host is not enrolled"
    for lines, stderr in (([said, '{"unknown": "event"}'], ""), ([], f"{said}\n")):
        error = error_of(kind, *lines, stderr=stderr)
        assert isinstance(error, AgentFailed)
        assert said in error.message
        assert "event" not in error.message
    both = error_of(kind, said, stderr="a warning\n")
    assert both is not None
    assert f"a warning\n{said}" in both.message


@pytest.mark.parametrize("kind", READERS)
def test_braces_around_a_reason(kind: Reader) -> None:
    """Only the beginning of an object is taken for JSON."""
    error = error_of(kind, "{this host is not enrolled}", "{", '{"a": 1}')
    assert isinstance(error, AgentFailed)
    assert error.message.endswith(": {this host is not enrolled}")


def test_a_usage_limit_on_the_output() -> None:
    """Claude Code prints its limit as plain text, with the time of the reset."""
    error = error_of(ClaudeSession, LIMIT)
    assert isinstance(error, QuotaExceeded)
    assert datetime(2026, 10, 6, 13, tzinfo=UTC) == error.resets_at
