"""Resumed sessions of the Agent Client Protocol, their tokens and cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage, ToolCall, Usage, UsageUpdate
from tests.agents.acp.scripts import Stage, begun, called, done, say, shell, stop

LOADED = {"agentCapabilities": {"loadSession": True}}
NEITHER: dict[str, Any] = {"agentCapabilities": {}}


@pytest.mark.parametrize(
    ("script", "method"), [({}, "session/resume"), ({"initialize": LOADED}, "session/load")]
)
def test_resume(stage: Stage, script: dict[str, Any], method: str) -> None:
    """A session is resumed, or loaded without the events of its past."""
    past = [say("Old."), begun(called("c0", command="old")), done("c0")]
    script = {**script, "replayed": [step["update"] for step in past], "name": "s7"}
    turn = [shell("c1", "true", session="s7"), say("New.")]
    session = stage.guarded(turn, script=script, resume_session_id="s7", system_prompt="Be brief.")
    assert session.error is None
    (params,) = session.sent(method)
    assert ("s7", str(stage.project), []) == (
        *(params["sessionId"], params["cwd"], params["mcpServers"]),
    )
    assert [] == session.sent("session/new")
    assert ["New."] == [event.text for event in session.of(AgentMessage)]
    assert ["c1"] == [event.id for event in session.of(ToolCall)]
    assert (["go"], "s7") == (session.prompts, session.ended.session_id)
    assert "ask" == session.sent("session/set_config_option")[0]["value"]


def test_unknown_session(stage: Stage) -> None:
    """A session that the program does not know fails permanently."""
    errors = {"session/resume": {"code": -32602, "message": "No session s7"}}
    session = stage.session(script={"errors": errors}, resume_session_id="s7")
    assert isinstance(session.error, AgentFailed)
    assert ("bad_request", True) == (session.error.reason, "No session" in session.error.message)
    assert "start a new one" in str(session.error.hint)


def test_no_resume(stage: Stage) -> None:
    """A program that can do neither is not started over with the prompt."""
    session = stage.session(script={"initialize": NEITHER}, resume_session_id="s7")
    assert isinstance(session.error, AgentFailed)
    assert ("cannot resume", []) == (session.error.message.split(" ", 1)[1][:13], session.prompts)


def cost(amount: object, currency: str = "USD") -> dict[str, Any]:
    told = {"amount": amount, "currency": currency}
    return {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": told}


def test_cost(stage: Stage) -> None:
    """The cost of a resumed session begins where it was resumed."""
    odd = [cost("x"), cost(-1, "EUR"), cost(None), cost(True)]
    turn = [{"update": cost(0.75)}, *({"update": one} for one in odd), say("Over.")]
    assert 0.75 == stage.session(turn).ended.cost_usd
    script = {"replayed": [cost(0.5)], "initialize": LOADED}
    session = stage.session(turn, script=script, resume_session_id="s1")
    assert 0.25 == session.ended.cost_usd
    assert stage.session([say("Over.")]).ended.cost_usd is None


TOLD = {"inputTokens": 100, "outputTokens": 7, "cachedReadTokens": 30, "cachedWriteTokens": 20}
COUNTED = Usage(input_tokens=50, output_tokens=7, cache_read_tokens=30, cache_creation_tokens=20)


def test_usage_of_turns(stage: Stage) -> None:
    """Tokens of turns are summed up, those of a session are not."""
    deny = shell("c1", "echo x > .specs/task.md")
    turns = ([deny, stop(usage=TOLD)], [say("Over."), stop(usage=TOLD)])
    session = stage.guarded(*turns)
    assert [7, 14] == [event.usage.output_tokens for event in session.of(UsageUpdate)]
    stage.profile = replace(stage.profile, usage="session")
    session = stage.guarded(*turns)
    assert COUNTED == session.ended.usage
    stage.profile = replace(stage.profile, usage="none")
    assert stage.guarded(*turns).ended.usage is None


def test_usage_of_requests(stage: Stage) -> None:
    """Tokens of requests, reported with an empty text chunk, are summed up."""
    stage.profile = replace(stage.profile, usage="requests")
    session = stage.session([say("A"), say("", usage=TOLD), say("B"), say("", usage={"x": "y"})])
    assert ["A", "B"] == [event.text for event in session.of(AgentMessage)]
    assert COUNTED == session.ended.usage
