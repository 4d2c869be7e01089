"""The real GitHub Copilot CLI against a scripted model: what it does is what is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.errors import AgentFailed
from cuggino.events import (
    AgentMessage,
    MessageDelta,
    PingEvent,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)
from tests.model_script import HELPER, Text, Thought, Tool
from tests.real_copilot import VERSION, Copilot, bash, copilot, copilot_cli, create

__all__ = ["copilot", "copilot_cli"]

pytestmark = pytest.mark.real_agent

MCP_SERVER = """
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"]:
        case "initialize":
            version = asked["params"]["protocolVersion"]
            server = {"name": "files", "version": "1"}
            told = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            schema = {"type": "object", "properties": {"path": {"type": "string"}}}
            told = {"tools": [{"name": "put", "inputSchema": schema}]}
        case "tools/call":
            open(asked["params"]["arguments"]["path"], "w").write("put")
            told = {"content": [{"type": "text", "text": "it is put"}]}
        case _:
            told = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


def test_a_session(copilot: Copilot) -> None:
    """Text, thoughts, calls and results come in order, files are really written, tokens add up."""
    done = copilot.run(
        [Thought("Hm."), Text("Now <NOTE>I begin</NOTE>, in more than one delta."), bash("echo 1")],
        [create(copilot.path("new.txt"), "new\n"), bash("echo 2 >&2; exit 3")],
    )
    assert done.error is None
    assert "new\n" == copilot.read("new.txt")
    assert [
        *("AgentMessage", "Thinking", "ToolCall", "ToolResult"),
        *("ToolCall", "ToolCall", "ToolResult", "ToolResult", "AgentMessage", "SessionEnded"),
    ] == done.tags
    assert [
        "Now <NOTE>I begin</NOTE>, in more than one delta.",
        "<DONE>done</DONE>",
    ] == [message.text for message in done.of(AgentMessage)]
    written: dict[str, str] = {}
    for delta in done.of(MessageDelta):
        written[delta.message_id] = written.get(delta.message_id, "") + delta.text
    assert written == {message.message_id: message.text for message in done.of(AgentMessage)}
    assert len(done.of(MessageDelta)) > len(written)
    assert ["Hm."] == [thought.text for thought in done.of(Thinking)]
    calls = done.of(ToolCall)
    assert ["Bash", "Write", "Bash"] == [call.name for call in calls]
    assert {"file_path": copilot.path("new.txt"), "content": "new\n"} == calls[1].input
    results = {result.name: result for result in done.of(ToolResult)}
    assert {call.id for call in calls} == set(results)
    assert [False, False, True] == [results[call.id].is_error for call in calls]
    assert "1\n" in results[calls[0].id].output
    assert Usage(input_tokens=3000, output_tokens=300) == done.ended.usage
    assert Usage(input_tokens=1000, output_tokens=100) == done.of(UsageUpdate)[0].usage
    assert ("completed", None, 3) == (
        done.ended.outcome,
        done.ended.cost_usd,
        done.ended.num_turns,
    )
    assert done.of(PingEvent)


def test_what_is_asked_for(copilot: Copilot) -> None:
    """Prompt, system prompt, model and environment reach the session; it cannot ask questions."""
    done = copilot.run(
        bash("echo $MINE > mine.txt; pwd >> mine.txt"),
        prompt="/Do it, with @files and $HOME.",
        system_prompt="You are the one.",
        model="other-model",
        env={"MINE": "theirs"},
    )
    assert done.error is None
    request = done.requests[0]
    assert "/Do it, with @files and $HOME." in request.messages_text
    assert "You are the one." in request.system_text
    assert "GitHub Copilot" in request.system_text
    assert "other-model" == request.model
    assert "Bearer dummy-not-a-key" == request.headers["authorization"]
    assert not [name for name in request.tool_names if "ask" in name and name != "task"]
    assert f"theirs\n{copilot.project}\n" == copilot.read("mine.txt")


def test_a_session_is_resumed(copilot: Copilot) -> None:
    """A resumed session knows what was said, and has the system prompt that is given now."""
    name = "0199aaaa-0000-4000-8000-000000000001"
    first = copilot.run(Text("The word is plum."), session_id=name, system_prompt="One.")
    assert (None, name) == (first.error, first.ended.session_id)
    again = copilot.run(
        *(Text(""), Text("Yes.")), prompt="Which?", resume_session_id=name, system_prompt="Two."
    )
    assert (None, name) == (again.error, again.ended.session_id)
    assert "The word is plum." in again.requests[0].messages_text
    assert ("One." in again.requests[0].system_text, "Two." in again.requests[0].system_text) == (
        False,
        True,
    )
    assert Usage(input_tokens=1000, output_tokens=100) == again.ended.usage


def test_a_session_is_resumed_elsewhere(copilot: Copilot, tmp_path: Path) -> None:
    """A resumed session works in the folder that is given now."""
    name = "0199aaaa-0000-4000-8000-000000000002"
    copilot.run(Text("Hello."), session_id=name)
    other = tmp_path / "other"
    other.mkdir()
    done = copilot.run(*(Text(""), bash("pwd > where.txt")), resume_session_id=name, cwd=other)
    assert done.error is None
    assert f"{other}\n" == (other / "where.txt").read_text()


def test_a_prompt_that_is_too_long(copilot: Copilot) -> None:
    """More than the model can read at once is an error of its own."""
    done = copilot.run(prompt="A word. " * 200_000)
    assert isinstance(done.error, AgentFailed)
    assert "prompt_too_long" == done.error.reason


def test_an_unknown_session(copilot: Copilot) -> None:
    """A session that is not there cannot be resumed, and it says so."""
    done = copilot.run(resume_session_id="0199aaaa-0000-4000-8000-00000000ffff")
    assert isinstance(done.error, AgentFailed)
    assert "bad_request" == done.error.reason
    assert "start a new one" in (done.error.hint or "")
    assert ([], ["SessionEnded"]) == (done.requests, done.tags)


def test_a_sub_agent(copilot: Copilot) -> None:
    """A sub-agent's text, calls and tokens are told, and to whom they belong."""
    order = {
        "agent_type": "general-purpose",
        "name": "helper",
        "description": "help a bit",
        "prompt": HELPER,
        "mode": "sync",
    }
    done = copilot.run(Tool("task", order), helper=[[Text("On it."), bash("echo sub > sub.txt")]])
    assert done.error is None
    assert "sub\n" == copilot.read("sub.txt")
    task, call = done.of(ToolCall)
    assert ("Task", "help a bit", "general-purpose") == (
        task.name,
        task.input["description"] if isinstance(task.input, dict) else None,
        task.input["subagent_type"] if isinstance(task.input, dict) else None,
    )
    assert "Bash" == call.name
    said = {message.text: message.parent_tool_use_id for message in done.of(AgentMessage)}
    assert {"On it.": task.id, "helped": task.id, "<DONE>done</DONE>": None} == said
    told = [message.text for message in done.of(SystemMessage)]
    assert "Sub-agent helper started: help a bit" in told
    assert "Sub-agent helper completed" in told
    assert [call.id, task.id] == [result.name for result in done.of(ToolResult)]
    assert Usage(input_tokens=4000, output_tokens=400) == done.ended.usage


def test_mcp_servers(copilot: Copilot, tmp_path: Path) -> None:
    """A server's tools can be called, and one that cannot be started is told of."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    servers = {
        "files": {"command": sys.executable, "args": [str(program)]},
        "broken": {"command": str(tmp_path / "nothing"), "args": []},
    }
    put = Tool("files-put", {"path": copilot.path("put.txt")})
    done = copilot.run(put, mcp_servers=servers)
    assert done.error is None
    assert "put" == copilot.read("put.txt")
    assert ["mcp__files__put"] == [call.name for call in done.of(ToolCall)]
    assert "MCP server broken failed" in [message.text for message in done.of(SystemMessage)]


def test_reading_only(copilot: Copilot) -> None:
    """Without leave to skip permissions the agent reads, uses what is allowed, and no more."""
    done = copilot.run(
        [Tool("view", {"path": copilot.path("app.py")}), bash("echo no > no.txt")],
        [create(copilot.path("yes.txt"), "yes"), Tool("web_fetch", {"url": "http://127.0.0.1:9"})],
        dangerously_skip_permissions=False,
        allowed_tools=("MultiEdit",),
    )
    assert done.error is None
    assert ("yes", None) == (copilot.read("yes.txt"), copilot.read("no.txt"))
    errors = [result.is_error for result in sorted(done.of(ToolResult), key=lambda r: r.name)]
    assert [False, True, False, True] == errors
    assert "This session may read only" in done.told


def test_the_version(copilot: Copilot) -> None:
    """The program's version is what was installed."""
    assert VERSION == copilot.agent("http://127.0.0.1:9").check()
