"""The repository around a project: its folders, and what in them git runs or obeys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from cuggino.files import readable
from cuggino.sandbox.resolving import Resolver

GIT_PROTECTED = ("hooks", "config", "config.worktree", "info", "commondir")
"""Paths in git's folder that git runs or obeys."""


def top_of(project: Path) -> Path:
    """Return the top folder of the repository around the project; the project without one."""
    folders = (project, *project.parents)
    return next((folder for folder in folders if (folder / ".git").exists()), project)


def git_folders(project: Path, resolver: Resolver | None = None) -> tuple[Path, ...]:
    """Return the folder of the repository and, for a worktree, of the main repository."""
    for folder in (project, *project.parents):
        git = folder / ".git"
        if git.is_dir():
            return ((resolver or Resolver()).path(git),)
        if git.is_file():
            return tuple(_linked(git))
    return ()


def shared_objects(git: Path, depth: int = 5) -> Iterator[Path]:
    """Yield the folders of other repositories from which git reads objects, as in a slot."""
    listed = readable(git / "objects/info/alternates").decode("utf-8", "surrogateescape")
    for line in filter(None, listed.splitlines()):
        objects = (git / "objects" / line).resolve()
        if objects.is_dir():
            yield objects
            if depth:  # git itself follows no more levels
                yield from shared_objects(objects.parent, depth - 1)


def _linked(git: Path) -> Iterator[Path]:
    """Yield the folders that the `.git` file of a worktree or submodule names."""
    try:
        named = readable(git).decode("utf-8").removeprefix("gitdir:").strip()
        own = (git.parent / named).resolve()
        if own.is_dir():
            yield own
            common = own / "commondir"
            if common.is_file():
                yield (own / readable(common).decode("utf-8").strip()).resolve()
    except (OSError, ValueError):
        return


def submodule_settings(git: Path) -> Iterator[Path]:
    """Yield hooks and configuration of the submodules and worktrees of a repository."""
    for kind in ("modules", "worktrees"):
        for folder, folders, names in os.walk(git / kind):
            if "HEAD" in names:
                skipped = {"objects", "refs", "logs", *GIT_PROTECTED}
                folders[:] = [name for name in folders if name not in skipped]
                yield from (Path(folder, name) for name in GIT_PROTECTED)
