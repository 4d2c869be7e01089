"""A small MCP server, and sessions of the scripted agent that use its tools."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario
from cuggino.events import Event, ToolResult
from cuggino.guard.policy import Policy

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


def stub(*tools: str, name: str = "stub", **fields: Any) -> dict[str, object]:
    """Return the settings of a server that has these tools."""
    return {"command": sys.executable, "args": ["-c", STUB, name, *tools], **fields}


def started(folder: Path) -> list[str]:
    file = folder / "started"
    return file.read_text().split() if file.exists() else []


def session(
    folder: Path,
    *steps: dict[str, Any],
    servers: Mapping[str, object],
    policy: Policy | None = None,
    env: Mapping[str, str] | None = None,
) -> Any:
    """Return a session of the coding agent with these steps."""
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
    """Return the events of such a session without keepalives."""
    events: list[Event] = []
    cuggino.run(session(folder, *steps, **given), events.append)
    return [event for event in events if event.tag != "PingEvent"]


def results(events: list[Event]) -> list[ToolResult]:
    return [event for event in events if isinstance(event, ToolResult)]
