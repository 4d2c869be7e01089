"""`--serve`, which every loop command takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cuggino_cli.screen import console

if TYPE_CHECKING:
    from cuggino.web import Server

Command = TypeVar("Command", bound=Callable[..., Any])

_REFUSED = 2
_INTERRUPTED = 130


def serve_option(command: Command) -> Command:
    """Add `--serve`, which serves the live page of the project while the command works.

    On a terminal the page stays after the end of the run, until Ctrl-C, so that a question can be
    answered there; the exit code is that of the run. A run that was interrupted or refused ends it.
    """

    @functools.wraps(command)
    def serving(*, serve: bool, **kwargs: Any) -> Any:
        if not serve:
            return command(**kwargs)
        from cuggino import load_config
        from cuggino_cli.follow.serving import served

        folder = Path.cwd()
        if not load_config(folder).journal:
            raise click.UsageError('--serve shows journals, and "journal" is false.')
        with served([folder], err=True) as server:
            if not console.on_terminal():
                return command(**kwargs)
            code = _code_of(functools.partial(command, **kwargs))
            if code != _INTERRUPTED:
                _stay(server)
            return code

    decorated: Any = click.option(
        "--serve",
        is_flag=True,
        help="Serve a live page of this project meanwhile, and print its link; on a terminal the "
        "page stays after the end. See `cuggino help page`.",
    )(serving)
    added: Command = decorated
    return added


def _code_of(run: Callable[[], int]) -> int:
    """Return the exit code of a run, after reporting the error that ended it.

    Raises:
        CugginoError: nothing has run.
    """
    from cuggino.errors import CugginoError

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
