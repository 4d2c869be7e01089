"""Usage limits recognized by message: which messages count, and the parsed reset time."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.errors import LlmSessionError, QuotaExceeded
from cuggino.events import LlmAgentEvent, RateLimited
from tests.agents.claude.claude_lines import LIMIT_TOLD, REJECTED, api_error, kind, result
from tests.agents.claude.fake_claude import fake_claude

NOW = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)
REGAIN = "You have reached your specified API usage limits. You will regain access on 2026-12-01"
EXCEED = "This request would exceed your account's rate limit. Please try again later."
WORDS = "You've hit your limit · resets 6pm (UTC)"
ROME = ZoneInfo("Europe/Rome")


def end(*raws: dict[str, Any], stderr: str = "", exit_code: int = 1) -> LlmSessionError | None:
    session = ClaudeSession(zone=lambda: ROME)
    for raw in raws:
        session.feed(json.dumps(raw).encode(), now=0.0)
    now = NOW.timestamp()
    return session.end(exit_code=exit_code, stderr_tail=stderr, duration=1.0, now=now)[1]


def by_program(text: str) -> dict[str, Any]:
    message = {"content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "is_api_error_message": True, "message": message}


def assistant_line(text: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}}


def by_tool(text: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": True}
    return {"type": "user", "message": {"content": [block]}}


@pytest.mark.parametrize(
    ("raws", "expected"),
    [
        ([api_error(429, WORDS)], "QuotaExceeded"),
        ([api_error(None, WORDS)], "QuotaExceeded"),
        ([api_error(400, "You have reached your specified API usage limits.")], "QuotaExceeded"),
        ([result(subtype="error_during_execution", errors=[WORDS])], "QuotaExceeded"),
        ([by_program(WORDS)], "QuotaExceeded"),
        ([result(result=WORDS)], "QuotaExceeded"),
        ([assistant_line(WORDS), result(result=WORDS)], "QuotaExceeded"),
        ([result(result=f"I was told: {'x' * 300} {WORDS}")], None),
        ([result(result=f"The page says that {WORDS}")], None),
        ([assistant_line(WORDS), api_error(429, "Too many requests")], "rate_limit"),
        ([api_error(429, f"API Error: Request rejected (429) · {EXCEED}")], "rate_limit"),
        ([REJECTED, api_error(429, EXCEED)], "QuotaExceeded"),
        ([by_tool(WORDS), api_error(500, "Broken")], "server"),
        ([assistant_line(WORDS)], "QuotaExceeded"),
        ([assistant_line(f"The page says that {WORDS}")], "crash"),
        ([by_tool(WORDS)], "crash"),
        ([api_error(529, "Overloaded")], "overloaded"),
        ([api_error(500, WORDS)], "QuotaExceeded"),
        ([result(terminal_reason="max_turns", errors=[WORDS])], "max_turns"),
    ],
)
def test_which_messages_count(raws: list[dict[str, Any]], expected: str | None) -> None:
    """A limit is reported by errors of the program, or is all of the answer; prose quotes it."""
    assert expected == kind(end(*raws))


def test_a_limit_quoted_in_an_answer() -> None:
    """A limit that is a part of an answer is quoted; one that is all of it ended the session."""
    assert None is end(result(result=f"The page says that {WORDS}"), exit_code=0)
    assert "QuotaExceeded" == kind(end(result(result=WORDS), exit_code=0))


def test_a_limit_on_standard_error() -> None:
    """A program that ends without a result may report the limit on standard error."""
    error = end(stderr=f"debug\n{WORDS}\n")
    assert isinstance(error, QuotaExceeded)
    assert datetime(2026, 3, 29, 18, tzinfo=UTC) == error.resets_at


@pytest.mark.parametrize(
    ("raws", "expected"),
    [
        ([REJECTED, api_error(429, WORDS)], datetime(1970, 1, 1, 0, 1, tzinfo=UTC)),
        ([LIMIT_TOLD, api_error(429, WORDS)], datetime(2026, 3, 29, 18, tzinfo=UTC)),
        # The clocks go forward in that night, so noon is an hour earlier than today's.
        (
            [api_error(429, "Usage limit reached, resets 12pm")],
            datetime(2026, 3, 29, 10, tzinfo=UTC),
        ),
        ([api_error(400, f"{REGAIN} at 00:00 UTC.")], datetime(2026, 12, 1, tzinfo=UTC)),
        ([api_error(429, "Usage limit reached")], None),
        ([LIMIT_TOLD, api_error(429, "Sorry")], None),
    ],
)
def test_reset_times(raws: list[dict[str, Any]], expected: datetime | None) -> None:
    """The event's time beats one parsed from the message, which is in its zone or the local one."""
    error = end(*raws)
    assert isinstance(error, QuotaExceeded)
    assert expected == error.resets_at


def test_the_signal_has_a_type(tmp_path: Path) -> None:
    """A limit known only from a message also emits `RateLimited`, in the program's time zone."""
    fields = {"is_error": True, "api_error_status": 429, "terminal_reason": "api_error"}
    year = datetime.now(UTC).year + 1
    words = f"Usage limit reached, resets {year}-07-01 12:00"
    body = f"line(**{{**RESULT, **{fields!r}, 'result': {words!r}}}); sys.exit(1)"
    seen: list[LlmAgentEvent] = []
    agent = ClaudeAgent(path=fake_claude(tmp_path, body))
    options = SpawnOptions(prompt="Go.", cwd=tmp_path, env={"TZ": "Asia/Kolkata"})
    with pytest.raises(QuotaExceeded) as caught:
        cuggino.run(agent.spawn(options), seen.append)
    resets_at = datetime(year, 7, 1, 6, 30, tzinfo=UTC)
    assert resets_at == caught.value.resets_at
    assert RateLimited(status="rejected", resets_at=resets_at) == seen[0]
    assert ["RateLimited", "SessionEnded"] == [event.tag for event in seen]


def test_the_signal_comes_once(tmp_path: Path) -> None:
    """A limit already reported by an event is not repeated at the end."""
    body = f"line(**{REJECTED!r}); sys.exit(1)"
    seen: list[LlmAgentEvent] = []
    with pytest.raises(QuotaExceeded):
        agent = ClaudeAgent(path=fake_claude(tmp_path, body))
        cuggino.run(agent.spawn(SpawnOptions(prompt="Go.", cwd=tmp_path)), seen.append)
    assert ["RateLimited", "SessionEnded"] == [event.tag for event in seen]
