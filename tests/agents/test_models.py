"""The model of a session, as each program reports it: it decides the price of the tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.acp.requests import model_of
from cuggino.agents.base.wire import Json
from cuggino.agents.claude.wire import ClaudeSession
from cuggino.agents.codex.wire import CodexSession, UsageRecord
from cuggino.agents.copilot.wire import CopilotSession
from cuggino.agents.gemini.wire import GeminiSession
from cuggino.agents.opencode.wire import OpenCodeSession
from tests.agents.codex.test_wire import THREAD, counted, record

NOW = 1_795_230_000.0
COUNTED = (ev.UsageUpdate, ev.SessionEnded)


def models(session: Any, *lines: Json) -> list[str | None]:
    """Return the models of the session's usage updates, and of its end."""
    told: list[ev.LlmAgentEvent] = []
    for line in lines:
        is_text = not isinstance(session, CopilotSession)
        told += session.feed(json.dumps(line).encode() if is_text else line, now=NOW)
    ended, _ = session.end(duration=1.0, now=NOW)
    assert ended.cost_usd is None
    return [event.model for event in [*told, ended] if isinstance(event, COUNTED)]


def streamed(kind: str, **fields: Any) -> Json:
    return {"type": "stream_event", "event": {"type": kind, **fields}}


def updated(**info: str) -> Json:
    whole = {"id": "m", "role": "assistant", "sessionID": "s", **info}
    return {"type": "cuggino", "event": "message.updated", "properties": {"info": whole}}


CLAUDE_SAYS = (
    streamed("message_start", message={"usage": {"input_tokens": 5}}),
    streamed("message_delta", usage={"output_tokens": 7}),
)
GEMINI_BEGINS = {"type": "init", "session_id": "s", "model": "auto"}


def gemini_ends(**models: Any) -> Json:
    stats = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10, "models": models}
    return {"type": "result", "status": "success", "stats": stats}


STEP = {"type": "step-finish", "id": "p", "reason": "stop", "tokens": {"input": 5}}
STEPPED = {"type": "step_finish", "sessionID": "s", "part": {**STEP, "sessionID": "s"}}


@pytest.mark.parametrize(
    ("kind", "lines", "expected"),
    [
        (
            ClaudeSession,
            ({"type": "system", "subtype": "init", "session_id": "s", "model": "m"}, *CLAUDE_SAYS),
            "m",
        ),
        (ClaudeSession, CLAUDE_SAYS, None),
        (GeminiSession, (GEMINI_BEGINS, gemini_ends()), "auto"),
        # Those that have worked are named at the end.
        (
            GeminiSession,
            (GEMINI_BEGINS, gemini_ends(a={"total_tokens": 3}, b={"total_tokens": 7})),
            "b",
        ),
        (GeminiSession, (GEMINI_BEGINS, gemini_ends(a=3, b={"total_tokens": "x"})), "auto"),
        (OpenCodeSession, (updated(providerID="a", modelID="m"), STEPPED), "a/m"),
        (OpenCodeSession, (updated(), STEPPED), None),
        (
            CopilotSession,
            ({"type": "assistant.usage", "data": {"inputTokens": 9, "model": "m"}},),
            "m",
        ),
    ],
)
def test_models(kind: Callable[[], Any], lines: Sequence[Json], expected: str | None) -> None:
    """The model is that of the messages, or the one that the program begins with."""
    assert [expected] * 2 == models(kind(), *lines)


def test_codex(tmp_path: Path) -> None:
    """Codex names the model of each turn in its own record."""
    turn = {"type": "turn_context", "payload": {"model": "gpt-5.5", "cwd": "/p"}}
    lines = [json.dumps(line).encode() for line in ({"turn_context": 1}, turn)]
    record(tmp_path).write_bytes(b"\n".join(lines) + b"\n" + counted(10))
    session = CodexSession(account=UsageRecord({"CODEX_HOME": str(tmp_path)}))
    begun = {"type": "thread.started", "thread_id": THREAD}
    over = {"type": "turn.completed", "usage": {"input_tokens": 20, "output_tokens": 7}}
    said = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "hi"}}
    assert ["gpt-5.5"] * 3 == models(session, begun, said, over)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"configOptions": [{"category": "model", "currentValue": "qwen3"}]}, "qwen3"),
        ({"models": {"currentModelId": "gemini-2.5-pro"}}, "gemini-2.5-pro"),
        ({"models": 3, "configOptions": [{"category": "model", "currentValue": 4}]}, None),
        ({}, None),
    ],
)
def test_acp(result: Json, expected: str | None) -> None:
    """A program of the Agent Client Protocol names its current model among its options."""
    assert expected == model_of(result)
