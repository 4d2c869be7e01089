"""Failures of sessions of the Agent Client Protocol, and their end, with a scripted program."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import psutil
import pytest

from cuggino.agents.acp import stream
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, MessageDelta, RateLimited, SystemMessage, ToolCall
from cuggino.testing import no_leaks
from tests.agents.acp.scripts import Session, Stage, begun, called, error, say, shell, stop
from tests.limits import LIMIT
from tests.processes.subscribers import eventually


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (error(-32000, "Authentication required"), "auth"),
        (error(-32603, "Internal error", {"details": "401 bad key"}), "auth"),
        (error(-32603, "Internal error", {"details": "429 slow down"}), "rate_limit"),
        (error(-32603, "Internal error", {"errorKind": "rate_limit"}), "rate_limit"),
        (error(-32603, "Internal error", {"errorKind": "server_error"}), "server"),
        (error(429, '{"error": {"code": 429}}'), "rate_limit"),
        (error(503, "busy"), "overloaded"),
        (error(-32603, "Internal error", {"message": "400 context length"}), "prompt_too_long"),
        (error(-32603, "Internal error", {"details": "Connection error."}), "connection"),
        (error(-32603, "Internal error", "fetch failed: ECONNREFUSED"), "connection"),
        (error(-32603, "Internal error"), "unknown"),
        (error(-32602, "Invalid params"), "bad_request"),
        ({"end": {"error": "odd"}}, "unknown"),
    ],
)  # fmt: skip
def test_errors(stage: Stage, end: dict[str, Any], reason: str) -> None:
    """The reason of a failure comes from the code and the details of the error."""
    session = stage.session([say("I will"), end])
    assert isinstance(session.error, AgentFailed)
    assert (reason, "failed") == (session.error.reason, session.ended.outcome)
    assert ["I will"] == [event.text for event in session.of(AgentMessage)]


def test_usage_limit(stage: Stage) -> None:
    """A usage limit is recognized under any error code."""
    told = "429 You exceeded your current quota, please check your plan and billing details."
    session = stage.session([error(-32603, "Internal error", {"details": told})])
    assert isinstance(session.error, QuotaExceeded)
    assert ("quota", ["rejected"]) == (
        session.ended.outcome,
        [event.status for event in session.of(RateLimited)],
    )


def test_advice_to_log_in(stage: Stage) -> None:
    """A usage limit is one, even if the program advises to log in with another account."""
    told = "Quota exhausted: usage limit reached. Switch to another API key."
    session = stage.session([error(-32603, "Internal error", {"details": told})])
    assert isinstance(session.error, QuotaExceeded)


def test_repeated_answer(stage: Stage) -> None:
    """An answer that breaks off is dropped when the program begins it again."""
    params = {"sessionId": "s1", "category": "connection", "detail": "RemoteProtocolError"}
    retry = {"send": {"method": "_session/retrying", "params": params}}
    session = stage.session([say("This is cut o"), retry, say("Who"), say("le."), stop()])
    assert session.error is None
    assert ["Whole."] == [event.text for event in session.of(AgentMessage)]
    assert "Retrying: connection, RemoteProtocolError" in [
        event.text for event in session.of(SystemMessage)
    ]
    before, *after = [event.message_id for event in session.of(MessageDelta)]
    assert {before} != set(after)
    assert {session.of(AgentMessage)[0].message_id} == set(after)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Error: 429 Too many requests", "rate_limit"),
        ("API Error: 401 Unauthorized", "auth"),
        ("⚠ Error: the model is overloaded", "overloaded"),
        ("request failed: connection refused", "connection"),
        ("Error: All connection attempts failed", "connection"),
        ("500 Internal Server Error", "server"),
        ("", "unknown"),
        (" \n", "unknown"),
    ],
)
def test_error_as_text(stage: Stage, text: str, reason: str) -> None:
    """A turn of nothing but an error, or of nothing, has failed."""
    session = stage.session([say(text), stop()])
    assert isinstance(session.error, AgentFailed)
    assert (reason, "failed") == (session.error.reason, session.ended.outcome)


def test_quota_as_text(stage: Stage) -> None:
    """A usage limit reported only as text is recognized."""
    session = stage.session([say("Error: You have exceeded your current quota"), stop()])
    assert isinstance(session.error, QuotaExceeded)


def test_answers_about_errors(stage: Stage) -> None:
    """An answer that mentions an error is an answer."""
    assert stage.session([say("The error was in app.py."), stop()]).error is None
    assert stage.session([shell("c1", "true"), say("Error: fixed."), stop()]).error is None


@pytest.mark.parametrize(
    ("reason", "expected", "outcome"),
    [
        ("max_tokens", "unknown", "failed"),
        ("max_turn_requests", "max_turns", "max_turns"),
        ("refusal", "unknown", "failed"),
        ("cancelled", "aborted", "interrupted"),
        ("tomorrow", "unknown", "failed"),
    ],
)
def test_stop_reasons(stage: Stage, reason: str, expected: str, outcome: str) -> None:
    """Only the end of a turn is success."""
    session = stage.session([say("Over."), stop(reason)])
    assert isinstance(session.error, AgentFailed)
    assert (expected, outcome) == (session.error.reason, session.ended.outcome)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({"initialize": {"protocolVersion": 2}}, "speaks ACP 2, not 1"),
        ({"errors": {"initialize": {"code": -32603, "message": "broken"}}}, "broken"),
        ({"errors": {"session/new": {"code": -32000, "message": "log in"}}}, "log in"),
        ({"session": {"sessionId": None}}, "named no session"),
    ],
)
def test_start(stage: Stage, script: dict[str, Any], message: str) -> None:
    """A session that cannot begin fails, without a prompt."""
    session = stage.session([say("Over.")], script=script)
    assert isinstance(session.error, AgentFailed)
    assert message in session.error.message
    assert [] == session.prompts


@pytest.mark.parametrize("code", [0, 3])
def test_crash(stage: Stage, code: int) -> None:
    """A program that ends within its turn has crashed, even with exit code 0."""
    session = stage.session([say("I will"), {"exit": code}])
    assert isinstance(session.error, AgentFailed)
    assert ("crash", "failed") == (session.error.reason, session.ended.outcome)
    assert ("it broke" in session.error.message) is (code == 3)
    assert ["I will"] == [event.text for event in session.of(AgentMessage)]


def test_exit_while_judging(stage: Stage) -> None:
    """A program that ends while its call is judged is reported once."""
    ask = {"method": "session/request_permission", "id": "q"}
    params = {"sessionId": "s1", "toolCall": called("c1", command="ls"), "options": []}
    session = stage.guarded([{"send": {**ask, "params": params}}, {"exit": 0}])
    assert isinstance(session.error, AgentFailed)
    assert "crash" == session.error.reason


def test_late_start(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that never answers ends after a while."""
    monkeypatch.setattr(stream, "START_SECONDS", 0.2)
    session = stage.session(script={"silent": "initialize"})
    assert isinstance(session.error, AgentFailed)
    assert "did not begin within" in session.error.message


def test_lingering_program(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not end with its input is terminated; the session was a success."""
    monkeypatch.setattr(stream, "LEAVE_SECONDS", 0.1)
    with no_leaks():
        session = stage.session([say("Over.")], script={"lingers": LIMIT * 10})
    assert session.error is None
    assert "completed" == session.ended.outcome


def test_chatting_program(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that goes on talking after its turn does not hold the session."""
    monkeypatch.setattr(stream, "LEAVE_SECONDS", 0.2)
    chat = f"while sleep 0.05; do echo '{{}}'; done & sleep {LIMIT * 10}"
    stage.profile = type(stage.profile)(
        name="chat", command=("/bin/sh", "-c", f'"$0" "$@"; {chat}', *stage.profile.command)
    )
    session = stage.session([say("Over.")])
    assert session.error is None


@pytest.mark.parametrize("stage_name", ["initialize", "session/new", "session/prompt"])
def test_disposal_in_silence(stage: Stage, stage_name: str) -> None:
    """A session that is disposed of in any phase leaves nothing."""
    agent = stage.agent(silent=stage_name)
    log = stage.script.with_suffix(".log")
    with no_leaks(), stage.running(agent) as (session, ended, subscription):
        assert eventually(lambda: log.exists() and stage_name in log.read_text())
        subscription.dispose()
        events = len(session.events)
        assert not ended.is_set()
    assert events == len(session.events)


def test_disposal_at_work(stage: Stage) -> None:
    """Disposal terminates a running tool, and processes in another process group."""
    marker = f"sleep {int(LIMIT * 1000)}.{os.getpid()}"  # not that of another run
    turn = [{"leave": marker}, begun(called("c1", command="x")), {"run": f"{marker} & wait"}]
    with no_leaks(), stage.running(stage.agent(turn)) as (session, _, subscription):
        assert eventually(lambda: bool(session.of(ToolCall)) and len(_sleeping(marker)) == 2)
        begin = time.monotonic()
        subscription.dispose()
        assert time.monotonic() - begin < LIMIT
        assert [] == _sleeping(marker)


def test_disposal_while_judging(stage: Stage) -> None:
    """A session that is disposed of while a call is judged ends cleanly, many times over."""
    turn = [shell(f"c{number}", "echo $((1 + 1))") for number in range(200)]
    with no_leaks():
        for wanted in range(1, 6):
            agent = stage.agent(turn)
            with stage.running(agent, guard=stage.policy()) as (session, _, subscription):
                assert eventually(partial(_has_called, session, wanted))
                subscription.dispose()


def test_raising_subscriber(stage: Stage) -> None:
    """An exception of the subscriber ends the program and reaches `on_error`."""
    errors: list[Exception] = []

    def fail(event: object) -> None:
        if isinstance(event, AgentMessage):
            raise ValueError("mine")

    with no_leaks():
        turn = [say("Over."), shell("c1", "ls"), {"sleep": LIMIT * 10}]
        agent = stage.agent(turn)
        agent.spawn(stage.options()).subscribe(fail, errors.append)
        assert eventually(lambda: bool(errors))
    assert "mine" in str(errors)


def _has_called(session: Session, wanted: int) -> bool:
    return len(session.of(ToolCall)) >= wanted


def _sleeping(marker: str) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == marker.split():
            found.append(process.pid)
    return found
