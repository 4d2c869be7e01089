"""Parsing the events of GitHub Copilot's SDK, and the outcome and errors of a session."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.base.failure import crash
from cuggino.agents.copilot.failure import connection_failure
from cuggino.agents.copilot.wire import CopilotSession
from cuggino.errors import AgentFailed

NOW = 1_795_289_780.0


def raw(kind: str, agent: str | None = None, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, **({"agentId": agent} if agent else {})}


def fed(*events: dict[str, Any], session: CopilotSession | None = None) -> list[ev.LlmAgentEvent]:
    session = session or CopilotSession()
    return [event for one in events for event in session.feed(one, now=NOW)]


def ended(*events: dict[str, Any]) -> tuple[str, Exception | None]:
    session = CopilotSession()
    fed(*events, session=session)
    told, error = session.end(duration=1.0, now=NOW)
    return told.outcome, error


MESSAGE = raw("assistant.message", content="Hello.", messageId="m1", toolRequests=[])
START = raw("tool.execution_start", toolCallId="c", toolName="bash", arguments={"command": "ls"})


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (MESSAGE, ev.AgentMessage(text="Hello.", message_id="m1")),
        (raw("assistant.reasoning", content="Hm."), ev.Thinking(text="Hm.")),
        (START, ev.ToolCall(name="Bash", input={"command": "ls"}, id="c")),
        (
            raw("tool.execution_complete", toolCallId="c", success=True, result={"content": "out"}),
            ev.ToolResult(name="c", output="out"),
        ),
        (
            raw(
                "tool.execution_complete",
                toolCallId="c",
                success=True,
                result={"content": "out"},
                shellExecution={"exitCode": 3},
            ),
            ev.ToolResult(name="c", output="out", is_error=True),
        ),
        (
            raw("tool.execution_complete", toolCallId="c", success=False, error={"message": "no"}),
            ev.ToolResult(name="c", output="no", is_error=True),
        ),
        (raw("session.start", sessionId="s"), ev.SystemMessage(text="Session initialized")),
        (
            raw("session.mcp_servers_loaded", servers=[{"name": "a", "status": "failed"}]),
            ev.McpServerFailed(server="a"),
        ),
        (
            raw("assistant.turn_retry", reason="rate_limit"),
            ev.SystemMessage(text="Retrying: rate limit"),
        ),
        (raw("session.warning", message="careful"), ev.SystemMessage(text="careful")),
        (raw("session.error", message="bad"), ev.SystemMessage(text="bad")),
        (raw("assistant.message_delta", deltaContent="Hel"), ev.PingEvent(timestamp=NOW)),
        (raw("assistant.message", content="", messageId="m"), ev.PingEvent(timestamp=NOW)),
        (raw("session.mcp_servers_loaded", servers=[]), ev.PingEvent(timestamp=NOW)),
        (raw("something.new", of="a later version"), ev.PingEvent(timestamp=NOW)),
        ({}, ev.PingEvent(timestamp=NOW)),
    ],
)
def test_one_event(event: dict[str, Any], expected: ev.LlmAgentEvent) -> None:
    """Each SDK event is translated, and others are keepalives."""
    assert [expected] == fed(event)


def test_text_deltas() -> None:
    """Deltas have the id of their message and sub-agent, and join to its text."""
    events = fed(
        raw("subagent.started", "a1", toolCallId="task"),
        raw("assistant.message_delta", messageId="m", deltaContent="Hel"),
        raw("assistant.message_delta", "a1", messageId="s", deltaContent="sub"),
        raw("assistant.message_delta", messageId="m", deltaContent="lo \ud83d"),
        raw("assistant.message_delta", messageId="m", deltaContent="\ude00"),
        raw("assistant.message_delta", messageId="m", deltaContent=""),
        raw("assistant.message_delta", messageId="m", deltaContent=7),
        raw("assistant.message_delta", messageId="m", deltaContent="!\ud83d"),
        raw("assistant.message", messageId="m", content="Hello \U0001f600!\ufffd"),
    )
    told = [event for event in events[1:] if not isinstance(event, ev.PingEvent)]
    assert [
        ev.MessageDelta(text="Hel", message_id="m"),
        ev.MessageDelta(text="sub", message_id="s", parent_tool_use_id="task"),
        ev.MessageDelta(text="lo ", message_id="m"),
        ev.MessageDelta(text="\U0001f600", message_id="m"),
        ev.MessageDelta(text="!", message_id="m"),
        ev.MessageDelta(text="\ufffd", message_id="m"),
        ev.AgentMessage(text="Hello \U0001f600!\ufffd", message_id="m"),
    ] == told
    assert [ev.PingEvent(timestamp=NOW)] * 7 == [e for e in events if isinstance(e, ev.PingEvent)]


def test_tokens() -> None:
    """Tokens are summed over requests; cached ones are not also counted as input."""
    count = raw(
        "assistant.usage",
        inputTokens=1000,
        outputTokens=50,
        cacheReadTokens=200,
        cacheWriteTokens=100,
        cost=1.0,
    )
    one = ev.Usage(
        input_tokens=700, output_tokens=50, cache_read_tokens=200, cache_creation_tokens=100
    )
    two = ev.Usage(
        input_tokens=1400, output_tokens=100, cache_read_tokens=400, cache_creation_tokens=200
    )
    session = CopilotSession()
    assert [ev.UsageUpdate(usage=one), ev.UsageUpdate(usage=two)] == fed(
        count, count, session=session
    )
    told, _ = session.end(duration=1.0, now=NOW)
    assert (two, None) == (told.usage, told.cost_usd)


def test_the_prompt_is_not_repeated() -> None:
    """The first user message is the prompt; later ones are emitted."""
    events = fed(raw("user.message", content="Go."), raw("user.message", content="Done?"))
    assert [ev.UserMessage(text="Done?")] == events


def test_the_messages_of_a_person() -> None:
    """Each is announced once, when the model gets it; other user texts are not."""
    session = CopilotSession()
    for text in ("use tabs", "half \ud83d", "use tabs"):
        session.say(text)
    texts = ("use tabs", "use tabs", "other", "half ?", "use tabs", "use tabs")  # first the prompt
    assert [
        ev.Steered(text="use tabs", to="session"),
        ev.UserMessage(text="other"),
        ev.Steered(text="half \ud83d", to="session"),
        ev.Steered(text="use tabs", to="session"),
        ev.UserMessage(text="use tabs"),
    ] == fed(*(raw("user.message", content=text) for text in texts), session=session)


def test_a_sub_agent() -> None:
    """Sub-agent messages belong to the call that started it; its start and end are emitted."""
    start = raw(
        "subagent.started",
        "a1",
        toolCallId="task",
        agentDisplayName="helper",
        agentDescription="look around",
    )
    said = raw("assistant.message", "a1", content="Hi.", messageId="m")
    done = raw("subagent.completed", "a1", toolCallId="task", agentDisplayName="helper")
    failed = raw("subagent.failed", "a1", toolCallId="task", agentName="x", error="lost")
    assert [
        ev.SystemMessage(text="Sub-agent helper started: look around"),
        ev.AgentMessage(text="Hi.", message_id="m", parent_tool_use_id="task"),
        ev.SystemMessage(text="Sub-agent helper completed"),
        ev.SystemMessage(text="Sub-agent x failed: lost"),
    ] == fed(start, said, done, failed)


def test_the_session_is_over_when_it_is_idle() -> None:
    """An idle event before the prompt, or of a sub-agent, does not end the session."""
    session = CopilotSession()
    fed(raw("session.idle"), session=session)
    assert not session.is_over
    fed(raw("user.message", content="Go."), raw("session.idle", "a1"), session=session)
    assert not session.is_over
    fed(raw("session.idle"), session=session)
    assert session.is_over


def test_an_answer_that_is_a_limit() -> None:
    """An answer that consists of a usage limit has met it."""
    limit = raw("assistant.message", content="You've hit your usage limit.", messageId="m")
    assert "quota" == ended(limit, raw("session.idle"))[0]


def test_a_recovered_error() -> None:
    """Model output after an error means success, unless it comes from a sub-agent."""
    error = raw("session.error", errorType="query", message="bad")
    assert ("completed", None) == ended(error, MESSAGE, raw("session.idle"))
    of_helper = raw("assistant.message", "a1", content="Hi.", messageId="m")
    assert "failed" == ended(error, of_helper)[0]
    assert ("completed", None) == ended(raw("session.error", "a1", message="bad"), MESSAGE)


RESETS_AT = datetime(2026, 12, 1, tzinfo=UTC)
PREMIUM = {"isUnlimitedEntitlement": False, "overage": 0, "resetDate": "2026-12-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        (None, []),
        ({"premium_interactions": 7}, []),
        ({"premium_interactions": {"remainingPercentage": "38"}}, []),
        ({"chat": {"remainingPercentage": 100.0, "isUnlimitedEntitlement": True}}, []),
        (
            {"premium_interactions": {**PREMIUM, "remainingPercentage": 38.0}},
            [ev.QuotaUsed(window="premium_interactions", used=0.62, resets_at=RESETS_AT)],
        ),
        (
            {"premium_interactions": {**PREMIUM, "remainingPercentage": 0.0}},
            [ev.QuotaUsed(window="premium_interactions", used=1.0, resets_at=RESETS_AT)],
        ),
        (
            {"premium_interactions": {**PREMIUM, "remainingPercentage": 0.0, "overage": 3.0}},
            [
                ev.QuotaUsed(window="premium_interactions", used=1.0, resets_at=RESETS_AT),
                ev.RateLimited(
                    status="rejected",
                    limit="premium_interactions",
                    resets_at=RESETS_AT,
                    overage=True,
                ),
            ],
        ),
    ],
)
def test_quotas(snapshots: Any, expected: list[ev.LlmAgentEvent]) -> None:
    """Each limited quota has a used share; paid requests beyond it are reported once."""
    session = CopilotSession()
    used = raw("assistant.usage", quotaSnapshots=snapshots, outputTokens=1)
    assert expected == fed(used, session=session)[1:]
    again = [event for event in expected if isinstance(event, ev.QuotaUsed)]
    assert again == fed(used, session=session)[1:]


@pytest.mark.parametrize("event", [raw("abort", reason="user"), raw("session.idle", aborted=True)])
def test_an_interruption(event: dict[str, Any]) -> None:
    """An aborted session was interrupted, which is an error."""
    outcome, error = ended(raw("user.message", content="Go."), event)
    assert isinstance(error, AgentFailed)
    assert ("interrupted", "aborted") == (outcome, error.reason)


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
