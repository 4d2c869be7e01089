"""`--serve`, which every loop command takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from cuggino_cli.options.project import project_folder

Command = TypeVar("Command", bound=Callable[..., Any])


def serve_option(command: Command) -> Command:
    """Add `--serve`, which serves the live page of the project while the command works."""

    @functools.wraps(command)
    def serving(*, serve: bool, **kwargs: Any) -> Any:
        if not serve:
            return command(**kwargs)
        from cuggino import load_config
        from cuggino_cli.follow.serving import served

        folder = project_folder()
        if not load_config(folder).journal:
            raise click.UsageError('--serve shows journals, and "journal" is false.')
        with served([folder], err=True):
            return command(**kwargs)

    decorated: Any = click.option(
        "--serve",
        is_flag=True,
        help="Serve a live page of this project meanwhile, and print its link; see `cuggino help "
        "page`.",
    )(serving)
    added: Command = decorated
    return added
