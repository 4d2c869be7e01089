"""Sessions of the Agent Client Protocol, with a scripted program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.agents.base import InteractiveOptions
from cuggino.errors import AgentFailed, AgentNotFound
from tests.agents.acp.scripts import Stage, asked, begun, called, say, shell, stop, think
from tests.limits import LIMIT


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
