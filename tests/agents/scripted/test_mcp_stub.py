"""The scripted agent with many or unusual servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.events import GuardDenied, ToolCall
from cuggino.guard.roles import role_policy
from tests.agents.scripted.stub import play, results, started, stub

pytestmark = pytest.mark.usefixtures("nothing_is_left")


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
