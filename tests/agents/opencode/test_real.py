"""The real OpenCode CLI: conformance, and its own features."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.agents.base.watch import Watch
from cuggino.errors import AgentFailed, GuardNotLive, QuotaExceeded
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance
from tests.agents.arenas import RealSuite
from tests.file_server import MCP_SERVER
from tests.model_script import ApiError, Hang, Text, Thought, Tool, replies
from tests.real_opencode import COST, OpenCode, bash, write
from tests.real_program import NOBODY


class TestAgent(RealSuite, AgentConformance):
    kind = OpenCode


class TestFailures(RealSuite, FailureConformance):
    kind = OpenCode


class TestGuard(RealSuite, GuardConformance):
    kind = OpenCode


def test_cost(opencode: OpenCode) -> None:
    """The cost follows the configured prices, after each answer and at the end."""
    done = opencode.run(
        [Thought("Hm."), Text("I begin."), bash("echo 1")], write(opencode.path("new.txt"), "new\n")
    )
    assert done.error is None
    assert ["Hm."] == [thought.text for thought in done.of(ev.Thinking)]
    assert {"file_path": opencode.path("new.txt"), "content": "new\n"} == done.of(ev.ToolCall)[
        1
    ].input
    assert pytest.approx(3 * COST) == done.ended.cost_usd
    assert pytest.approx(COST) == done.of(ev.UsageUpdate)[0].cost_usd
    assert (3, 3) == (done.ended.num_turns, len(done.requests))


def test_sub_agent_and_servers(opencode: OpenCode, tmp_path: Path) -> None:
    """Events of a sub-agent carry the id of its call, and a broken server is reported."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    servers = {
        "files": {"command": sys.executable, "args": [str(program)]},
        "broken": {"command": str(tmp_path / "nothing"), "args": []},
    }
    done = opencode.run(
        Tool("files_put", {"path": opencode.path("put.txt")}),
        OpenCode.delegate,
        helper=[[Text("On it."), bash("echo sub > sub.txt")]],
        mcp_servers=servers,
    )
    assert done.error is None
    assert ("put", "sub\n") == (opencode.read("put.txt"), opencode.read("sub.txt"))
    put, task, call = done.of(ev.ToolCall)
    assert ("mcp__files__put", "Task", "Bash") == (put.name, task.name, call.name)
    texts = {message.text: message.parent_tool_use_id for message in done.of(ev.AgentMessage)}
    assert {"On it.": task.id, "helped": task.id, "<DONE>done</DONE>": None} == texts
    assert {put.id, call.id, task.id} == {result.name for result in done.of(ev.ToolResult)}
    assert ev.Usage(input_tokens=5000, output_tokens=500) == done.ended.usage
    assert pytest.approx(5 * COST) == done.ended.cost_usd
    assert ["broken"] == [event.server for event in done.of(ev.McpServerFailed)]


def test_unknown_model(opencode: OpenCode) -> None:
    """The error of an unknown model names the model."""
    done = opencode.run(model="mock/nothing")
    assert isinstance(done.error, AgentFailed)
    assert ("bad_request", True) == (done.error.reason, "mock/nothing" in done.error.message)


def test_usage_limit_without_a_reset(opencode: OpenCode) -> None:
    """A limit without a time ends the session immediately, and no time is invented."""
    text = "You have hit your usage limit"
    # It tries again after two seconds, unless it was ended, and would wait for this.
    limit = ApiError(429, "usage_limit_reached", text)
    done = opencode.run(script=replies(limit, then=Hang()))
    assert isinstance(done.error, QuotaExceeded)
    assert (text, None) == (done.error.message, done.error.resets_at)
    assert [text] == [m.text.rpartition(": ")[2] for m in done.of(ev.SystemMessage)[1:]]


def test_guard_keeps_the_instructions(opencode: OpenCode) -> None:
    """The instructions of the project stay in force in a guarded session."""
    opencode.write("AGENTS.md", "Rules of the project.\n")
    done = opencode.run(guard=opencode.policy())
    assert "Rules of the project." in done.requests[0].system_text


def test_plugins_of_the_project(opencode: OpenCode) -> None:
    """No guarded session starts if the project has a plugin that the program would load."""
    opencode.write(".opencode/plugin/e.js", "export const E = async () => ({})")
    done = opencode.run(bash("echo no > no.txt"), guard=opencode.policy())
    assert isinstance(done.error, GuardNotLive)
    assert ([], []) == (done.events, done.requests)
    with pytest.raises(GuardNotLive, match="brings a plugin"):
        opencode.agent(NOBODY).check_guard(opencode.policy())


def test_no_tools_without_the_plugin(opencode: OpenCode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session has no tools if our plugin fails to load."""
    monkeypatch.setattr("cuggino.agents.opencode.agent.plugin_source", lambda _orders: "throw 1")
    monkeypatch.setattr(Watch, "begin", lambda _watch: None)
    done = opencode.run(
        [bash("echo no > no.txt"), write(opencode.path("no.txt"), "no")], guard=opencode.policy()
    )
    assert opencode.read("no.txt") is None
    assert [] == [result for result in done.of(ev.ToolResult) if not result.is_error]


def test_no_tools_without_the_judge(opencode: OpenCode) -> None:
    """If the judge does not respond at the start, the model is offered no tool."""
    with opencode.break_guard("at the start", "no judge"):
        done = opencode.run(bash("echo no > no.txt"), guard=opencode.policy())
    assert isinstance(done.error, GuardNotLive)
    assert not [request for request in done.requests if request.body["tools"]]


def test_verdicts_that_are_missing(opencode: OpenCode) -> None:
    """The model receives an error for a call that could not be judged."""
    with opencode.break_guard("later", "dead") as break_now:

        def turn() -> Tool:
            break_now()
            return bash("echo one > one.txt")

        done = opencode.run(turn, guard=opencode.policy())
    assert done.error is None
    assert opencode.read("one.txt") is None
    assert 1 == done.conversation.count("The guard could not check this call")
