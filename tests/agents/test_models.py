"""The model of a session, as each program reports it: it decides the price of the tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.acp.requests import model_of
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.codex.wire import CodexSession, UsageRecord
from cuggino.agents.copilot.wire import CopilotSession
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.agents.opencode.wire import OpenCodeSession
from tests.agents.codex.test_wire import THREAD, counted, record

NOW = 1_795_230_000.0


def lines(*values: dict[str, Any]) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


def models(session: Any, *values: dict[str, Any]) -> list[str | None]:
    """Return the models of the session's usage updates, and of its end."""
    told = [event for line in lines(*values) for event in session.feed(line, now=NOW)]
    ended, _ = session.end(exit_code=0, stderr_tail="", duration=1.0, now=NOW)
    assert ended.cost_usd is None
    return [event.model for event in [*told, ended] if isinstance(event, COUNTED)]


COUNTED = (ev.UsageUpdate, ev.SessionEnded)


def test_claude() -> None:
    """Claude Code names the model in its init line."""
    begun = {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-opus-4-5"}
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 5}}}
    delta = {"type": "message_delta", "usage": {"output_tokens": 7}}
    said = [{"type": "stream_event", "event": event} for event in (start, delta)]
    assert ["claude-opus-4-5"] * 2 == models(ClaudeSession(), begun, *said)
    assert [None, None] == models(ClaudeSession(), *said)


def test_codex(tmp_path: Path) -> None:
    """Codex names the model of each turn in its own record."""
    turn = {"type": "turn_context", "payload": {"model": "gpt-5.5", "cwd": "/p"}}
    file = record(tmp_path)
    file.write_bytes(b"\n".join(lines({"turn_context": 1}, turn)) + b"\n" + counted(10))
    meter = UsageRecord({"CODEX_HOME": str(tmp_path)})
    session = CodexSession(account=meter)
    begun = {"type": "thread.started", "thread_id": THREAD}
    over = {"type": "turn.completed", "usage": {"input_tokens": 20, "output_tokens": 7}}
    said = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "hi"}}
    assert ["gpt-5.5"] * 3 == models(session, begun, said, over)


def test_gemini() -> None:
    """Gemini names a model at the start, and at the end those that have worked."""
    begun = {"type": "init", "session_id": "s", "model": "auto"}
    stats: dict[str, Any] = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    over = {"type": "result", "status": "success", "stats": stats}
    assert ["auto"] * 2 == models(GeminiSession(), begun, over)
    names = {"gemini-2.5-flash": {"total_tokens": 3}, "gemini-2.5-pro": {"total_tokens": 7}}
    worked = {**over, "stats": {**stats, "models": names}}
    assert ["gemini-2.5-pro"] * 2 == models(GeminiSession(), begun, worked)
    odd = {**over, "stats": {**stats, "models": {"a": 3, "b": {"total_tokens": "x"}}}}
    assert ["auto"] * 2 == models(GeminiSession(), begun, odd)


def test_opencode() -> None:
    """OpenCode names provider and model of each message."""
    info = {"id": "m", "role": "assistant", "sessionID": "s"}
    named = {**info, "providerID": "anthropic", "modelID": "claude-opus-4-5"}
    part = {"type": "step-finish", "id": "p", "reason": "stop", "tokens": {"input": 5}}
    step = {"type": "step_finish", "sessionID": "s", "part": {**part, "sessionID": "s"}}

    def updated(info: dict[str, str]) -> dict[str, Any]:
        return {"type": "cuggino", "event": "message.updated", "properties": {"info": info}}

    assert ["anthropic/claude-opus-4-5"] * 2 == models(OpenCodeSession(), updated(named), step)
    assert [None, None] == models(OpenCodeSession(), updated(info), step)


def test_copilot() -> None:
    """Copilot names the model of each request."""
    session = CopilotSession()
    usage = {"inputTokens": 9, "outputTokens": 1, "model": "gpt-5.5"}
    (update,) = session.feed({"type": "assistant.usage", "data": usage}, now=NOW)
    assert isinstance(update, ev.UsageUpdate)
    ended, _ = session.end(duration=1.0, now=NOW)
    assert ("gpt-5.5", "gpt-5.5") == (update.model, ended.model)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"configOptions": [{"category": "model", "currentValue": "qwen3"}]}, "qwen3"),
        ({"models": {"currentModelId": "gemini-2.5-pro"}}, "gemini-2.5-pro"),
        ({"models": 3, "configOptions": [{"category": "model", "currentValue": 4}]}, None),
        ({}, None),
    ],
)
def test_acp(result: dict[str, Any], expected: str | None) -> None:
    """A program of the Agent Client Protocol names its current model among its options."""
    assert expected == model_of(result)
