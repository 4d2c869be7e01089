"""The paths compared after a session, on every system: the second line of defense."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from cuggino.sandbox.resolving import Resolver, path_of
from cuggino.sandbox.view import ROWS, ViewRole, has_inside, joined, protected_paths
from cuggino.sandbox.views import Views

_PERSONS = ("archive", "backlog", "memory.md", "parked", "spec-issues", "tbd")
"""Paths where people, and the commands they type, write during a run."""

_OWN = (
    *("agent.sha256", "browser", "digests", "journal", "kept", "lock", "lock.json", "locks"),
    *("origins", "proposals", "snapshots", "unverified-jobs.json"),
    "control",  # its commands are signed
)
"""Paths that the run itself writes, or whose changes are reported elsewhere."""

_DELIVER: frozenset[ViewRole] = frozenset({"initializer", "coding", "sync", "verify"})


@dataclass(frozen=True, kw_only=True)
class Protected:
    """The paths that one session may not change: absolute, a folder with its contents."""

    project: Path
    role: str
    paths: tuple[Path, ...]
    """Restored if they have changed."""
    told: tuple[Path, ...] = ()
    """Exceptions within them that people write at any time: changes are only reported."""
    exempt: tuple[Path, ...] = ()
    """Exceptions within them that the run itself or this session may write."""
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

    `own` are files of the run in `.cuggino`; `name` is the session's name in events, by default
    the role.
    """
    resolver = Resolver()
    root = resolver.path(project)
    row = ROWS[role]
    exempt, told = _exempt_and_told(root, role, specs)
    files = dict.fromkeys(_beside(path, resolver) for path in own)
    outside = not row.specs and not has_inside(root, specs, resolver)
    paths = (
        *protected_paths(root, None if row.specs else specs, resolver),
        *(() if row.specs or outside else _links_above(root / specs, root)),
    )
    # Git's housekeeping, which outlasts the commit that started it, writes a list of refs for
    # clients that fetch by plain HTTP.
    listed = (
        joined(path, "refs") for path in paths if path.name == "info" and path != root / specs
    )
    return Protected(
        project=root,
        role=role if name is None else name,
        paths=paths,
        told=tuple(path for path in told if path not in files),
        exempt=(*exempt, *files, *chain.from_iterable(listed)),
        specs=None if row.specs or outside else specs,
        looks=row.access != "writes",
        held=held,
        views=views,
    )


def _beside(path: Path, resolver: Resolver) -> Path:
    """Return the path in its resolved folder."""
    folder, _, name = str(path).rpartition("/")
    return path_of(f"{resolver.text(folder)}/{name}")


def _links_above(path: Path, root: Path) -> Iterator[Path]:
    """Yield the links among the path's parents, through which it could be replaced."""
    for parent in path.parents:
        if parent == root or not parent.is_relative_to(root):
            return
        if parent.is_symlink():
            yield parent


@lru_cache(maxsize=64)
def _exempt_and_told(
    root: Path, role: ViewRole, specs: str
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    row = ROWS[role]
    exempt = [*joined(root, *row.folders, *row.files), *joined(root / ".cuggino", *_OWN)]
    if role in _DELIVER:
        exempt.append(root / ".autonoe" / "status.json")  # written by the tools for deliverables
    if row.specs:
        exempt.append(root / specs)
    told = (path for path in joined(root / ".cuggino", *_PERSONS) if path not in exempt)
    return tuple(exempt), tuple(told)
