"""The views of programs that cuggino itself starts in a project: its commands, hooks and git."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from cuggino.files import storing
from cuggino.programs import programs_folder
from cuggino.sandbox.boundary import Boundary, probe
from cuggino.sandbox.enclosure import Enclosure
from cuggino.sandbox.home import home_of
from cuggino.sandbox.search_path import installed
from cuggino.sandbox.view import ViewRole, git_view, make_granted, role_view


@dataclass(frozen=True, kw_only=True)
class Views:
    """The views of programs that run what agents have written: tests, hooks, filters of git.

    Each view is made for one program, from the project as it is then. Only an engine that can hold
    the implementer's role encloses: without one there is no view, and changes of such programs are
    left to verification.
    """

    specs: str = ".specs"
    hide: tuple[str, ...] = ()
    show: tuple[str, ...] = ()

    def of_commands(self, project: Path, *, reads: Sequence[Path] = ()) -> Enclosure | None:
        """Return the implementer's view, for a command of the project or a hook.

        `reads` are temporary files that it reads.

        Raises:
            StorageError: a folder cannot be created.
        """
        return self.of_role("implementing", project, reads=reads)

    def of_role(
        self, role: ViewRole, project: Path, *, reads: Sequence[Path] = ()
    ) -> Enclosure | None:
        """Return the view of a role, for a program that is not its agent.

        Raises:
            StorageError: a folder cannot be created.
        """
        boundary = _boundary(project)
        if boundary is None:
            return None
        view = role_view(
            role,
            project=project,
            specs=self.specs,
            home=home_of(os.environ),
            hide=self.hide,
            show=self.show,
        )
        view = view.with_program(
            visible=(*installed(os.environ), *reads), shown=(programs_folder(),)
        )
        with storing("prepare sandbox", project):
            make_granted(view)
        return boundary.enclose(view)

    def of_copy(self, project: Path, *, reads: Sequence[Path] = ()) -> Enclosure | None:
        """Return the reviewer's view if what a command writes to the project vanishes there."""
        boundary = _boundary(project)
        if boundary is None or not boundary.overlay:
            return None
        return self.of_role("reviewing", project, reads=reads)

    def of_git(
        self, folder: Path, *, writes: Sequence[Path] = (), configures: bool = False
    ) -> Enclosure | None:
        """Return the view of git in a folder: it may write the repository around it, and `writes`.

        Settings and hooks are read-only unless it `configures` them.
        """
        boundary = _boundary(folder)
        if boundary is None:
            return None
        view = git_view(folder, home=home_of(os.environ), hide=self.hide, show=self.show)
        view = view.with_program(state=writes, visible=installed(os.environ))
        closed = () if configures else (path for path in view.read_only if path not in writes)
        view = replace(view, read_only=tuple(closed))
        return replace(boundary, overlay="").enclose(view)  # the home folder needs no copy


class Sandboxed(Protocol):
    """Settings of the sandbox, as options and configurations have them."""

    @property
    def sandbox(self) -> str:
        """`auto`, `require` or `off`."""

    @property
    def specs_path(self) -> str:
        """The specifications, relative to the project."""

    @property
    def sandbox_hide(self) -> Sequence[str]:
        """More paths that cannot be read."""

    @property
    def sandbox_show(self) -> Sequence[str]:
        """Paths that are accessible although they would be hidden."""


def views_of(settings: Sandboxed) -> Views | None:
    """Return the views of commands, hooks and git; None if the sandbox is turned off."""
    if settings.sandbox == "off":
        return None
    return Views(
        specs=settings.specs_path,
        hide=tuple(settings.sandbox_hide),
        show=tuple(settings.sandbox_show),
    )


def holds_commands(project: Path) -> bool:
    """Return whether commands in the project can be confined to the implementer's view."""
    return _boundary(project) is not None


def _boundary(project: Path) -> Boundary | None:
    """Return the boundary of commands; only bubblewrap holds a role that writes the project."""
    found = probe(project, home=home_of(os.environ))
    return found if found.engine == "bubblewrap" else None
