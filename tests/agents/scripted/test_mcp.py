"""The scripted agent and MCP servers: the deliverable tools, unusual and broken ones."""

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
from cuggino.events import Event, GuardDenied, ToolCall, ToolResult
from cuggino.guard.roles import role_policy
from tests.agents.scripted.stub import STUB, play, results, session, started, stub
from tests.git_project import is_alive
from tests.limits import LIMIT
from tests.mcp_server import arguments, create, status_of
from tests.processes.subscribers import words_of

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def deliverables(project: Path, *, name: str = TOOL_SERVER) -> dict[str, object]:
    """Return the settings of the project's real server."""
    words = ["-P", *arguments(project, tools="create_deliverable,set_deliverable_status,list")]
    return {name: {"command": sys.executable, "args": words, "alwaysLoad": True}}


def status(id: str, status: str) -> dict[str, Any]:
    return {"tool": "set_deliverable_status", "input": {"deliverableId": id, "status": status}}


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


def running() -> list[psutil.Process]:
    """Return the programs and servers of sessions among the children of this process."""
    below = psutil.Process().children(recursive=True)
    return [process for process in below if is_program(process) or STUB in words_of(process)]


def is_program(process: psutil.Process) -> bool:
    return any(word.endswith("scripted/process.py") for word in words_of(process)[-1:])


WRITE = {"tool": "write", "input": {"path": "a.txt", "text": "a"}}
END = {"say": "done"}


def test_servers_start_on_demand(tmp_path: Path) -> None:
    """Servers are tried in order, always-loaded ones first, until one has the tool."""
    servers = {
        "first": stub("other", name="first"),
        "never": stub("write", name="never"),
        "named": stub("write", name="named"),
        "loaded": stub("fail", name="loaded", alwaysLoad=True),
    }
    steps: list[dict[str, Any]] = [
        {"tool": "fail"},
        {"tool": "fail"},
        {"tool": "named/write", "input": WRITE["input"]},
    ]
    events = play(tmp_path, *steps, servers=servers)
    assert ["loaded", "named"] == started(tmp_path)
    assert ["a.txt\nnamed"] == [result.output for result in results(events)[2:]]
    events = play(tmp_path, WRITE, servers=servers)
    assert ["loaded", "first", "never"] == started(tmp_path)[2:]
    assert ["mcp__never__write"] == [e.name for e in events if isinstance(e, ToolCall)]


def test_without_a_tool_step(tmp_path: Path) -> None:
    """A session that uses no tool of a server starts none."""
    play(tmp_path, END, servers={"stub": stub(alwaysLoad=True)})
    assert [] == started(tmp_path)


def test_odd_names(tmp_path: Path) -> None:
    """All characters of a name except letters, digits, `_` and `-` become `_`."""
    events = play(tmp_path, {"tool": "my server.1-x/fail"}, servers={"my server.1-x": stub("fail")})
    assert ["mcp__my_server_1-x__fail"] == [e.name for e in events if isinstance(e, ToolCall)]


def test_requests_to_a_server(tmp_path: Path) -> None:
    """The server receives the handshake, a request per page of tools, responses, and the call."""
    play(tmp_path, WRITE, servers={"stub": stub("a", "write")})
    heard = [json.loads(line) for line in (tmp_path / "heard").read_text().splitlines()]
    assert "2025-06-18" == heard[0]["params"]["protocolVersion"]
    assert {"id": "mine", "jsonrpc": "2.0", "result": {}} in heard
    (refused,) = (each for each in heard if each.get("id") == "other")
    assert -32601 == refused["error"]["code"]
    asked = [(each["method"], each.get("params")) for each in heard if "method" in each]
    assert [
        ("notifications/initialized", None),
        ("tools/list", {}),
        ("tools/list", {"cursor": "1"}),
        ("tools/call", {"name": "write", "arguments": WRITE["input"]}),
    ] == asked[1:]


@pytest.mark.parametrize(
    ("tool", "output", "is_error"),
    [
        ("fail", "it is broken", True),
        ("refuse", 'MCP server "s" gave no answer: it refused tools/call: no such thing', True),
        ("nothing", 'MCP server "s" gave no answer: it answered tools/call with 5', True),
        ("list", "5", False),
        ("structured", '{"n": 1}', False),
    ],
)
def test_answers(tool: str, output: str, is_error: bool, tmp_path: Path) -> None:
    """Any kind of result is emitted, and the server stays usable."""
    events = play(tmp_path, {"tool": tool}, WRITE, END, servers={"s": stub(tool, "write")})
    first, second = results(events)
    assert (output, is_error) == (first.output, first.is_error)
    assert "a" == (tmp_path / "a.txt").read_text()
    assert not second.is_error
    assert ["stub"] == started(tmp_path)


def test_large_messages(tmp_path: Path) -> None:
    """Neither long inputs, long results nor long error output block either side."""
    step = {"tool": "long", "input": {"text": "z" * 300_000}}
    told = results(play(tmp_path, step, step, servers={"s": stub("long")}))
    assert ["y" * 300_000 + "300000"] * 2 == [result.output for result in told]


def test_environment_of_a_server(tmp_path: Path) -> None:
    """A server runs in the session's folder with the session's environment and its own."""
    servers = {"s": stub("env", env={"STUB": "mine"})}
    (told,) = results(play(tmp_path, {"tool": "env"}, servers=servers, env={"STUB": "session"}))
    assert ["mine", str(tmp_path.resolve())] == told.output.split("\n")


def test_guarded_calls(tmp_path: Path) -> None:
    """A denied call never reaches the server, an allowed one does."""
    policy = role_policy("deliver", project=tmp_path, level="full", rules=["mcp__files"])
    denied = {"tool": "write", "input": {"path": ".autonoe/status.json", "text": "{}"}}
    events = play(tmp_path, denied, WRITE, END, servers={"files": stub("write")}, policy=policy)
    (refusal,) = (event for event in events if isinstance(event, GuardDenied))
    assert ("mcp__files__write", "tool_0") == (refusal.tool, refusal.tool_use_id)
    first, second = results(events)
    assert (True, False) == (first.is_error, second.is_error)
    assert first.output == f"PreToolUse:mcp__files__write hook error: {refusal.reason}"
    heard = (tmp_path / "heard").read_text()
    assert ".autonoe" not in heard
    assert (1, False) == (heard.count("tools/call"), (tmp_path / ".autonoe").exists())
    assert "a" == (tmp_path / "a.txt").read_text()


def test_variables_are_expanded(tmp_path: Path) -> None:
    """Variables are expanded in every text of the input, at any depth."""
    given = {"content": [{"type": "text", "text": "see $CUGGINO_ROLE, $HOME stays"}]}
    servers = {"s": stub("list")}
    env = {"CUGGINO_ROLE": "coding"}
    (told,) = results(play(tmp_path, {"tool": "list", "input": given}, servers=servers, env=env))
    assert "see coding, $HOME stays" == told.output


def program(code: str) -> dict[str, object]:
    """Return the settings of a server that runs this code."""
    return {"command": sys.executable, "args": ["-c", code]}


def answers(*lines: str) -> dict[str, object]:
    """Return the settings of a server that sends these responses to any request."""
    return program(f"print(*{lines!r}, sep='\\n', flush=True)\ninput(); input(); input()")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"command": "/nonexistent/server"}, "/nonexistent/server cannot be started: "),
        ({"type": "http", "url": "http://127.0.0.1:9/"}, "its settings name no program to start"),
        (5, "its settings name no program to start"),
        (program("import nothing_here"), "exit code 1: ModuleNotFoundError: No module named"),
        (program("print('hello')"), "it ended with exit code 0: hello"),
        (program("import os; os.kill(os.getpid(), 9)"), "it ended by signal 9"),
        (
            program("import sys\nprint('hello', flush=True)\nsys.stdin.read()"),
            "it did not answer initialize within 1 s: hello",
        ),
        (answers('{"id": 1, "result": []}'), "it answered initialize with []"),
        (answers('{"id": 1, "error": {"message": "old"}}'), "it refused initialize: old"),
        (
            answers('{"id": 1, "result": {}}', '{"id": 2, "result": {}}'),
            "it answered tools/list with {}",
        ),
    ],
)
def test_a_broken_server(settings: object, why: str, tmp_path: Path) -> None:
    """The result names the problem, other servers work, and the session continues."""
    servers = {"broken": settings, "stub": stub("write")}
    events = play(
        tmp_path, {"tool": "broken/write"}, WRITE, END, servers=servers, env={"MCP_TIMEOUT": "1000"}
    )
    first, second = results(events)
    assert first.is_error
    assert first.output.startswith('There is no tool "write": MCP server "broken" cannot be used: ')
    assert why in first.output
    assert (False, "a.txt\nstub") == (second.is_error, second.output)
    assert ["AgentMessage", "SessionEnded"] == [event.tag for event in events[-2:]]


@pytest.mark.parametrize(
    ("wanted", "name", "why"),
    [
        ("none", "none", 'There is no tool "none": MCP server "stub" has fail, write'),
        ("stub/none", "mcp__stub__none", 'There is no tool "none": MCP server "stub" has'),
        ("other/write", "mcp__other__write", 'There is no MCP server "other"; there are: stub'),
    ],
)
def test_an_unknown_tool(wanted: str, name: str, why: str, tmp_path: Path) -> None:
    """The call is emitted, its result lists the known tools, and the guard is not called."""
    policy = role_policy("deliver", project=tmp_path, level="full")
    servers = {"stub": stub("fail", "write")}
    events = play(tmp_path, {"tool": wanted}, END, servers=servers, policy=policy)
    tags = ["SystemMessage", "ToolCall", "ToolResult", "AgentMessage", "SessionEnded"]
    assert tags == [event.tag for event in events]
    assert [name] == [event.name for event in events if isinstance(event, ToolCall)]
    (told,) = results(events)
    assert told.is_error
    assert told.output.startswith(why)


def test_without_servers(tmp_path: Path) -> None:
    """A tool call in a session without servers is an error."""
    (told,) = results(play(tmp_path, WRITE, servers={}))
    assert told.is_error
    assert 'There is no tool "write": the session has no MCP servers' == told.output


def test_a_silent_server(tmp_path: Path) -> None:
    """A call without a timely response is an error, and the server stays usable."""
    servers = {"s": stub("hang", "write")}
    env = {"MCP_TOOL_TIMEOUT": "300"}
    first, second = results(play(tmp_path, {"tool": "hang"}, WRITE, servers=servers, env=env))
    assert (
        'MCP server "s" gave no answer: it did not answer tools/call within 0.3 s' in first.output
    )
    assert [True, False] == [first.is_error, second.is_error]


def test_a_server_that_dies(tmp_path: Path) -> None:
    """The call and later ones are errors, and the server is not restarted."""
    events = play(tmp_path, {"tool": "die"}, WRITE, END, servers={"s": stub("die", "write")})
    first, second = results(events)
    how = "it ended with exit code 1: the stub dies"
    assert f'MCP server "s" gave no answer: {how}' == first.output
    assert f'There is no tool "write": MCP server "s" cannot be used: {how}' == second.output
    assert [True, True] == [first.is_error, second.is_error]
    assert ["stub"] == started(tmp_path)


def stubborn() -> dict[str, object]:
    """Return the settings of a server that ignores the end of its input and SIGTERM."""
    deaf = (
        "import signal, time\nfor sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):\n"
        f"    signal.signal(sign, signal.SIG_IGN)\n{STUB}\ntime.sleep(600)"
    )
    return {"command": sys.executable, "args": ["-c", deaf, "stub", "write"]}


def test_a_server_that_does_not_end(tmp_path: Path) -> None:
    """A server that outlives the session is killed, and the session succeeds."""
    events = play(tmp_path, WRITE, END, servers={"s": stubborn()})
    assert [False] == [result.is_error for result in results(events)]
    assert "SessionEnded" == events[-1].tag


def test_a_server_that_outlives_the_program(tmp_path: Path) -> None:
    """A server that outlives the session's killed program is killed too."""
    left: list[psutil.Process] = []

    def note(event: Event) -> None:
        if isinstance(event, ToolResult):
            (program,) = filter(is_program, psutil.Process().children(recursive=True))
            left.extend(program.children())
            program.kill()

    with pytest.raises(AgentFailed):
        cuggino.run(session(tmp_path, WRITE, {"sleep": 600.0}, servers={"s": stubborn()}), note)
    (server,) = left
    assert not is_alive(server.pid)
