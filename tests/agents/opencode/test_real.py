"""The real OpenCode CLI against a scripted model: what it does is what is told."""

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
from tests.agents.copilot.test_real import MCP_SERVER
from tests.model_script import HELPER, Text, Thought, Tool
from tests.real_opencode import COST, VERSION, OpenCode, bash, opencode, opencode_cli, write

__all__ = ["opencode", "opencode_cli"]

pytestmark = pytest.mark.real_agent

LONG = 'A "word", é and 😀, <b>\\n.\n' * 12_000
"""More than 300 kB."""


def test_a_session(opencode: OpenCode) -> None:
    """Text, thoughts, calls and results come in order, files are really written, tokens add up."""
    said = "Now <NOTE>I begin</NOTE>, in more than one delta."
    done = opencode.run(
        [Thought("Hm."), Text(said), bash("echo 1")],
        [write(opencode.path("new.txt"), "new\n"), bash("echo 2 >&2; exit 3")],
    )
    assert done.error is None
    assert "new\n" == opencode.read("new.txt")
    assert ["Thinking", "AgentMessage", "ToolCall"] == done.tags[:3]
    assert [said, "<DONE>done</DONE>"] == [message.text for message in done.of(AgentMessage)]
    (first, last) = [message.message_id for message in done.of(AgentMessage)]
    deltas = [delta.text for delta in done.of(MessageDelta) if delta.message_id == first]
    assert said == "".join(deltas)
    assert done.events.index(done.of(MessageDelta)[0]) < done.events.index(done.of(AgentMessage)[0])
    assert last != first
    assert ["Hm."] == [thought.text for thought in done.of(Thinking)]
    calls = done.of(ToolCall)
    assert ["Bash", "Write", "Bash"] == [call.name for call in calls]
    assert {"file_path": opencode.path("new.txt"), "content": "new\n"} == calls[1].input
    results = {result.name: result for result in done.of(ToolResult)}
    assert [False, False, True] == [results[call.id].is_error for call in calls]
    assert "1\n" in results[calls[0].id].output
    assert Usage(input_tokens=3000, output_tokens=300) == done.ended.usage
    assert pytest.approx(3 * COST) == done.ended.cost_usd
    assert pytest.approx(COST) == done.of(UsageUpdate)[0].cost_usd
    assert ("completed", 3, 3) == (done.ended.outcome, done.ended.num_turns, len(done.requests))
    assert done.of(PingEvent)


def test_what_is_asked_for(opencode: OpenCode) -> None:
    """Long prompts of any letters, model and environment reach the session as they are."""
    prompt = f'-Do "it" /now, with @app.py and $HOME.\n{LONG}'
    done = opencode.run(
        bash("echo $MINE > mine.txt; pwd >> mine.txt"),
        prompt=prompt,
        system_prompt=LONG,
        model="mock/other-model",
        env={"MINE": "theirs"},
    )
    assert done.error is None
    request = done.requests[0]
    assert prompt == request.messages_text
    assert LONG in request.system_text
    assert request.system_text.startswith("You are opencode")
    assert "other-model" == request.model
    assert "question" not in request.tool_names
    assert f"theirs\n{opencode.project}\n" == opencode.read("mine.txt")


def test_a_session_is_resumed(opencode: OpenCode, tmp_path: Path) -> None:
    """A resumed session knows what was said; one of another folder, and an unknown one, are not."""
    first = opencode.run(Text("The word is plum."), system_prompt="One.")
    name = first.ended.session_id
    again = opencode.run(
        *(Text(""), Text("Yes.")), prompt="Which?", resume_session_id=name, system_prompt="Two."
    )
    assert (None, name) == (again.error, again.ended.session_id)
    assert "The word is plum." in again.requests[0].messages_text
    told = again.requests[0].system_text
    assert (False, True) == ("One." in told, "Two." in told)
    assert Usage(input_tokens=1000, output_tokens=100) == again.ended.usage
    other = tmp_path / "other"
    other.mkdir()
    for options in ({"resume_session_id": "ses_none"}, {"resume_session_id": name, "cwd": other}):
        done = opencode.run(**options)
        assert isinstance(done.error, AgentFailed)
        assert "bad_request" == done.error.reason
        assert "start a new one" in (done.error.hint or "")
        assert ([], ["SessionEnded"]) == (done.requests, done.tags)


def test_sub_agents_and_servers(opencode: OpenCode, tmp_path: Path) -> None:
    """A sub-agent's text, calls and tokens are told, and whose they are; servers' tools run."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    servers = {
        "files": {"command": sys.executable, "args": [str(program)]},
        "broken": {"command": str(tmp_path / "nothing"), "args": []},
    }
    order = {"description": "help a bit", "prompt": HELPER, "subagent_type": "general"}
    done = opencode.run(
        Tool("files_put", {"path": opencode.path("put.txt")}),
        Tool("task", order),
        helper=[[Text("On it."), bash("echo sub > sub.txt")]],
        mcp_servers=servers,
    )
    assert done.error is None
    assert ("put", "sub\n") == (opencode.read("put.txt"), opencode.read("sub.txt"))
    put, task, call = done.of(ToolCall)
    assert ("mcp__files__put", "Task", "Bash") == (put.name, task.name, call.name)
    said = {message.text: message.parent_tool_use_id for message in done.of(AgentMessage)}
    assert {"On it.": task.id, "helped": task.id, "<DONE>done</DONE>": None} == said
    assert {put.id, call.id, task.id} == {result.name for result in done.of(ToolResult)}
    assert Usage(input_tokens=5000, output_tokens=500) == done.ended.usage
    assert pytest.approx(5 * COST) == done.ended.cost_usd
    assert "MCP server broken failed" in [message.text for message in done.of(SystemMessage)]


def test_reading_only(opencode: OpenCode) -> None:
    """Without leave to skip permissions the agent reads, uses what is allowed, and no more."""
    done = opencode.run(
        [Tool("read", {"filePath": opencode.path("app.py")}), bash("echo no > no.txt")],
        [write(opencode.path("yes.txt"), "yes"), Tool("read", {"filePath": "/etc/passwd"})],
        dangerously_skip_permissions=False,
        allowed_tools=("MultiEdit",),
    )
    assert done.error is None
    assert ("yes", None) == (opencode.read("yes.txt"), opencode.read("no.txt"))
    errors = [result.is_error for result in sorted(done.of(ToolResult), key=lambda r: r.name)]
    assert [False, True, False, True] == errors


def test_the_version(opencode: OpenCode) -> None:
    """The program's version is what was installed."""
    assert VERSION == opencode.agent("http://127.0.0.1:9").check()
