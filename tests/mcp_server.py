"""Real servers of the deliverable tools, and requests of a client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from cuggino.mcp_server import Call, make_server
from cuggino.storage.deliverables import DeliverableStore
from cuggino_cli.main import main

NOW = datetime(2026, 3, 4, tzinfo=UTC)
ALL_TOOLS = "create_deliverable,set_deliverable_status,list,verify,deprecate"
SERVER_INFO = {"name": "autonoe-deliverable", "version": "1.0.0"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def arguments(project: Path, *more: str, tools: str = ALL_TOOLS) -> list[str]:
    """Return Python's arguments that start the server of a project."""
    server = ["-m", "cuggino_cli", "mcp", "deliverables", "--project", str(project)]
    return [*server, "--tools", tools, *more]


@asynccontextmanager
async def client(project: Path, *more: str, tools: str = ALL_TOOLS) -> AsyncIterator[Client]:
    """Connect the library's own client to a server of the project."""
    server = StdioServerParameters(
        command=sys.executable, args=arguments(project, *more, tools=tools)
    )
    async with Client(stdio_client(server), mode="legacy") as connected:
        yield connected


@asynccontextmanager
async def client_within(project: Path, *more: str, tools: str = ALL_TOOLS) -> AsyncIterator[Client]:
    """Connect the library's own client to the same server in this process, without pipes."""
    made: list[Any] = []

    def serve(call: Call, *, tools: Iterable[str]) -> None:
        made.append(make_server(call, tools=tools))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cuggino_cli.commands.mcp.serve", serve)
        assert 0 == main(arguments(project, *more, tools=tools)[2:])
    async with Client(made[0]) as connected:
        yield connected


async def call(connected: Client, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """Call a tool and return the object in the answer's single text."""
    told = await connected.call_tool(tool, given)
    assert not told.is_error
    (block,) = told.content
    assert "text" == block.type
    answer = json.loads(block.text)
    assert isinstance(answer, dict)
    return answer


def status_of(project: Path) -> dict[str, str]:
    """Return the deliverables in the project's file with their status."""
    loaded = DeliverableStore(project).load(now=NOW)
    assert loaded.broken is None
    return {item.id: item.status for item in loaded.deliverables.items}


def create(*ids: str) -> dict[str, Any]:
    """Return the input that creates these deliverables."""
    item = {"description": "d", "acceptanceCriteria": ["c"]}
    return {"deliverables": [{"id": name, **item} for name in ids]}


def request(number: int, tool: str, given: object) -> dict[str, object]:
    """Return a call in wire format."""
    params = {"name": tool, "arguments": given}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@contextmanager
def wire(project: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Start a server that is driven line by line."""
    with subprocess.Popen(
        [sys.executable, *arguments(project, *more)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            say(process, json.dumps(HELLO))
            assert SERVER_INFO == hear(process)["result"]["serverInfo"]
            say(process, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            yield process
        finally:
            process.kill()


def say(process: subprocess.Popen[str], line: str) -> None:
    """Write a line."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> Any:
    """Read the next line as JSON."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def answer(response: Any) -> Any:
    """Return the object in the single text of a response."""
    (block,) = response["result"]["content"]
    return json.loads(block["text"])
