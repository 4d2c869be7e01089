"""The live page of a command: `cuggino serve`, and the option `--serve` of the loops."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cuggino.errors import StorageError
from cuggino.storage import announce_page

if TYPE_CHECKING:
    from cuggino.web import ServeOptions, Server


@contextmanager
def served(
    folders: Sequence[Path], options: ServeOptions | None = None, *, err: bool = False
) -> Iterator[Server]:
    """Serve the page within the block, and let other programs of the user find it.

    The link is printed, with `err` to standard error, if that is a terminal. A log or a pipe gets
    the name of the file with the link: agents may read it there.

    Raises:
        ConfigError: a folder is missing, the port is in use, or the options are refused.
    """
    from cuggino.web import serving

    with serving(folders, options) as server, contextlib.ExitStack() as stack:
        file: Path | None = None
        with contextlib.suppress(StorageError):
            file = stack.enter_context(announce_page(server.url, folders))
        stream = sys.stderr if err else sys.stdout
        if stream.isatty():
            click.echo(f"Serving {server.url}", err=err)
        elif file is not None:
            click.echo(f"Serving {server.address}; the link is in {file}", err=err)
        else:
            where = "no file can be written for it: start it in a terminal"
            click.echo(f"Serving {server.address}; {where}", err=err)
        yield server
