"""The scripted agent with broken servers, and with unknown tools."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

import cuggino
from cuggino.errors import AgentFailed
from cuggino.events import Event, ToolCall, ToolResult
from cuggino.guard.roles import role_policy
from tests.agents.scripted.stub import STUB, play, results, session, started, stub
from tests.agents.scripted.test_mcp import is_program
from tests.agents.scripted.test_mcp_stub import END, WRITE
from tests.git_project import is_alive

pytestmark = pytest.mark.usefixtures("nothing_is_left")


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
