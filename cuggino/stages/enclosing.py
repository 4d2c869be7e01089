"""The enclosure of commands that run what the implementer has written: tests, hooks, scripts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

from cuggino.agents.base import enclosure_of
from cuggino.sandbox import Enclosure, home_of, probe, role_view

Enclose: TypeAlias = Callable[[Sequence[Path]], Enclosure | None]
"""Makes the enclosure of a command that reads these temporary files."""


def commands_enclosure(
    project: Path,
    *,
    specs: str = ".specs",
    hide: Sequence[str] = (),
    show: Sequence[str] = (),
    reads: Sequence[Path] = (),
) -> Enclosure | None:
    """Return the enclosure of a command in the implementer's view, or None if none can hold it.

    It is made for the project as it is now. `reads` are temporary files that the command reads.

    Raises:
        StorageError: a folder cannot be created.
    """
    if not holds_commands(project):
        return None
    home = home_of(os.environ)
    view = role_view("implementing", project=project, specs=specs, home=home, hide=hide, show=show)
    view = view.with_program(visible=reads)
    with ExitStack() as stack:  # this engine needs no folder of its own
        return enclosure_of(view, env=os.environ, stack=stack)


def holds_commands(project: Path) -> bool:
    """Return whether commands in the project can be confined to the implementer's view."""
    return probe(project, home=home_of(os.environ)).engine == "bubblewrap"


def enclose_commands(
    project: Path,
    *,
    specs: str = ".specs",
    hide: Sequence[str] = (),
    show: Sequence[str] = (),
) -> Enclose:
    """Return the function that encloses commands in the project (`commands_enclosure`)."""
    return lambda reads: commands_enclosure(project, specs=specs, hide=hide, show=show, reads=reads)


def no_enclosure(_reads: Sequence[Path]) -> None:
    """Enclose nothing."""
