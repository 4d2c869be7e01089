"""Trust in the project: ask before it starts commands that the user has not accepted."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from cuggino.config import UserConfig, load_user_config
from cuggino.errors import ConfigError, CugginoError
from cuggino.processes import is_started_by_run
from cuggino.trust import ProjectCommand, TrustStore, project_commands
from cuggino_cli.options.naming import one_line
from cuggino_cli.screen import console

_LONGEST = 200
"""Characters that are shown of a command."""


def trust_store() -> TrustStore | None:
    """Return what the user has accepted; None without a home folder."""
    folder = _own_folder("XDG_STATE_HOME", ".local/state")
    return None if folder is None else TrustStore(folder / "trust")


def is_trusted(folder: Path) -> bool:
    """Return whether the user has accepted all commands of the project."""
    store = trust_store()
    return store is not None and store.is_trusted(folder)


def check_trust(folder: Path) -> None:
    """Ask once, on a terminal, about the commands of the project that the user has not accepted.

    Without a terminal, and to an agent on one, a warning names them, unless the user's own
    configuration requires trust.

    Raises:
        ConfigError: the user does not accept them, or cannot be asked but has to be; or the user's
            configuration is unusable.
    """
    rule = trust_rule()
    if rule == "off":
        return
    store = trust_store()
    unseen = project_commands(folder) if store is None else store.unseen(folder)
    if not unseen:
        return
    if console.on_terminal() and not is_started_by_run():
        click.echo("This project starts or allows what you have not seen yet:\n", err=True)
        show_commands(unseen)
        if not click.confirm("\nGo on, and remember these for this folder?", err=True):
            raise ConfigError(
                "nothing was started: you did not accept the commands of this project",
                hint="look at the named files, then start it again",
            )
        if store is not None:
            store.accept(folder, unseen, at=datetime.now(UTC))
        return
    if rule == "require":
        names = "; ".join(command_line(command) for command in unseen)
        raise ConfigError(
            f"you have not accepted commands of this project: {names}",
            hint='look at them and run `cuggino trust`, as your configuration has "trust": '
            '"require"',
        )
    click.echo(
        "cuggino: this project starts or allows what you have not accepted with `cuggino trust`:",
        err=True,
    )
    show_commands(unseen)


def show_commands(commands: Iterable[ProjectCommand]) -> None:
    """Print each command on a line of standard error."""
    for command in commands:
        click.echo(f"  {command_line(command)}", err=True)


def accept_typed(folder: Path, file: str, keys: Iterable[str]) -> None:
    """Accept the commands under these keys of a file, which the user has just typed."""
    store = trust_store()
    places = {f"{file}: {key}" for key in keys}
    typed = [command for command in project_commands(folder) if command.place in places]
    if store is not None:
        with suppress(CugginoError):  # then a run asks
            store.accept(folder, typed, at=datetime.now(UTC))


def command_line(command: ProjectCommand) -> str:
    """Return the place and the text of a command, on one line."""
    text = one_line(command.text)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return f"{one_line(command.place)}: {text}"


def trust_rule() -> str:
    """Return the trust setting of the user's own configuration."""
    if given := os.environ.get("CUGGINO_CONFIG"):
        return load_user_config(Path(given)).trust
    folder = _own_folder("XDG_CONFIG_HOME", ".config")
    config = UserConfig() if folder is None else load_user_config(folder / "config.json")
    return config.trust


def _own_folder(variable: str, usual: str) -> Path | None:
    """Return the user's cuggino folder; a relative path is ignored, as the standard requires."""
    given = os.environ.get(variable, "")
    if given and Path(given).is_absolute():
        return Path(given) / "cuggino"
    try:
        return Path.home() / usual / "cuggino"
    except RuntimeError:
        return None
