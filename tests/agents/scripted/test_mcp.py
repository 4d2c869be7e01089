"""The scripted agent and the real server of the deliverable tools."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import load_scenario
from cuggino.domain.deliverable_tools import TOOL_SERVER, agent_tool
from cuggino.errors import AgentFailed
from cuggino.events import Event, SessionEnded, ToolCall, ToolResult
from cuggino.guard.roles import role_policy
from tests.agents.scripted.stub import STUB, play, results, session, stub
from tests.limits import LIMIT
from tests.mcp_server import arguments, create, status_of
from tests.processes.subscribers import words_of

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def deliverables(project: Path, *, name: str = TOOL_SERVER) -> dict[str, object]:
    """Return the settings of the project's real server."""
    words = ["-P", *arguments(project, tools="create_deliverable,set_deliverable_status,list")]
    return {name: {"command": sys.executable, "args": words, "alwaysLoad": True}}


def status(id: str, status: str) -> dict[str, Any]:
    return {
        "tool": "set_deliverable_status",
        "input": {"deliverableId": id, "status": status},
    }


@pytest.mark.real_agent
def test_tools_are_really_used(tmp_path: Path) -> None:
    """Each step emits a call and its result, in order; a refusal is a result, not an error."""
    steps: list[dict[str, Any]] = [
        {"tool": "create_deliverable", "input": create("A", "B")},
        status("A", "passed"),
        status("NONE", "passed"),
        {"say": "<DONE>A</DONE>"},
    ]
    events = play(tmp_path, *steps, servers=deliverables(tmp_path))
    tags = ["SystemMessage", *["ToolCall", "ToolResult"] * 3, "AgentMessage", "SessionEnded"]
    assert tags == [event.tag for event in events]
    calls = [event for event in events if isinstance(event, ToolCall)]
    change = agent_tool("set_deliverable_status")
    assert [agent_tool("create_deliverable"), change, change] == [call.name for call in calls]
    inputs = [create("A", "B"), status("A", "passed")["input"], status("NONE", "passed")["input"]]
    assert inputs == [call.input for call in calls]
    told = results(events)
    assert [call.id for call in calls] == [result.name for result in told]
    assert not any(result.is_error for result in told)
    assert {"success": True, "message": "Created 2 deliverable(s) successfully"} == json.loads(
        told[0].output
    )
    refused = json.loads(told[2].output)
    assert (False, "NOT_FOUND") == (refused["success"], refused["error"])
    assert {"A": "passed", "B": "pending"} == status_of(tmp_path)


@pytest.mark.real_agent
def test_the_documented_scenario(tmp_path: Path) -> None:
    """A scenario file may call tools; a resumed session repeats no call."""
    file = tmp_path / "scenario.toml"
    file.write_text(
        """
        [[initializer]]
        [[initializer.steps]]
        tool = "create_deliverable"
        input.deliverables = [
            { id = "DL-001", description = "A page", acceptanceCriteria = ["It opens"] },
        ]
        [[initializer.steps]]
        fail = { status = 529, error = "overloaded_error" }
        [[initializer.steps]]
        tool = "autonoe-deliverable/set_deliverable_status"
        input = { deliverableId = "DL-001", status = "passed" }
        """,
        encoding="utf-8",
    )
    agent = ScriptedAgent(load_scenario(file))
    given: dict[str, Any] = {
        "prompt": "Go.",
        "cwd": tmp_path,
        "role": "initializer",
        "mcp_servers": deliverables(tmp_path),
    }
    with pytest.raises(AgentFailed):
        cuggino.run(agent.spawn(SpawnOptions(session_id="s", **given)))
    assert {"DL-001": "pending"} == status_of(tmp_path)
    events: list[Event] = []
    cuggino.run(agent.spawn(SpawnOptions(resume_session_id="s", **given)), events.append)
    assert [False] == [result.is_error for result in results(events)]
    assert {"DL-001": "passed"} == status_of(tmp_path)


@pytest.mark.real_agent
def test_a_guarded_session(tmp_path: Path) -> None:
    """The guard allows the loop's own tools even in a restricted session."""
    policy = role_policy("verify", project=tmp_path, level="full")
    steps: list[dict[str, Any]] = [
        {"tool": "create_deliverable", "input": create("A")},
        {"write": "a.txt", "text": "a"},
    ]
    events = play(tmp_path, *steps, servers=deliverables(tmp_path), policy=policy)
    assert [False, True] == [result.is_error for result in results(events)]
    assert {"A": "pending"} == status_of(tmp_path)


def test_a_session_that_exits(tmp_path: Path) -> None:
    """The server is terminated with a session that exits without a result."""
    events: list[Event] = []
    steps: list[dict[str, Any]] = [{"tool": "list"}, {"exit": 3, "text": "crashed"}]
    with pytest.raises(AgentFailed, match="crashed"):
        cuggino.run(session(tmp_path, *steps, servers={"s": stub("list")}), events.append)
    assert [False] == [result.is_error for result in results(events)]


def test_a_session_that_is_disposed_of(tmp_path: Path) -> None:
    """The server is terminated with a disposed session."""
    answered = threading.Event()

    def note(event: Event) -> None:
        if isinstance(event, ToolResult):
            answered.set()

    steps: list[dict[str, Any]] = [{"tool": "list"}, {"sleep": 600.0}]
    subscription = session(tmp_path, *steps, servers={"s": stub("list")}).subscribe(note)
    assert answered.wait(LIMIT)
    assert 2 == len(running())
    subscription.dispose()
    assert [] == running()


def test_a_session_that_is_killed(tmp_path: Path) -> None:
    """If the program is killed, the session fails and its server is terminated."""
    events: list[Event] = []

    def note(event: Event) -> None:
        events.append(event)
        if isinstance(event, ToolResult):
            (program,) = filter(is_program, running())
            program.kill()

    steps: list[dict[str, Any]] = [{"tool": "list"}, {"sleep": 600.0}]
    with pytest.raises(AgentFailed):
        cuggino.run(session(tmp_path, *steps, servers={"s": stub("list")}), note)
    assert isinstance(events[-1], SessionEnded)
    assert [] == running()


def running() -> list[psutil.Process]:
    """Return the programs and servers of sessions among the children of this process."""
    below = psutil.Process().children(recursive=True)
    return [process for process in below if is_program(process) or STUB in words_of(process)]


def is_program(process: psutil.Process) -> bool:
    return any(word.endswith("scripted/process.py") for word in words_of(process)[-1:])
