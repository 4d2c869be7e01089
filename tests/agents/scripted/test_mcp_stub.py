"""The scripted agent and servers that are many, or odd."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino.events import GuardDenied, ToolCall
from cuggino.security.roles import role_policy
from cuggino.sources import process_lines
from cuggino.testing import no_leaks
from tests.agents.scripted.test_mcp import play, results

STUB = r"""
import json, os, sys

def tell(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)

def text(*texts, **fields):
    return {"content": [{"type": "text", "text": text} for text in texts], **fields}

name, *tools = sys.argv[1:]
with open("started", "a") as file:
    print(name, file=file)
print("a banner is no message", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    with open("heard", "a") as file:
        file.write(line)
    if "method" not in asked or "id" not in asked:
        continue
    number, params = asked["id"], asked["params"]
    if asked["method"] == "initialize":
        tell(id="mine", method="ping")
        tell(id="other", method="roots/list")
        tell(method="notifications/message", params={})
        tell(id=number, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})
    elif asked["method"] == "tools/list":
        at = int(params.get("cursor", 0))
        page = {"tools": [{"name": tool} for tool in tools[at:at + 1]]}
        tell(id=number, result=page | ({"nextCursor": str(at + 1)} if tools[at + 1:] else {}))
    else:
        given = params["arguments"]
        match params["name"]:
            case "write":
                with open(given["path"], "w") as file:
                    file.write(given["text"])
                tell(id=number, result=text(given["path"], name))
            case "fail":
                tell(id=number, result=text("it is broken", isError=True))
            case "refuse":
                tell(id=number, error={"code": -32602, "message": "no such thing"})
            case "list":
                tell(id=number, result={"content": [5]} | given)
            case "nothing":
                tell(id=number, result=5)
            case "structured":
                tell(id=number, result={"content": [], "structuredContent": {"n": 1}})
            case "long":
                sys.stderr.write("x" * 300_000)
                tell(id=number, result=text("y" * 300_000 + str(len(given["text"]))))
            case "env":
                tell(id=number, result=text(os.environ["STUB"], os.getcwd()))
            case "hang":
                pass
            case "die":
                sys.exit("the stub dies")
"""


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every test ends without a process, thread or file of its own."""
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks():
        yield


def stub(*tools: str, name: str = "stub", **fields: Any) -> dict[str, object]:
    """The settings of a server that has these tools."""
    return {"command": sys.executable, "args": ["-c", STUB, name, *tools], **fields}


def started(folder: Path) -> list[str]:
    file = folder / "started"
    return file.read_text().split() if file.exists() else []


WRITE = {"tool": "write", "input": {"path": "a.txt", "text": "a"}}
END = {"say": "done"}


def test_only_what_is_needed_is_started(tmp_path: Path) -> None:
    """Servers are tried in order, those that are always loaded first, until one has the tool."""
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
    """In the name that is told all but letters, digits, `_` and `-` become `_`."""
    events = play(tmp_path, {"tool": "my server.1-x/fail"}, servers={"my server.1-x": stub("fail")})
    assert ["mcp__my_server_1-x__fail"] == [e.name for e in events if isinstance(e, ToolCall)]


def test_what_is_said_to_a_server(tmp_path: Path) -> None:
    """It hears the handshake, each page of its tools being asked for, answers, and the call."""
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
    """Whatever the answer is, it is told, and the server can be asked again."""
    events = play(tmp_path, {"tool": tool}, WRITE, END, servers={"s": stub(tool, "write")})
    first, second = results(events)
    assert (output, is_error) == (first.output, first.is_error)
    assert "a" == (tmp_path / "a.txt").read_text()
    assert not second.is_error
    assert ["stub"] == started(tmp_path)


def test_much_is_said(tmp_path: Path) -> None:
    """Neither long inputs nor long answers nor long complaints can block either side."""
    step = {"tool": "long", "input": {"text": "z" * 300_000}}
    told = results(play(tmp_path, step, step, servers={"s": stub("long")}))
    assert ["y" * 300_000 + "300000"] * 2 == [result.output for result in told]


def test_where_a_server_runs(tmp_path: Path) -> None:
    """It has the environment of the session and its own, and starts in the session's folder."""
    servers = {"s": stub("env", env={"STUB": "mine"})}
    (told,) = results(play(tmp_path, {"tool": "env"}, servers=servers, env={"STUB": "session"}))
    assert ["mine", str(tmp_path.resolve())] == told.output.split("\n")


def test_the_guard_is_asked(tmp_path: Path) -> None:
    """A call that the policy denies never reaches the server, and one that it allows does."""
    policy = role_policy("deliver", project=tmp_path, level="full")
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
