"""The deliverable tools over MCP, most of them served by separate processes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from cuggino.domain.deliverable_tools import TOOL_SERVER, TOOLS, ToolAnswer, ToolName, agent_tool
from cuggino.errors import StorageError
from cuggino.mcp_server import make_server
from cuggino.storage.deliverables import Called, VerifiedFile
from cuggino.testing import no_leaks
from tests.mcp_server import ALL_TOOLS, call, client, client_within, create, status_of

NOW = datetime(2026, 3, 4, tzinfo=UTC)


@pytest.mark.real_agent
def test_session(tmp_path: Path) -> None:
    """An agent creates, lists, verifies and deprecates; each answer is one JSON text."""
    kept = VerifiedFile(tmp_path / "verified.json")
    kept.start(["A", "B"])

    async def session() -> list[dict[str, Any]]:
        async with client(tmp_path, "--verified", str(kept.path)) as agent:
            passed = {"deliverableId": "A", "status": "passed"}
            return [
                await call(agent, "create_deliverable", create("A", "B")),
                await call(agent, "set_deliverable_status", passed),
                await call(agent, "verify", {"deliverableId": "A"}),
                await call(agent, "list", {"filter": {"verified": False}}),
                await call(agent, "deprecate", {"deliverableId": "B"}),
                await call(agent, "create", create("A")),
            ]

    with no_leaks():
        answers = anyio.run(session)
    listed = {"id": "B", "description": "d", "status": "pending", "acceptanceCriteria": ["c"]}
    refused = 'Deliverable with ID "A" already exists'
    assert [
        {"success": True, "message": "Created 2 deliverable(s) successfully"},
        {"success": True, "message": 'Deliverable "d" (A) marked as passed'},
        {"success": True, "message": "Deliverable A marked as verified"},
        {"deliverables": [listed]},
        {"success": True, "message": 'Deliverable "d" (B) marked as deprecated'},
        {"success": False, "message": refused, "error": "DUPLICATE_ID"},
    ] == answers
    assert {"A": "passed", "B": "pending"} == status_of(tmp_path)
    known = kept.read()
    assert known is not None
    assert {"A"} == known.verified


def test_offered_tools(tmp_path: Path) -> None:
    """Only the named tools are offered, in order, with schemas; others return an error.

    An agent sees them as `mcp__autonoe-deliverable__<tool>`.
    """

    async def session() -> tuple[list[Any], dict[str, Any]]:
        async with client_within(tmp_path, tools="set_status, list") as agent:
            tools = (await agent.list_tools()).tools
            return tools, await call(agent, "create_deliverable", create("A"))

    tools, refused = anyio.run(session)
    assert ["set_deliverable_status", "list"] == [tool.name for tool in tools]
    assert ["deliverableId", "status"] == tools[0].input_schema["required"]
    statuses = tools[0].input_schema["properties"]["status"]["enum"]
    assert ["pending", "passed", "blocked"] == statuses
    assert all(tool.description for tool in tools)
    assert "UNKNOWN_TOOL" == refused["error"]
    assert refused["message"].endswith("There are: set_deliverable_status, list")
    assert {} == status_of(tmp_path)
    assert "mcp__autonoe-deliverable__create_deliverable" == agent_tool("create_deliverable")
    assert "autonoe-deliverable" == TOOL_SERVER


def test_strict_transitions(tmp_path: Path) -> None:
    """With strict transitions, a passed deliverable cannot be blocked directly."""

    async def session() -> dict[str, Any]:
        async with client_within(tmp_path, "--strict-transitions") as agent:
            await call(agent, "create", create("A"))
            await call(agent, "set_status", {"deliverableId": "A", "status": "passed"})
            return await call(agent, "set_status", {"deliverableId": "A", "status": "blocked"})

    assert "INVALID_TRANSITION" == anyio.run(session)["error"]
    assert {"A": "passed"} == status_of(tmp_path)


@pytest.mark.real_agent  # many processes: with the second command
def test_two_servers_lose_nothing(tmp_path: Path) -> None:
    """Concurrent calls to two servers of one project are all stored."""
    answers: list[dict[str, Any]] = []

    async def one_call(agent: Any, name: str) -> None:
        answers.append(await call(agent, "create_deliverable", create(name)))
        given = {"deliverableId": name, "status": "passed"}
        answers.append(await call(agent, "set_deliverable_status", given))

    async def both() -> None:
        async with (
            client(tmp_path) as first,
            client(tmp_path) as second,
            anyio.create_task_group() as calls,
        ):
            for number in range(15):
                calls.start_soon(one_call, first, f"A{number}")
                calls.start_soon(one_call, second, f"B{number}")

    with no_leaks():
        anyio.run(both)
    assert [True] * 60 == [answer["success"] for answer in answers]
    expected = {f"{side}{number}": "passed" for side in "AB" for number in range(15)}
    assert expected == status_of(tmp_path)


def test_broken_file_is_reported(tmp_path: Path) -> None:
    """A broken file is reported to the agent with the path of its backup."""
    (tmp_path / ".autonoe").mkdir()
    (tmp_path / ".autonoe" / "status.json").write_text("{", encoding="utf-8")

    async def session() -> dict[str, Any]:
        async with client_within(tmp_path) as agent:
            return await call(agent, "create", create("A"))

    told = anyio.run(session)
    assert told["success"]
    assert ".autonoe/status.json is broken: line 1 column 2" in told["warnings"][0]
    assert "is kept as status.json.broken-" in told["warnings"][1]
    assert {"A": "pending"} == status_of(tmp_path)


def test_failed_write_is_an_answer(tmp_path: Path) -> None:
    """A failed write is answered with its reason, and nothing is changed."""
    (tmp_path / ".autonoe").write_text("a file where the folder should be", encoding="utf-8")

    async def session() -> dict[str, Any]:
        async with client_within(tmp_path) as agent:
            return await call(agent, "create", create("A"))

    told = anyio.run(session)
    assert (False, "STORAGE_ERROR") == (told["success"], told["error"])
    assert told["message"].startswith("Nothing was changed: ")
    assert "status.json" in told["message"]


@pytest.mark.parametrize(
    ("failure", "tools", "message", "code"),
    [
        (
            ZeroDivisionError("by zero"),
            TOOLS,
            "Internal error: ZeroDivisionError: by zero",
            "INTERNAL_ERROR",
        ),
        (
            StorageError("write", "disk full", hint="free some space"),
            TOOLS,
            "Nothing was changed: disk full (free some space)",
            "STORAGE_ERROR",
        ),
        (StorageError("write", "gone"), TOOLS, "Nothing was changed: gone", "STORAGE_ERROR"),
        (
            ZeroDivisionError("not called"),
            TOOLS[:1],
            f'There is no tool "list" here. There are: {TOOLS[0]}',
            "UNKNOWN_TOOL",
        ),
    ],
    ids=["defect", "storage with a hint", "storage", "unknown tool"],
)
def test_failures_are_answers(
    failure: Exception, tools: tuple[ToolName, ...], message: str, code: str
) -> None:
    """A failure of any kind is reported to the agent, which can continue."""
    from mcp.client.client import Client

    def fail(tool: str, given: object) -> dict[str, object]:
        raise failure

    async def session() -> dict[str, Any]:
        async with Client(make_server(fail, tools=tools)) as agent:
            return await call(agent, "list", {})

    assert {"success": False, "message": message, "error": code} == anyio.run(session)


def test_warnings_in_an_answer() -> None:
    """An answer has warnings only if there are any."""
    result = ToolAnswer(True, "done")
    assert {"success": True, "message": "done"} == Called(result).answer()
    assert ["odd"] == Called(result, warnings=("odd",)).answer()["warnings"]
    assert set(TOOLS) == set(ALL_TOOLS.split(","))
