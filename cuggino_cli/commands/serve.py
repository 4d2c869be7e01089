"""`cuggino serve`: the live page."""

from __future__ import annotations

from pathlib import Path

import click

from cuggino.web import ServeOptions
from cuggino_cli.follow.serving import served
from cuggino_cli.help.manual import Sectioned, manual
from cuggino_cli.options.project import project_folder


@click.command(
    "serve",
    cls=Sectioned,
    epilog=manual(
        ("cuggino serve", "This project; open the link that is printed."),
        ("cuggino serve shop ~/code/blog", "Several projects on one page."),
        (
            "cuggino serve --host 0.0.0.0 --cert page.pem --key page.key",
            "For a phone in the same network, over TLS.",
        ),
        exits="130 ended by Ctrl-C, 143 by SIGTERM, 2 wrong usage, or the port is in use.",
        see=("watch", "report"),
    ),
)
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="The port. [default: one that is free]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address; another one needs --cert and --key, or --insecure.",
)
@click.option("--cert", metavar="FILE", type=click.Path(path_type=Path), help="TLS certificate.")
@click.option("--key", metavar="FILE", type=click.Path(path_type=Path), help="Its key.")
@click.option("--insecure", is_flag=True, help="Serve another address without TLS.")
def command(
    folders: tuple[Path, ...],
    port: int,
    host: str,
    cert: Path | None,
    key: Path | None,
    insecure: bool,
) -> int:
    """Show what runs here, and what waits for you, as a live page.

    FOLDER is a project; the default is the current folder. The page follows runs that other
    terminals start, and can pause, stop and steer them. It needs no network. The link
    contains a key that is new at every start: who has the link can do what you can do on the page.
    A terminal shows it; a log or a pipe gets the name of a file with it, which only you can read.
    See `cuggino help page`.
    """
    options = ServeOptions(host=host, port=port, cert=cert, key=key, insecure=insecure)
    with served(folders or (project_folder(),), options) as server:
        click.echo("Ctrl-C ends it.", err=True)
        while not server.ended.wait(0.5):
            pass
    return 1
