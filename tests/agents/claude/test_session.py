"""The outcome of a Claude Code run: success, errors, cost, tokens and usage limits."""

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
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded
from cuggino.events import AgentMessage, LlmAgentEvent, MessageDelta, RateLimited
from tests.agents.claude.claude_lines import (
    LIFTED,
    LIMIT_TOLD,
    REJECTED,
    api_error,
    end,
    kind,
    result,
)
from tests.agents.claude.fake_claude import fake_claude


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (result(terminal_reason="aborted_streaming"), "aborted"),
        (result(terminal_reason="blocking_limit"), "prompt_too_long"),
        (result(subtype="error_max_turns", errors=["N"]), "max_turns"),
        (result(subtype="error_during_execution", is_error=True), "unknown"),
        (result(subtype="error_from_the_future"), "unknown"),
    ],
)
def test_failures_by_result(raw: dict[str, Any], reason: str) -> None:
    """An unsuccessful result of any subtype is a failure with a reason."""
    assert reason == kind(end(raw)[1])


def test_a_refused_login_is_not_tried_for_minutes() -> None:
    """The second refusal in a row ends the session; an answer or another failure resets them."""
    retry: dict[str, Any] = {"type": "system", "subtype": "api_retry", "error_status": 401}
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "hi"}]}}
    overloaded = {**retry, "error_status": 529}
    session = ClaudeSession()
    for line in (retry, said, retry, overloaded, retry):
        session.feed(json.dumps(line).encode(), now=0.0)
        assert session.breach is None
    list(session.feed_all([json.dumps(retry).encode()] * 3, now=0.0))
    breach = session.breach
    assert isinstance(breach, AgentFailed)
    assert ("auth", "the API refused the login of claude (401)") == (breach.reason, str(breach))
    assert "/login" in (breach.hint or "")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"errors": ["One", "Two"]}, "One\nTwo"),
        ({"errors": []}, "Unknown error"),
        ({"error": "said so"}, "said so"),
        ({}, "Unknown error"),
    ],
)
def test_error_messages(fields: dict[str, Any], message: str) -> None:
    """The error message joins the texts of the failed result, or is `Unknown error`."""
    _, error = end({"type": "result", "subtype": "error", **fields})
    assert isinstance(error, AgentFailed)
    assert message == error.message


@pytest.mark.parametrize(
    ("exit_code", "stderr", "message"),
    [
        (0, "", "claude ended without a result"),
        (1, "", "claude exited with code 1"),
        (1, "a\n\nb  \n", "claude exited with code 1: a\nb"),
        (3, "\n".join("123456789"), "claude exited with code 3: 5\n6\n7\n8\n9"),
        (-9, "", "claude was ended by SIGKILL"),
        (143, "", "claude was ended by SIGTERM"),
        (255, "", "claude exited with code 255"),
        (-200, "", "claude was ended by signal 200"),
    ],
)
def test_crashes(exit_code: int, stderr: str, message: str) -> None:
    """A run without a result is a crash, reported with the exit code and the end of stderr."""
    ended, error = end(exit_code=exit_code, stderr=stderr)
    assert isinstance(error, AgentFailed)
    assert (error.reason, error.message) == ("crash", message)
    assert (ended.outcome, ended.cost_usd, ended.usage) == ("failed", None, None)


@pytest.mark.parametrize(
    ("stderr", "hint"),
    [
        (
            "--dangerously-skip-permissions cannot be used with root/sudo privileges for "
            "security reasons\n",
            "run as a normal user, or set IS_SANDBOX=1 inside a container",
        ),
        (
            "error: unknown option '--nonsense'\n",
            "this claude lacks a required option: update it with `claude update`",
        ),
    ],
)
def test_refusals(stderr: str, hint: str) -> None:
    """A refusal to start is a permanent failure with advice, not a crash."""
    _, error = end(stderr=stderr)
    assert isinstance(error, AgentFailed)
    assert (error.reason, error.message, error.hint) == ("bad_request", stderr.strip(), hint)


def test_an_exit_code_after_the_answer_is_no_failure() -> None:
    """After the answer, neither an exit code nor a later result makes the run fail."""
    ended, error = end(result(), api_error(500), exit_code=1, stderr="broken pipe")
    assert (ended.outcome, error) == ("completed", None)


def _said(**fields: Any) -> dict[str, Any]:
    block = {"type": "text", "text": "<APPROVED>ok</APPROVED>"}
    return {"type": "assistant", "message": {"id": "m", "content": [block], **fields}}


def _stopped(reason: str, **fields: Any) -> dict[str, Any]:
    event = {"type": "message_delta", "delta": {"stop_reason": reason}}
    return {"type": "stream_event", "event": event, **fields}


@pytest.mark.parametrize(
    ("raws", "is_cut"),
    [
        ([_said(), result()], False),
        ([_said(stop_reason="max_tokens"), result()], True),
        ([_said(), _stopped("max_tokens"), result()], True),
        ([_said(), _stopped("model_context_window_exceeded"), result()], True),
        ([_said(), _stopped("max_tokens"), _said(), _stopped("end_turn"), result()], False),
        ([_said(), _stopped("max_tokens", parent_tool_use_id="t"), result()], False),
        ([_said(), _stopped("end_turn"), result(stop_reason="max_tokens")], True),
    ],
)
def test_a_message_that_was_cut(raws: list[dict[str, Any]], is_cut: bool) -> None:
    """The last message of the main conversation decides, or what the result says of it."""
    ended, _ = end(*raws, exit_code=0)
    assert is_cut == ended.truncated


@pytest.mark.parametrize(("other", "count"), [("s", 1), ("OTHER", 0), (None, 1)])
def test_the_text_of_another_session(other: str | None, count: int) -> None:
    """Text with another session id is not the agent's."""
    session = ClaudeSession()
    lines = (
        {"type": "system", "subtype": "init", "session_id": "s"},
        _said() | {"session_id": other},
    )
    events = [e for raw in lines for e in session.feed(json.dumps(raw).encode(), now=0.0)]
    assert count == sum(isinstance(event, AgentMessage) for event in events)


def test_a_failed_answer_is_not_saved_by_a_later_one() -> None:
    """A successful background task does not hide the failure of the main answer."""
    _, error = end(api_error(500), result(), exit_code=0)
    assert kind(error) == "server"


@pytest.mark.parametrize("failed", [api_error(500), {"type": "result", "subtype": "error_x"}])
def test_what_is_said_after_a_failed_answer(failed: dict[str, Any]) -> None:
    """No marker of a background task counts after the failure of the main answer."""
    block = {"type": "text", "text": "<APPROVED>ok</APPROVED>"}
    said = {"type": "assistant", "message": {"id": "m", "content": [block]}}
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "<APPROVED>"}}
    lines = [said, {"type": "stream_event", "event": delta}]
    for one_by_one in (False, True):
        for first, expected in ((result(), True), (failed, False)):
            session = ClaudeSession()
            raws = [json.dumps(raw).encode() for raw in (first, *lines)]
            fed = (
                [session.feed(raw, now=0.0) for raw in raws]
                if one_by_one
                else [list(session.feed_all(raws, now=0.0))]
            )
            texts = [
                e for events in fed for e in events if isinstance(e, AgentMessage | MessageDelta)
            ]
            assert bool(texts) == expected


@pytest.mark.parametrize(
    ("raws", "expected"),
    [
        ([REJECTED, api_error(429)], "QuotaExceeded"),
        ([REJECTED], "QuotaExceeded"),
        ([REJECTED, result()], None),
        ([REJECTED, api_error(500)], "server"),
        ([REJECTED, result(subtype="error_max_turns")], "max_turns"),
        ([REJECTED, LIFTED, api_error(429)], "rate_limit"),
        ([LIMIT_TOLD, api_error(429)], "QuotaExceeded"),
    ],
)
def test_usage_limits(raws: list[dict[str, Any]], expected: str | None) -> None:
    """A usage limit counts if the program reported it and failed because of it."""
    ended, error = end(*raws, exit_code=1)
    assert expected == kind(error)
    assert (expected == "QuotaExceeded") == (ended.outcome == "quota")


def test_an_api_error_is_forgotten_after_model_output() -> None:
    """A recovered API error does not explain a later failure."""
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Going on."}]}}
    overcome = {"type": "assistant", "error": "billing_error", "is_api_error_message": True}
    assert kind(end(overcome, api_error(400))[1]) == "billing"
    assert kind(end(overcome, said, api_error(400))[1]) == "bad_request"


@pytest.mark.parametrize(
    ("results", "cost", "tokens"),
    [
        ([{"total_cost_usd": 0.5, "usage": {"input_tokens": 7}}], 0.5, 7),
        ([{"total_cost_usd": 0.5}, {"total_cost_usd": 0.75}], 0.75, None),
        (
            [
                {"total_cost_usd": 9.0, "model_usage_since_last_result": {"a": {"costUSD": 0.25}}},
                {
                    "total_cost_usd": 9.5,
                    "usage": {"input_tokens": 99},
                    "model_usage_since_last_result": {
                        "a": {"costUSD": 0.25, "inputTokens": 3},
                        "b": {"costUSD": 0.5, "inputTokens": 4},
                    },
                },
            ],
            1.0,
            7,
        ),
        ([{"total_cost_usd": 9.0, "model_usage_since_last_result": {}}], 0.0, None),
        ([{"total_cost_usd": "much"}], None, None),
        ([{}], None, None),
    ],
)
def test_costs(results: list[dict[str, Any]], cost: float | None, tokens: int | None) -> None:
    """The cost is the run's own if the program reports it, otherwise the last total."""
    ended, _ = end(*(result(**fields) for fields in results), exit_code=0)
    assert cost == ended.cost_usd
    assert tokens == (ended.usage.input_tokens if ended.usage else None)


def test_another_program_is_called_by_its_name() -> None:
    """Messages name the program that ran, because other programs share this format."""
    _, error = ClaudeSession(program="actor").end(
        exit_code=2, stderr_tail="", duration=1.0, now=0.0
    )
    assert str(error) == "actor exited with code 2"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"error": "authentication_failed"}, "auth"),
        ({"error": "billing_error"}, "billing"),
        ({"api_error": "connection_failed"}, "connection"),
        ({"api_error_status": 529}, "overloaded"),
        ({"api_error_status": 529, "parent_tool_use_id": "t1"}, "unknown"),
    ],
)
def test_failures_by_the_line_before(said: dict[str, Any], reason: str) -> None:
    """If the result has no reason, the preceding API error of the main agent provides it."""
    line = {"type": "assistant", "is_api_error_message": True, **said}
    assert reason == kind(end(line, api_error())[1])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"api_error_status": 500}, "server"),
        ({"terminal_reason": "max_turns"}, "max_turns"),
        ({"terminal_reason": "budget_exhausted"}, "BudgetExceeded"),
        ({"terminal_reason": "completed", "api_error_status": None}, None),
        ({"terminal_reason": "hook_stopped"}, None),
        ({"terminal_reason": "tool_deferred"}, None),
    ],
)
def test_success_requires_consistent_fields(fields: dict[str, Any], expected: str | None) -> None:
    """A result marked as success counts only if its other fields agree."""
    assert expected == kind(end(result(**fields))[1])


NOW = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)
REGAIN = "You have reached your specified API usage limits. You will regain access on 2026-12-01"
EXCEED = "This request would exceed your account's rate limit. Please try again later."
WORDS = "You've hit your limit · resets 6pm (UTC)"
ROME = ZoneInfo("Europe/Rome")


def end_in_rome(
    *raws: dict[str, Any], stderr: str = "", exit_code: int = 1
) -> LlmSessionError | None:
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
    assert expected == kind(end_in_rome(*raws))


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
    error = end_in_rome(*raws)
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
