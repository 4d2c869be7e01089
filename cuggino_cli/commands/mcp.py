"""`cuggino mcp`: MCP servers that agents start."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from cuggino.mcp_server import Call, forward, serve
from cuggino.storage import DeliverableStore, VerifiedFile
from cuggino_cli.help.manual import manual

_DEFAULT_TOOLS = "create_deliverable,set_deliverable_status"


@click.group(
    "mcp",
    epilog=manual(
        (
            "cuggino mcp deliverables --project .",
            "Waits for JSON-RPC on standard input.",
        ),
        see=("deliver",),
    ),
)
def command() -> None:
    """Serve tools to an agent over standard input and output (MCP).

    Agents start these servers themselves.
    """


@command.command(
    "deliverables",
    epilog=manual(
        (
            "cuggino mcp deliverables --project . --tools create_deliverable,list",
            "With these tools only.",
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
    help="The tools to offer, separated by commas; also list, verify, deprecate.",
)
@click.option(
    "--verified",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file of verified deliverables, for the tool verify and the filter of list.",
)
@click.option("--strict-transitions", is_flag=True, help="Refuse to block a passed deliverable.")
@click.option(
    "--socket",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The socket of the run, which carries out the calls where this server cannot write.",
)
def deliverables(
    project: Path,
    tools: str,
    verified: Path | None,
    strict_transitions: bool,
    socket: Path | None,
) -> int:
    """Serve the tools that create deliverables and set their status."""
    names = [name.strip() for name in tools.split(",")]
    call = _stored(project, verified, strict=strict_transitions)
    with _ending_at_once_by_signals():
        serve(call if socket is None else partial(forward, socket), tools=filter(None, names))
    return 0


def _stored(project: Path, verified: Path | None, *, strict: bool) -> Call:
    """Return what carries out the calls on the files of the project."""
    store = DeliverableStore(project.resolve())
    kept = VerifiedFile(verified.resolve()) if verified is not None else None

    def call(tool: str, given: Mapping[str, object]) -> Mapping[str, object]:
        now = datetime.now(UTC)
        return store.call(tool, given, now=now, strict=strict, verified=kept).answer()

    return call


@contextmanager
def _ending_at_once_by_signals() -> Iterator[None]:
    """Let signals kill the process: a thread waiting for input would delay any other exit.

    There is nothing to clean up: files are replaced atomically, and locks end with the process.
    """
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = [(number, signal.signal(number, signal.SIG_DFL)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
