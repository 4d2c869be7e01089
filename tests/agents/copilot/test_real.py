"""The real GitHub Copilot CLI: conformance, and its own features."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.agents.copilot.guard import Gate
from cuggino.errors import GuardNotLive
from cuggino.testing import AgentConformance, FailureConformance, GuardConformance
from cuggino.testing.conformance.rules import Sleeper
from tests.agents.arenas import RealSuite
from tests.file_server import MCP_SERVER
from tests.limits import LIMIT
from tests.model_script import Text, Tool
from tests.real_copilot import Copilot, bash, create, hooks
from tests.real_program import SPEC, write_file

PATCH = """*** Begin Patch
*** Add File: {name}
+new
*** Update File: .specs/task.md
@@
-There is a file.
+There is no file.
*** End Patch
"""


class TestAgent(RealSuite, AgentConformance):
    kind = Copilot


class TestFailures(RealSuite, FailureConformance):
    kind = Copilot


class TestGuard(RealSuite, GuardConformance):
    kind = Copilot


def test_requests(copilot: Copilot) -> None:
    """The system prompt is added to the program's own, and the key is the configured one."""
    done = copilot.run(system_prompt="You are the one.")
    assert "GitHub Copilot" in done.requests[0].system_text
    assert "Bearer dummy-not-a-key" == done.requests[0].headers["authorization"]


def test_sub_agent(copilot: Copilot) -> None:
    """The text, calls and tokens of a sub-agent carry the id of its call."""
    done = copilot.run(Copilot.delegate, helper=[[Text("On it."), bash("echo sub > sub.txt")]])
    assert done.error is None
    task, call = done.of(ev.ToolCall)
    assert isinstance(task.input, dict)
    assert ("Task", "help a bit", "general-purpose") == (
        task.name,
        task.input["description"],
        task.input["subagent_type"],
    )
    texts = {message.text: message.parent_tool_use_id for message in done.of(ev.AgentMessage)}
    assert {"On it.": task.id, "helped": task.id, "<DONE>done</DONE>": None} == texts
    messages = [message.text for message in done.of(ev.SystemMessage)]
    assert "Sub-agent helper started: help a bit" in messages
    assert "Sub-agent helper completed" in messages
    assert [call.id, task.id] == [result.name for result in done.of(ev.ToolResult)]
    assert ev.Usage(input_tokens=4000, output_tokens=400) == done.ended.usage


def test_server_that_does_not_start(copilot: Copilot, tmp_path: Path) -> None:
    """A server that cannot be started is reported, and the others work."""
    program = tmp_path / "server.py"
    program.write_text(MCP_SERVER)
    servers = {
        "files": {"command": sys.executable, "args": [str(program)]},
        "broken": {"command": str(tmp_path / "nothing"), "args": []},
    }
    put = Tool("files-put", {"path": copilot.path("put.txt")})
    done = copilot.run(put, mcp_servers=servers)
    assert (None, "put") == (done.error, copilot.read("put.txt"))
    assert ["broken"] == [event.server for event in done.of(ev.McpServerFailed)]


def test_guarded_patch(copilot: Copilot) -> None:
    """A patch is denied as a whole when one of its files is protected."""
    done = copilot.run(
        Tool("apply_patch", {"input": PATCH.format(name="new.txt")}),
        model="gpt-5.4",
        guard=copilot.policy(),
    )
    assert done.error is None
    assert (None, SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))
    assert ["MultiEdit"] == [event.tool for event in done.of(ev.GuardDenied)]


def test_guarded_tools_without_questions(copilot: Copilot) -> None:
    """Tools with a single request are judged, and unknown ones are denied."""
    done = copilot.run(
        [
            Tool("sql", {"description": "d", "query": "SELECT 1"}),
            Tool("list_agents", {}),
            Tool("glob", {"pattern": "*.py"}),
            Tool("grep", {"pattern": "old", "output_mode": "content"}),
            Tool("write_bash", {"shellId": "1", "input": "rm -rf ."}),
        ],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert ["write_bash"] == [event.tool for event in done.of(ev.GuardDenied)]
    results = {result.name: result.is_error for result in done.of(ev.ToolResult)}
    assert [False, False, False, False, True] == [results[f"call_1_{n}"] for n in range(5)]


def test_guard_ignores_switches_of_the_program(copilot: Copilot) -> None:
    """Variables of the program that allow everything or choose a shell are ignored."""
    env = {"COPILOT_ALLOW_ALL": "true", "COPILOT_BASH_PATH": "/bin/sh"}
    done = copilot.run(
        [bash("echo ${BASH_VERSION:+bash} > new.txt"), bash("echo no > .specs/task.md")],
        guard=copilot.policy(),
        env=env,
    )
    assert done.error is None
    assert ("bash\n", SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))


def test_guard_and_a_hook_that_approves(copilot: Copilot) -> None:
    """A hook of the user that approves every permission does not override a denial."""
    text = hooks("permissionRequest", {"behavior": "allow"})
    write_file(copilot.home / ".copilot" / "hooks" / "h.json", text)
    done = copilot.run(
        [bash("echo yes > new.txt"), bash("echo no > .specs/task.md")], guard=copilot.policy()
    )
    assert done.error is None
    assert ("yes\n", SPEC) == (copilot.read("new.txt"), copilot.read(".specs/task.md"))
    assert ["call_1_1"] == [event.tool_use_id for event in done.of(ev.GuardDenied)]


def test_guarded_background_command(copilot: Copilot) -> None:
    """A background command is judged and terminated with the session."""
    sleeper = Sleeper()
    order = {"description": "d", "mode": "async", "detach": True}
    commands = ("echo no > .specs/task.md", sleeper.command)
    with sleeper.gone(LIMIT):
        done = copilot.run(
            [Tool("bash", {"command": command, **order}) for command in commands],
            guard=copilot.policy(),
        )
    assert done.error is None
    assert SPEC == copilot.read(".specs/task.md")
    assert ["> .specs/task.md"] == [event.part for event in done.of(ev.GuardDenied)]


@pytest.mark.parametrize("second", ["raises", "denies"])
def test_first_question_is_lost(
    copilot: Copilot, monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    """Without a response to the first request, the second one prevents the call."""

    async def lost(*_given: Any) -> None:
        raise OSError("lost")

    monkeypatch.setattr(Gate, "before_tool", lost)
    if second == "raises":
        monkeypatch.setattr(Gate, "permission", lost)
    done = copilot.run(
        [bash("echo no > .specs/task.md"), create(copilot.path(".cuggino/lock"), "no")],
        guard=copilot.policy(),
    )
    assert done.error is None
    assert (SPEC, None) == (copilot.read(".specs/task.md"), copilot.read(".cuggino/lock"))
    assert [True, True] == [result.is_error for result in done.of(ev.ToolResult)]


def test_tool_without_a_verdict(copilot: Copilot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool used without a verdict ends the session."""

    async def silent(*_given: Any) -> None:
        return None

    monkeypatch.setattr(Gate, "before_tool", silent)
    done = copilot.run(
        Tool("sql", {"description": "d", "query": "SELECT 1"}),
        bash("echo more > more.txt"),
        guard=copilot.policy(),
    )
    assert isinstance(done.error, GuardNotLive)
    assert "sql was used without its verdict" in done.error.message
    assert "failed" == done.ended.outcome
