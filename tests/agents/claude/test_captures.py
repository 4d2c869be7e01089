"""Recorded runs of Claude Code: their events and outcomes."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cuggino.agents.claude.wire import ClaudeSession
from cuggino.events import AgentMessage, LlmAgentEvent, MessageDelta
from tests.agents.claude.claude_lines import kind
from tests.vectors import DATA, each

LETTER = {
    "AgentMessage": "A",
    "MessageDelta": "",
    "PingEvent": "",
    "QuotaUsed": "Q",
    "RateLimited": "L",
    "SystemMessage": "S",
    "Thinking": "T",
    "ToolCall": "C",
    "ToolResult": "R",
    "UsageUpdate": "",
    "UserMessage": "U",
}


class Capture(NamedTuple):
    """A recorded stdout, the exit code of its process, and the expected results."""

    name: str
    exit_code: int
    outcome: str
    error: str | None
    """The failure reason, or the name of another error."""
    cost: float | None
    letters: str
    """The events without deltas, pings and token counts, one letter each as in `LETTER`."""


CAPTURES = [
    Capture("simple", 0, "completed", None, 0.00044, "SA"),
    Capture("thinking", 0, "completed", None, 0.00044, "STA"),
    Capture("parallel_tools", 0, "completed", None, 0.00088, "SACCCRRRA"),
    Capture("list_content", 0, "completed", None, 0.00088, "SCCRCCRRRA"),
    Capture("bg_bash", 0, "completed", None, 0.00132, "SCRASA"),
    Capture("subagent", 0, "completed", None, 0.0022, "SCRAACRASA"),
    Capture("subagent_slow_nobg", 0, "completed", None, 0.00132, "SCURA"),
    Capture("resume", 0, "completed", None, 0.00044, "SA"),
    Capture("429_once_then_ok", 0, "completed", None, 0.00044, "SSA"),
    Capture("cut_after_tooluse_block", 0, "completed", None, 0.00092, "SCSRA"),
    Capture("cut_in_tooluse_then_ok", 0, "completed", None, 0.00136, "SAUA"),
    Capture("retry_nothing_received", 0, "completed", None, 0.006, "SSA"),
    Capture("retry_start_received", 0, "completed", None, 0.01002, "SSA"),
    Capture("retry_text_received", 0, "completed", None, 0.01016, "SSA"),
    Capture("usage_limit_text", 0, "quota", "QuotaExceeded", 0.00044, "SA"),
    Capture("usage_limit_near", 0, "completed", None, 0.003, "SAQL"),
    Capture("usage_limit_subscription", 1, "quota", "QuotaExceeded", 0.0, "SQLS"),
    Capture("usage_limit_429_unified", 1, "failed", "rate_limit", 0.0, "SS"),
    Capture("401_full", 1, "failed", "auth", 0.0, "S" * 12),
    Capture("no_key", 1, "failed", "auth", 0.0, "SS"),
    Capture("400_billing", 1, "failed", "billing", 0.0, "SS"),
    Capture("400_prompt_too_long", 1, "failed", "prompt_too_long", 0.0, "SS"),
    Capture("prompt_of_5_MB", 1, "failed", "prompt_too_long", 0.0, "SS"),
    Capture("404_model", 1, "failed", "bad_request", 0.0, "SS"),
    Capture("resume_unknown", 1, "failed", "bad_request", 0.0, ""),
    Capture("500", 1, "failed", "server", 0.0, "SS"),
    Capture("sse_overloaded_at_start_forever", 1, "failed", "overloaded", 0.0, "S" * 9),
    Capture("conn_refused", 1, "failed", "connection", 0.0, "S" * 12),
    Capture("cut_mid_message_forever", 1, "failed", "connection", 0.0014, "S" * 11),
    Capture("max_turns", 1, "max_turns", "max_turns", 0.00088, "SCRCR"),
    Capture("max_budget", 1, "budget", "BudgetExceeded", 0.64, "SCRC"),
    Capture("sigint_tool", 0, "interrupted", "aborted", 0.00044, "SACRU"),
    Capture("sigint_api_wait", 0, "interrupted", "aborted", None, "SU"),
    Capture("sigterm_tool", 143, "failed", "crash", None, "SACR"),
]


STREAMED = {"subagent": 2}
"""The number of streamed texts, where sub-agent messages are not streamed."""

TAKEN_BACK = {"cut_after_tooluse_block", "cut_mid_message_forever", "retry_text_received"}


def replay(name: str) -> tuple[ClaudeSession, list[LlmAgentEvent]]:
    session = ClaudeSession()
    lines = (DATA / "claude" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    return session, [event for line in lines for event in session.feed(line, now=0.0)]


@each("capture", CAPTURES)
def test_captures(capture: Capture) -> None:
    """A recorded run yields its events in order, its cost and its outcome."""
    session, events = replay(capture.name)
    ended, error = session.end(exit_code=capture.exit_code, stderr_tail="", duration=2.5, now=0.0)

    assert capture.letters == "".join(LETTER[event.tag] for event in events)
    assert capture.outcome == ended.outcome
    assert capture.error == kind(error)
    assert capture.cost == pytest.approx(ended.cost_usd)
    assert ended.session_id is not None
    assert ended.duration == 2.5


@each("capture", CAPTURES)
def test_deltas_make_up_their_message(capture: Capture) -> None:
    """The deltas before a message join to its text; the remaining ones were retracted."""
    written: dict[str, str] = {}
    streamed = 0
    for event in replay(capture.name)[1]:
        if isinstance(event, MessageDelta):
            written[event.message_id] = written.get(event.message_id, "") + event.text
        elif isinstance(event, AgentMessage) and event.message_id in written:
            assert event.text == written.pop(event.message_id)
            streamed += 1
    assert STREAMED.get(capture.name, capture.letters.count("A")) == streamed
    assert (capture.name in TAKEN_BACK) == bool(written)


def test_every_capture_is_replayed() -> None:
    """Every recorded stream has a test."""
    assert {path.stem for path in (DATA / "claude").iterdir()} == {c.name for c in CAPTURES}


def test_background_tasks_add_to_the_run() -> None:
    """Turns, tokens and cost are summed over all results of the run; the first is the answer."""
    session, _ = replay("bg_bash")
    ended, _ = session.end(exit_code=0, stderr_tail="", duration=1.0, now=0.0)
    assert ended.num_turns == 3
    assert ended.usage is not None
    assert (ended.usage.input_tokens, ended.usage.output_tokens) == (30, 60)


def test_session_details_before_its_end() -> None:
    """Version and session are known after the first line."""
    session = ClaudeSession()
    assert (session.session_id, session.version) == (None, None)
    first, *_ = (DATA / "claude" / "simple.jsonl").read_bytes().splitlines(keepends=True)
    session.feed(first, now=0.0)
    assert session.session_id == "ae368e32-6d27-4b5a-aedc-39f26e9d0d10"
    assert session.version == "2.1.329"
