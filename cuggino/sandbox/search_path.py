"""The folders of programs: those of installed ones, and the search path outside of any view."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cuggino.sandbox.home import home_of
from cuggino.sandbox.repository import top_of

STARTED = (
    *("git", "gh", "glab", "ssh", "gpg", "sh", "bash", "zsh", "env", "sudo", "su", "doas"),
    *("bwrap", "cuggino"),
)
"""Programs that cuggino starts outside of a view, or that would do most harm in a user's hands."""


def outside_path(project: Path, path: str) -> str:
    """Return the search path without its folders in the repository around the project.

    Of a repository that has the home folder in it, such as one of its settings, only the project
    counts.
    """
    project = project.resolve()
    top = top_of(project)
    home = home_of(os.environ)
    if top == Path("/") or (home is not None and home.is_relative_to(top)):
        top = project
    root = str(top)
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if _is_outside(entry, root))


def outside_environment(project: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a program that finds no other program in the project."""
    whole = dict(os.environ if env is None else env)
    if "PATH" in whole:
        whole["PATH"] = outside_path(project, whole["PATH"])
    return whole


def installed(env: Mapping[str, str], programs: Iterable[str] = ()) -> Iterator[Path]:
    """Yield the folders of Python, cuggino, the programs on the PATH and the given ones."""
    yield from (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2])
    yield from (Path(entry) for entry in env.get("PATH", "").split(":") if entry[:1] == "/")
    for program in programs:
        for path in (Path(program), Path(os.path.realpath(program))):
            packages = [parent for parent in path.parents if parent.name == "node_modules"]
            yield packages[-1] if packages else path.parent


def own_programs(root: Path) -> Iterator[Path]:
    """Yield the paths below `root` that cuggino runs, or the user in place of a program.

    These are Python and cuggino itself, if they are installed in the project, and in each of its
    folders on the search path the programs that cuggino starts, which need not exist.
    """
    for folder in (Path(sys.prefix), Path(__file__).parents[1]):
        if folder.is_relative_to(root) and folder != root:
            yield folder
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        place = Path(os.path.realpath(root / entry))
        if place != root and place.is_relative_to(root) and root != Path("/"):
            yield from (place / name for name in STARTED)


def _is_outside(entry: str, top: str) -> bool:
    """Return whether an entry is an absolute folder outside of the repository.

    Every start of git resolves every entry anew, so that a link that an agent makes counts.
    """
    return entry.startswith("/") and (
        top == "/" or not f"{os.path.realpath(entry)}/".startswith(f"{top}/")
    )
