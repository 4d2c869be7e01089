"""`cuggino mcp`: the servers that an agent's program starts, for tools of ours."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuggino_cli.manual import manual

if TYPE_CHECKING:
    from cuggino.domain.deliverable_tools import ToolName

_DEFAULT_TOOLS = "create_deliverable,set_deliverable_status"


@click.group(
    "mcp",
    epilog=manual(
        (
            "cuggino mcp deliverables --project .",
            "What an agent starts; it waits for JSON-RPC on standard input.",
        ),
        see=("deliver",),
    ),
)
def command() -> None:
    """Serve tools to an agent over standard input and output (MCP).

    Agents start these servers themselves; there is no need to do it by hand.
    """


@command.command(
    "deliverables",
    epilog=manual(
        (
            "cuggino mcp deliverables --project . --tools create_deliverable,list",
            "With the tools that are named.",
        ),
        exits="0 its standard input has ended, 2 wrong usage.",
        see=("deliver",),
    ),
)
@click.option(
    "--project",
    metavar="DIR",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The project whose .autonoe/status.json is kept.",
)
@click.option(
    "--tools",
    metavar="NAMES",
    default=_DEFAULT_TOOLS,
    show_default=True,
    help="Which to offer, with commas: also list, verify, deprecate.",
)
@click.option(
    "--verified",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file of what is verified, for the tool verify and its filter in list.",
)
@click.option(
    "--strict-transitions", is_flag=True, help="Refuse to block what is passed; pending first."
)
def deliverables(project: Path, tools: str, verified: Path | None, strict_transitions: bool) -> int:
    """Serve the tools that create deliverables and set their status."""
    from datetime import UTC, datetime

    from cuggino.agents.mcp_deliverables import answer_with_warnings, serve
    from cuggino.storage.deliverables import DeliverableStore
    from cuggino.storage.verified import VerifiedFile

    offered = _offered(tools)
    store = DeliverableStore(project.resolve())
    kept = VerifiedFile(verified.resolve()) if verified is not None else None

    def call(tool: str, given: Mapping[str, object]) -> Mapping[str, object]:
        called = store.call(
            tool, given, now=datetime.now(UTC), strict=strict_transitions, verified=kept
        )
        return answer_with_warnings(called.result, called.warnings)

    _end_at_once_by_signals()
    serve(call, tools=offered)
    return 0


def _offered(names: str) -> list[ToolName]:
    from cuggino.domain.deliverable_tools import TOOLS, tool_named

    offered = []
    for name in filter(None, (name.strip() for name in names.split(","))):
        tool = tool_named(name)
        if tool is None:
            raise click.BadParameter(f'no tool "{name}"; there are: {", ".join(TOOLS)}')
        offered.append(tool)
    if not offered:
        raise click.BadParameter(f"name at least one of {', '.join(TOOLS)}")
    return offered


def _end_at_once_by_signals() -> None:
    """A thread that waits for input would hold up any other ending.

    There is nothing to tidy: files are replaced in one step, and a lock ends with its process.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        with suppress(AttributeError, ValueError):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
