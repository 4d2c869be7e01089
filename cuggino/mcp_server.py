"""The deliverable tools as an MCP server, started by an agent's program (AUT-110, AUT-118).

`cuggino mcp deliverables` runs it; so does a run, as a program of its own that forwards each call
to the run: `python -P mcp_server.py SOCKET TOOL...`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket as connection
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if __name__ == "__main__":  # the package is located relative to this file
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cuggino.domain.deliverable_tools import (
    LISTED_BY_DEFAULT,
    TOOL_SERVER,
    TOOLS,
    ToolName,
    tool_named,
)
from cuggino.domain.deliverables import DELIVERABLE_STATUSES
from cuggino.errors import ConfigError, CugginoError, StorageError, install_extra

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

SERVER_VERSION = "1.0.0"

Call = Callable[[str, Mapping[str, object]], Mapping[str, object]]
"""Calls a tool with an input and returns the answer, an object. Several threads may call it."""

_ID = {"type": "string", "description": "The deliverable's id, such as DL-001"}


class _Tool(NamedTuple):
    description: str
    properties: Mapping[str, object]
    required: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        schema = {"type": "object", "properties": dict(self.properties)}
        return schema | ({"required": list(self.required)} if self.required else {})


_TOOLS: Mapping[ToolName, _Tool] = MappingProxyType(
    {
        "create_deliverable": _Tool(
            "Add deliverables to the project, all of the call or none. They begin as pending.",
            {
                "deliverables": {
                    "type": "array",
                    "description": "The new deliverables, in order of priority; at least one",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {
                                "type": "string",
                                "description": "An id that no other has, such as DL-001",
                            },
                            "description": {
                                "type": "string",
                                "description": "What a user of the project will have",
                            },
                            "acceptanceCriteria": {
                                "type": "array",
                                "items": {"type": "string"},
                                "description": "Steps by which anybody can check it; at least one",
                            },
                        },
                        "required": ["id", "description", "acceptanceCriteria"],
                    },
                }
            },
            ("deliverables",),
        ),
        "set_deliverable_status": _Tool(
            "Say how far a deliverable is. passed: every acceptance criterion was checked and is "
            "met. blocked: it needs what is out of your reach (credentials, a service that is "
            "down, hardware, the network), never another deliverable. pending: to be done (again).",
            {
                "deliverableId": _ID,
                "status": {"type": "string", "enum": list(DELIVERABLE_STATUSES)},
            },
            ("deliverableId", "status"),
        ),
        "list": _Tool(
            "List deliverables in the order of their creation, without deprecated ones.",
            {
                "filter": {
                    "type": "object",
                    "properties": {
                        "status": {"type": "string", "enum": list(DELIVERABLE_STATUSES)},
                        "verified": {"type": "boolean"},
                    },
                    "description": "Only those with this status, only (un)verified ones",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "default": LISTED_BY_DEFAULT,
                    "description": f"How many to give at most; {LISTED_BY_DEFAULT} unless given",
                },
            },
        ),
        "verify": _Tool(
            "Note that a deliverable was looked at again and that its status is right.",
            {"deliverableId": _ID},
            ("deliverableId",),
        ),
        "deprecate": _Tool(
            "Note that the specification no longer asks for a deliverable; it is kept on record.",
            {"deliverableId": _ID},
            ("deliverableId",),
        ),
    }
)


def forward(socket: Path, tool: str, given: Mapping[str, object]) -> Mapping[str, object]:
    """Let the run at the socket call the tool, and return its answer.

    Raises:
        StorageError: the run could not be reached, or the call failed.
    """
    folder = os.open(socket.parent, os.O_RDONLY | os.O_DIRECTORY)
    short = Path("/proc/self/fd", str(folder))  # an address may be much shorter than a path
    try:
        with connection(AF_UNIX, SOCK_STREAM) as to:
            to.connect(str(short / socket.name if short.parent.is_dir() else socket))
            to.sendall(json.dumps({"tool": tool, "input": dict(given)}).encode() + b"\n")
            with to.makefile("rb") as lines:
                said = json.loads(lines.readline())
    except (OSError, ValueError) as error:
        raise StorageError("call tool", f"the run could not be reached: {error}") from error
    finally:
        os.close(folder)
    if "failure" in said:
        raise RuntimeError(said["failure"])
    if "error" in said:
        raise StorageError("call tool", said["error"], hint=said.get("hint"))
    answer: dict[str, object] = said["answer"]
    return answer


def serve(call: Call, *, tools: Iterable[str]) -> None:
    """Serve the deliverable tools of these names over standard input and output until input ends.

    Calls run on threads, several at a time; all of them end before this returns. Every call is
    answered by one text with a JSON object, even for invalid input.

    Raises:
        ConfigError: the extra `deliver` is not installed, or as in `make_server`.
    """
    try:
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise ConfigError(
            "the deliverable tools need the MCP library, which is not installed",
            hint=install_extra("deliver"),
        ) from error
    server = make_server(call, tools=tools)

    async def until_input_ends() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    logging.getLogger("mcp").setLevel(logging.ERROR)
    asyncio.run(until_input_ends())


def make_server(call: Call, *, tools: Iterable[str]) -> Server[Any]:
    """Return the server of the tools of these names, not yet serving; requires the MCP library.

    Raises:
        ConfigError: a tool is unknown, or none is named.
    """
    from mcp import types
    from mcp.server.lowlevel import Server

    offered = tuple(dict.fromkeys(_offered(tools)))

    async def list_tools(context: object, params: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=_TOOLS[name].description,
                    input_schema=_TOOLS[name].schema,
                )
                for name in offered
            ]
        )

    async def call_tool(context: object, params: types.CallToolRequestParams) -> Any:
        text = await asyncio.to_thread(_answer, call, offered, params.name, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server(
        TOOL_SERVER, version=SERVER_VERSION, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _answer(
    call: Call, offered: tuple[ToolName, ...], name: str, given: Mapping[str, object]
) -> str:
    """Return the text of the answer; every failure is an answer too."""
    answer: Mapping[str, object]
    if tool_named(name) not in offered:
        known = ", ".join(offered)
        answer = _failure(f'There is no tool "{name}" here. There are: {known}', "UNKNOWN_TOOL")
    else:
        try:
            answer = call(name, given)
        except CugginoError as error:
            hint = f" ({error.hint})" if error.hint else ""
            answer = _failure(f"Nothing was changed: {error.message}{hint}", "STORAGE_ERROR")
        except Exception as error:  # the agent goes on, whatever it was
            answer = _failure(f"Internal error: {type(error).__name__}: {error}", "INTERNAL_ERROR")
    text = json.dumps(answer, ensure_ascii=False)
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def _failure(message: str, error: str) -> dict[str, object]:
    return {"success": False, "message": message, "error": error}


def _offered(names: Iterable[str]) -> list[ToolName]:
    offered = []
    for name in names:
        tool = tool_named(name)
        if tool is None:
            raise ConfigError(f'no tool "{name}"; there are: {", ".join(TOOLS)}')
        offered.append(tool)
    if not offered:
        raise ConfigError(f"name at least one of {', '.join(TOOLS)}")
    return offered


def main(socket: str, tools: Iterable[str]) -> None:
    """Forward the calls of the tools to the run at the socket, until standard input ends.

    Signals end the process at once: a thread that waits for input would delay any other exit.
    """
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, signal.SIG_DFL)
    serve(partial(forward, Path(socket)), tools=tools)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
