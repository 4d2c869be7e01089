"""`--serve`: the live page, served beside a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cuggino import load_config
from cuggino.errors import CugginoError
from cuggino_cli.follow.serving import served
from cuggino_cli.screen import console
from cuggino_cli.screen.console import INTERRUPTED
from cuggino_cli.screen.standard_output import is_giving_up

if TYPE_CHECKING:
    from cuggino.web import Server

Command = TypeVar("Command", bound=Callable[..., Any])

_REFUSED = 2


def serve_option(command: Command) -> Command:
    """Add `--serve`, given as `serve`: whether the command works within `beside_page`."""
    option = click.option(
        "--serve",
        is_flag=True,
        help="Serve a live page of this project meanwhile, and print its link; on a terminal the "
        "page stays after the end. See `cuggino help page`.",
    )
    return option(command)


def beside_page(run: Callable[[], int], folder: Path, *, serve: bool) -> int:
    """Run with the live page of the project beside it, if `serve` says so; return the exit code.

    Begin it when nothing is asked any more, as the link may be opened elsewhere. On a terminal the
    page stays after the end of the run, until Ctrl-C, so that a question can be answered there; the
    exit code is that of the run. A run that Ctrl-C interrupted or that was refused ends it.
    """
    if not serve:
        return run()
    if not load_config(folder).journal:
        raise click.UsageError('--serve shows journals, and "journal" is false.')
    with served([folder], err=True) as server:
        if not console.on_terminal():
            return run()
        code = _code_of(run)
        if code != INTERRUPTED or not is_giving_up():  # stopped from elsewhere, as by the page
            _stay(server)
        return code


def _code_of(run: Callable[[], int]) -> int:
    """Return the exit code of a run, after reporting the error that ended it.

    Raises:
        CugginoError: nothing has run.
    """
    try:
        return run()
    except CugginoError as error:
        if error.code == _REFUSED:
            raise
        console.complain(error.message, error.hint)
        return error.code


def _stay(server: Server) -> None:
    """Serve the page until Ctrl-C."""
    click.echo(f"The run has ended. Its page stays until Ctrl-C: {server.url}", err=True)
    try:
        while not server.ended.wait(0.5):
            pass
    except KeyboardInterrupt:
        pass
