"""The scripted agent and the real server of the deliverable tools."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario, load_scenario
from cuggino.domain.deliverable_tools import SERVER_NAME, agent_tool
from cuggino.errors import AgentFailed
from cuggino.events import Event, SessionEnded, ToolCall, ToolResult
from cuggino.security.policy import Policy
from cuggino.security.roles import role_policy
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.agents.mcp_server import arguments, create, status_of


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends without a process, thread or file of its own."""
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield


def deliverables(project: Path, *, name: str = SERVER_NAME) -> dict[str, object]:
    """The real server of the project, as it is given to an agent."""
    words = ["-P", *arguments(project, tools="create_deliverable,set_deliverable_status,list")]
    return {name: {"command": sys.executable, "args": words, "alwaysLoad": True}}


def session(
    folder: Path,
    *steps: dict[str, Any],
    servers: Mapping[str, object],
    policy: Policy | None = None,
    env: Mapping[str, str] | None = None,
) -> Any:
    """A session of the coding agent with these steps."""
    scenario = Scenario.model_validate({"coding": [{"steps": steps}]})
    options = SpawnOptions(
        prompt="Go.",
        cwd=folder,
        role="coding",
        guard=policy,
        mcp_servers=servers,
        env={} if env is None else env,
    )
    return ScriptedAgent(scenario).spawn(options)


def play(folder: Path, *steps: dict[str, Any], **given: Any) -> list[Event]:
    """The events of such a session, without signs of life."""
    events: list[Event] = []
    cuggino.run(session(folder, *steps, **given), events.append)
    return [event for event in events if event.tag != "PingEvent"]


def results(events: list[Event]) -> list[ToolResult]:
    return [event for event in events if isinstance(event, ToolResult)]


def status(id: str, status: str) -> dict[str, Any]:
    return {
        "tool": "set_deliverable_status",
        "input": {"deliverableId": id, "status": status},
    }


def test_tools_are_used_for_real(tmp_path: Path) -> None:
    """Each step is told as a call and its answer, in order, and the status file is written."""
    steps: list[dict[str, Any]] = [
        {"tool": "create_deliverable", "input": create("A", "B")},
        status("A", "passed"),
        {"say": "<DONE>A</DONE>"},
    ]
    events = play(tmp_path, *steps, servers=deliverables(tmp_path))
    tags = ["SystemMessage", *["ToolCall", "ToolResult"] * 2, "AgentMessage", "SessionEnded"]
    assert tags == [event.tag for event in events]
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert [agent_tool("create_deliverable"), agent_tool("set_deliverable_status")] == [
        call.name for call in calls
    ]
    assert [create("A", "B"), status("A", "passed")["input"]] == [call.input for call in calls]
    told = results(events)
    assert [call.id for call in calls] == [result.name for result in told]
    assert not any(result.is_error for result in told)
    assert {"success": True, "message": "Created 2 deliverable(s) successfully"} == json.loads(
        told[0].output
    )
    assert {"A": "passed", "B": "pending"} == status_of(tmp_path)


def test_a_refusal_is_an_answer(tmp_path: Path) -> None:
    """What the tool refuses is told by the tool, is no error, and changes nothing."""
    events = play(tmp_path, status("NONE", "passed"), servers=deliverables(tmp_path))
    (told,) = results(events)
    assert not told.is_error
    answer = json.loads(told.output)
    assert (False, "NOT_FOUND") == (answer["success"], answer["error"])
    assert {} == status_of(tmp_path)


def test_variables_are_put_in(tmp_path: Path) -> None:
    """Every text of the input has the run's variables, at any depth."""
    given = create("$CUGGINO_ROLE-1")
    given["deliverables"][0]["acceptanceCriteria"] = ["see $CUGGINO_ROLE", "$HOME stays"]
    events = play(
        tmp_path,
        {"tool": "create_deliverable", "input": given},
        {"tool": f"{SERVER_NAME}/list"},
        servers=deliverables(tmp_path),
        env={"CUGGINO_ROLE": "coding"},
    )
    (item,) = json.loads(results(events)[1].output)["deliverables"]
    assert "coding-1" == item["id"]
    assert ["see coding", "$HOME stays"] == item["acceptanceCriteria"]


def test_the_documented_scenario(tmp_path: Path) -> None:
    """A scenario file may call tools; a session that is gone on with repeats no call."""
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


def test_a_guarded_session(tmp_path: Path) -> None:
    """The guard lets the loop's own tools pass, also where little else may be done."""
    policy = role_policy("verify", project=tmp_path, level="full")
    steps: list[dict[str, Any]] = [
        {"tool": "create_deliverable", "input": create("A")},
        {"write": "a.txt", "text": "a"},
    ]
    events = play(tmp_path, *steps, servers=deliverables(tmp_path), policy=policy)
    assert [False, True] == [result.is_error for result in results(events)]
    assert {"A": "pending"} == status_of(tmp_path)


def test_a_session_that_exits(tmp_path: Path) -> None:
    """Its server ends with a session that ends without a result."""
    events: list[Event] = []
    steps: list[dict[str, Any]] = [{"tool": "list"}, {"exit": 3, "text": "crashed"}]
    with pytest.raises(AgentFailed, match="crashed"):
        cuggino.run(session(tmp_path, *steps, servers=deliverables(tmp_path)), events.append)
    assert [False] == [result.is_error for result in results(events)]


def test_a_session_that_is_disposed_of(tmp_path: Path) -> None:
    """When the session is ended in its midst, its server is gone as well."""
    answered = threading.Event()

    def note(event: Event) -> None:
        if isinstance(event, ToolResult):
            answered.set()

    steps: list[dict[str, Any]] = [{"tool": "list"}, {"sleep": 600.0}]
    subscription = session(tmp_path, *steps, servers=deliverables(tmp_path)).subscribe(note)
    assert answered.wait(60)
    assert 2 == len(running())
    subscription.dispose()
    assert [] == running()


def test_a_session_that_is_killed(tmp_path: Path) -> None:
    """When the program is killed, the session fails and its server is gone as well."""
    events: list[Event] = []

    def note(event: Event) -> None:
        events.append(event)
        if isinstance(event, ToolResult):
            (program,) = filter(is_program, running())
            program.kill()

    steps: list[dict[str, Any]] = [{"tool": "list"}, {"sleep": 600.0}]
    with pytest.raises(AgentFailed):
        cuggino.run(session(tmp_path, *steps, servers=deliverables(tmp_path)), note)
    assert isinstance(events[-1], SessionEnded)
    assert [] == running()


def running() -> list[psutil.Process]:
    """The programs and servers of sessions that live below this process."""
    below = psutil.Process().children(recursive=True)
    return [process for process in below if is_program(process) or "mcp" in process.cmdline()]


def is_program(process: psutil.Process) -> bool:
    return process.cmdline()[-1].endswith("scripted/process.py")
