"""Sessions of the Agent Client Protocol with a scripted program: events, failures, resuming."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from cuggino import events as ev
from cuggino.agents.acp import stream
from cuggino.agents.base import InteractiveOptions
from cuggino.errors import AgentFailed, AgentNotFound
from cuggino.events import (
    AgentMessage,
    MessageDelta,
    SystemMessage,
    ToolCall,
    Usage,
    UsageUpdate,
)
from cuggino.testing import no_leaks
from tests.agents.acp.scripts import (
    Session,
    Stage,
    asked,
    begun,
    called,
    done,
    error,
    say,
    shell,
    stop,
    think,
)
from tests.limits import LIMIT
from tests.processes.subscribers import eventually


def test_session(stage: Stage) -> None:
    """A session emits its thoughts, messages, calls and results, and completes."""
    call = called("c1", command="echo hi > hi.txt")
    first = [think("hm, "), think("so"), say("I will "), say("write."), begun(call)]
    usage = {"inputTokens": 30, "outputTokens": 5, "cachedReadTokens": 10}
    session = stage.session(
        [*first, asked(call, "echo hi > hi.txt"), say("Over."), stop(usage=usage)]
    )
    assert session.error is None
    assert [
        "SystemMessage",
        *("Thinking", "AgentMessage", "ToolCall", "ToolResult", "AgentMessage"),
        *("UsageUpdate", "SessionEnded"),
    ] == [tag for tag in session.tags if tag != "MessageDelta"]
    assert ["hm, so"] == [event.text for event in session.of(ev.Thinking)]
    assert ["I will write.", "Over."] == [event.text for event in session.of(ev.AgentMessage)]
    ids = [event.message_id for event in session.of(ev.AgentMessage)]
    assert len(set(ids)) == 2
    assert ids == list(dict.fromkeys(event.message_id for event in session.of(ev.MessageDelta)))
    (made,) = session.of(ev.ToolCall)
    assert ("Bash", {"command": "echo hi > hi.txt"}, "c1") == (made.name, made.input, made.id)
    assert [ev.ToolResult(name="c1", output="ran", is_error=False)] == session.of(ev.ToolResult)
    assert (stage.project / "hi.txt").read_text() == "hi\n"
    counted = ev.Usage(input_tokens=20, output_tokens=5, cache_read_tokens=10)
    assert [counted] == [event.usage for event in session.of(ev.UsageUpdate)]
    ended = session.ended
    assert ("completed", "s1", 1, counted) == (
        *(ended.outcome, ended.session_id, ended.num_turns, ended.usage),
    )


def test_wire(stage: Stage) -> None:
    """The program gets one request after the other, and offers nothing of cuggino's."""
    session = stage.session([say("Over.")], system_prompt="Be brief.")
    methods = [one["method"] for one in session.received]
    assert ["initialize", "session/new", "session/set_config_option", "session/prompt"] == methods
    assert {} == session.sent("initialize")[0]["clientCapabilities"]
    assert [{"cwd": str(stage.project), "mcpServers": []}] == session.sent("session/new")
    chosen = {"sessionId": "s1", "configId": "mode", "value": "ask"}
    assert [chosen] == session.sent("session/set_config_option")
    assert ["Be brief.\n\ngo"] == session.prompts


def test_slash(stage: Stage) -> None:
    """A prompt with a leading slash is not run as a command of the program."""
    assert [" /go"] == stage.session([say("Over.")], prompt="/go").prompts


def test_call_without_input(stage: Stage) -> None:
    """A call is emitted once, when its input is known, and gets a result in any case."""
    early = {"toolCallId": "c1", "kind": "execute", "title": "Shell", "rawInput": {}}
    session = stage.session([begun(early), shell("c1", "true"), begun(called("c2", command="x"))])
    assert [("c1", {"command": "true"}), ("c2", {"command": "x"})] == [
        (call.id, call.input) for call in session.of(ev.ToolCall)
    ]
    results = [(result.name, result.is_error) for result in session.of(ev.ToolResult)]
    assert [("c1", False), ("c2", True)] == results


def test_noise(stage: Stage) -> None:
    """Lines and messages that are none of the protocol change nothing; requests are refused."""
    noise = [
        {"raw": "Loading..."},
        {"raw": "[1, 2"},
        {"raw": '{"jsonrpc": "2.0", "id": 999, "result": {"stopReason": "end_turn"}}'},
        {"raw": '{"jsonrpc": "2.0", "id": null, "method": "x/y", "params": 3}'},
        {"raw": '{"jsonrpc": "2.0", "method": "session/update", "params": [1]}'},
        {"update": {"sessionUpdate": "tomorrow", "content": 1}},
        {"update": {"sessionUpdate": "tool_call", "toolCallId": 3}},
        {"update": {"sessionUpdate": "config_option_update", "configOptions": 3}},
        {"update": {"sessionUpdate": "agent_message_chunk", "content": "text"}},
        {
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"text": "!"}},
            "session": "s2",
        },
        {"send": {"id": 7, "method": "fs/read_text_file", "params": {"path": "/etc/passwd"}}},
        {"send": {"id": 8, "method": "terminal/create", "params": {"command": "touch"}}},
    ]
    session = stage.session([*noise, say("Over.")])
    assert session.error is None
    assert ["SystemMessage", "MessageDelta", "AgentMessage", "SessionEnded"] == session.tags
    refused = {one["id"]: one["error"]["code"] for one in session.received if "error" in one}
    assert {7: -32601, 8: -32601} == refused


def test_deep_message(stage: Stage) -> None:
    """A deeply nested input is shown in part."""
    deep = "[" * 3000 + "]" * 3000
    line = (
        '{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": '
        '{"sessionUpdate": "tool_call", "toolCallId": "c", "rawInput": {"x": %s}}}}'
    )
    session = stage.session([{"raw": line % deep}, say("Over.")])
    assert session.error is None
    assert "AgentMessage" in session.tags


def test_surrogates(stage: Stage) -> None:
    """Lone surrogates are replaced in both directions."""
    session = stage.session([say("a\ud83d"), say("\ude00b\ud800")], prompt="x\udcff")
    assert session.error is None
    assert ["a\ufffd\ufffdb\ufffd"] == [event.text for event in session.of(ev.AgentMessage)]
    assert ["x?"] == session.prompts


def test_model(stage: Stage) -> None:
    """The model is set if the program offers it, by value or name."""
    given = [{"value": "m-1", "name": "One"}, {"value": "m-2", "name": "Two"}]
    model = {"id": "model", "category": "model", "currentValue": "m-1", "options": given}
    script = {"options": [model]}
    session = stage.session([say("Over.")], script=script, model="Two")
    chosen = [one["value"] for one in session.sent("session/set_config_option")]
    assert ["ask", "m-2"] == chosen
    session = stage.session([say("Over.")], script=script, model="Three")
    assert isinstance(session.error, AgentFailed)
    assert "does not offer the model Three" in session.error.message
    assert "it offers m-1, m-2" == session.error.hint


def test_servers(stage: Stage) -> None:
    """MCP servers are passed on in the format of the protocol."""
    servers = {
        "files": {"command": "srv", "args": ["-x"], "env": {"K": "v"}},
        "web": {"type": "http", "url": "https://x.example", "headers": {"A": "b"}},
        "old": {"type": "sse", "url": "https://y.example"},
    }
    session = stage.session([say("Over.")], mcp_servers=servers)
    assert [
        {"name": "files", "command": "srv", "args": ["-x"], "env": [{"name": "K", "value": "v"}]},
        {
            "name": "web",
            "type": "http",
            "url": "https://x.example",
            "headers": [{"name": "A", "value": "b"}],
        },
    ] == session.sent("session/new")[0]["mcpServers"]
    (left_out, _) = session.of(ev.SystemMessage)
    assert "old is left out" in left_out.text


@pytest.mark.parametrize("offered", [3, {"mcpCapabilities": 3, "sessionCapabilities": [1]}, None])
def test_odd_capabilities(stage: Stage, offered: object) -> None:
    """A program whose capabilities are malformed has none."""
    script = {"initialize": {"agentCapabilities": offered}}
    servers = {"web": {"url": "https://x.example"}}
    session = stage.session([say("Over.")], script=script, mcp_servers=servers)
    assert session.error is None
    assert [] == session.sent("session/new")[0]["mcpServers"]


def test_listing_agents() -> None:
    """A command that only lists the agents does not build the models of the protocol."""
    code = (
        "import sys, cuggino.agents as a; a.agent_entries(); sys.exit('acp.schema' in sys.modules)"
    )
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False, timeout=LIMIT).returncode


def test_missing_program(stage: Stage) -> None:
    """A missing program raises `AgentNotFound` with an installation hint."""
    stage.profile = type(stage.profile)(name="none", command=("no-such-agent",), install="get it")
    session = stage.session()
    assert isinstance(session.error, AgentNotFound)
    assert session.error.hint is not None and "get it" in session.error.hint
    assert [] == session.events


def test_terminal(stage: Stage, tmp_path: Path) -> None:
    """Interactive sessions fail, guarded or not; the error suggests another agent."""
    for guard in (None, stage.policy("pm")):
        options = InteractiveOptions(cwd=tmp_path, guard=guard)
        with pytest.raises(AgentFailed, match="has no interactive session") as failed:
            stage.agent([]).interactive(options)
        assert "--agent claude" in str(failed.value.hint)


def test_errors(stage: Stage) -> None:
    """A failure has the reason of the judge of refusals, and what came before it is kept."""
    session = stage.session([say("I will"), error(-32603, "Internal error", {"details": "401 no"})])
    assert isinstance(session.error, AgentFailed)
    assert ("auth", "failed") == (session.error.reason, session.ended.outcome)
    assert ["I will"] == [event.text for event in session.of(AgentMessage)]
    odd = stage.session([{"end": {"error": "odd"}}]).error
    assert isinstance(odd, AgentFailed)
    assert "unknown" == odd.reason


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


def test_answers_about_errors(stage: Stage) -> None:
    """An answer that mentions an error is an answer."""
    assert stage.session([say("The error was in app.py."), stop()]).error is None
    assert stage.session([shell("c1", "true"), say("Error: fixed."), stop()]).error is None


def test_stop_reasons(stage: Stage) -> None:
    """Only the end of a turn is success."""
    session = stage.session([say("Over."), stop("max_turn_requests")])
    assert isinstance(session.error, AgentFailed)
    assert ("max_turns", "max_turns") == (session.error.reason, session.ended.outcome)


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
