"""`--serve`, which every loop command takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def serve_option(command: Command) -> Command:
    """Add `--serve`, given as `serve`: whether the command works within `page_of`."""
    option = click.option(
        "--serve",
        is_flag=True,
        help="Serve a live page of this project meanwhile, and print its link; see `cuggino help "
        "page`.",
    )
    return option(command)


@contextmanager
def page_of(folder: Path, *, serve: bool) -> Iterator[None]:
    """Serve the live page of the project within the block, if `serve` says so.

    Begin it when nothing is asked any more, as the link may be opened elsewhere.
    """
    if not serve:
        yield
        return
    from cuggino import load_config
    from cuggino_cli.follow.serving import served

    if not load_config(folder).journal:
        raise click.UsageError('--serve shows journals, and "journal" is false.')
    with served([folder], err=True):
        yield
