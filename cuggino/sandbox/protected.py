"""The paths compared after a session, on every system: the second line of defense."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from cuggino.sandbox.resolving import Resolver, path_of
from cuggino.sandbox.view import (
    ROWS,
    ViewRole,
    has_inside,
    instruction_paths,
    joined,
    protected_paths,
)
from cuggino.sandbox.views import Views

_PERSONS = (
    *("archive", "backlog", "memory.md", "parked", "spec-issues", "tbd"),
    *("journal", "origins", "proposals"),
)
"""Paths where people, and the commands they type, write during a run."""

_CACHES = ("digests", "snapshots")
"""Paths where commands that people type keep what can be computed again."""

_EXEMPT = ("browser", "control", "locks")
"""Pictures that agents take; signed commands, which a run takes at once; and empty lock files."""

STATUS = ".autonoe/status.json"


@dataclass(frozen=True, kw_only=True)
class Protected:
    """The paths that one session may not change: absolute, a folder with its contents."""

    project: Path
    role: str
    paths: tuple[Path, ...]
    """Restored if they have changed."""
    shallow: tuple[Path, ...] = ()
    """Folders around them, and links, through which they could be replaced."""
    reported: tuple[Path, ...] = ()
    """Exceptions within them that people write at any time: changes are only reported."""
    caches: tuple[Path, ...] = ()
    """Exceptions within them that are restored without a report."""
    exempt: tuple[Path, ...] = ()
    """Exceptions within them that this session may write."""
    instructions: tuple[Path, ...] = ()
    """Other paths that instruct agents: changes are reported."""
    specs: str | None = None
    """The specifications, relative to the project, if the role may not write them."""
    looks: bool = False
    """True if the role may change nothing except the exempt paths."""
    views: Views | None = None
    """The views of git, which compares."""
    held: bool = False
    """True if the kernel has kept the session from the paths; a person has changed them then."""


def protected_for(
    role: ViewRole,
    *,
    project: Path,
    specs: str = ".specs",
    own: Iterable[Path] = (),
    held: bool = False,
    views: Views | None = None,
    name: str | None = None,
) -> Protected:
    """Return the paths that a session of this role may not change. Reads the disk once.

    `own` are files in `.cuggino` that the session may write; `name` is the session's name in
    events, by default the role.
    """
    resolver = Resolver()
    root = resolver.path(project)
    row = ROWS[role]
    outside = not row.specs and not has_inside(root, specs, resolver)
    paths = [*protected_paths(root, None if row.specs else specs, resolver, has_view=held)]
    # A link is protected, and what it leads to.
    linked = [root / STATUS, *([] if row.specs or outside else [root / specs])]
    paths += (resolver.path(path) for path in linked if path.is_symlink())
    # Git's housekeeping, which outlasts the commit that started it, writes a list of refs for
    # clients that fetch by plain HTTP.
    listed = (
        joined(path, "refs") for path in paths if path.name == "info" and path != root / specs
    )
    exempt, reported, caches = _exceptions(root, role, specs)
    return Protected(
        project=root,
        role=role if name is None else name,
        paths=tuple(paths),
        shallow=() if row.specs or outside else tuple(_around(root / specs, root)),
        reported=reported,
        caches=caches,
        exempt=(*exempt, *(_beside(path, resolver) for path in own), *chain.from_iterable(listed)),
        instructions=() if row.access != "writes" else tuple(instruction_paths(root)),
        specs=None if row.specs or outside else specs,
        looks=row.access != "writes",
        held=held,
        views=views,
    )


def _beside(path: Path, resolver: Resolver) -> Path:
    """Return the path in its resolved folder."""
    folder, _, name = str(path).rpartition("/")
    return path_of(f"{resolver.text(folder)}/{name}")


def _around(path: Path, root: Path) -> Iterator[Path]:
    """Yield the folders and links between the project and the path."""
    for parent in path.parents:
        if parent == root or not parent.is_relative_to(root):
            return
        yield parent


@lru_cache(maxsize=64)
def _exceptions(
    root: Path, role: ViewRole, specs: str
) -> tuple[tuple[Path, ...], tuple[Path, ...], tuple[Path, ...]]:
    """Return the paths that are exempt, those that are only reported, and the caches."""
    row = ROWS[role]
    own = root / ".cuggino"
    exempt = [*joined(root, *row.folders, *row.files), *joined(own, *_EXEMPT)]
    if row.specs:
        exempt.append(root / specs)
    reported = (path for path in joined(own, *_PERSONS) if path not in exempt)
    return tuple(exempt), tuple(reported), joined(own, *_CACHES)
