"""The layout of a repository: where its parts are, and the settings its work tree depends on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cuggino.git.branch import current_branch
from cuggino.git.conversion import SettingsState, settings_of, settings_state
from cuggino.git.head import commit_at_head
from cuggino.git.objects import Objects
from cuggino.git.program import Git
from cuggino.git.settings import ordinary_repository
from cuggino.operators import Flow
from cuggino.sandbox import git_folders

_USUAL_SETTINGS = (
    *(("core.filemode", "true"), ("core.symlinks", "true")),
    *(("core.ignorecase", "false"), ("core.precomposeunicode", "false")),
)
_PARTS = ("objects", "index", "info/exclude")
_KEPT = 512
"""Maximum number of cached layouts: many loops may share a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The paths of a repository's parts, and the settings that its work tree depends on."""

    top: Path
    git_dir: Path
    """The folder of the work tree's own state, such as its index."""
    common: Path
    """The folder of references and settings, which linked work trees share."""
    objects: Path
    index: Path
    exclude: Path
    prefix: str = ""
    """The path from the top to the folder that was asked about, "" or with a slash at its end."""
    settings: Mapping[str, str]

    @property
    def has_ref_files(self) -> bool:
        """True if references are stored as files."""
        return self.settings.get("extensions.refstorage", "files") == "files"

    @property
    def algorithm(self) -> str:
        """The hash function of its objects."""
        return self.settings.get("extensions.objectformat", "sha1")

    @property
    def store(self) -> Objects:
        return Objects(self.objects, self.algorithm)

    @property
    def is_usual(self) -> bool:
        """True if names, links and executable bits are kept as on every Unix file system."""
        return all(self.settings.get(name, usual) == usual for name, usual in _USUAL_SETTINGS)

    def head(self) -> str | None:
        """Return the current commit; None before the first one, or if it cannot be read."""
        return commit_at_head(self.git_dir, self.common)

    def locks(self, branch: str = "") -> Iterator[Path]:
        """Yield the locks that a killed git may leave behind, on this branch.

        None of them is outside of the repository, to where an agent may have made links.
        """
        found = [self.index.with_name(f"{self.index.name}.lock"), self.git_dir / "HEAD.lock"]
        if branch:
            found.append(self.common / f"refs/heads/{branch}.lock")
        for lock in found:
            place = lock.parent.resolve()
            if any(place.is_relative_to(one) for one in (self.git_dir, self.common)):
                yield lock


_layouts: dict[Path, tuple[tuple[tuple[Path, ...], SettingsState], Layout]] = {}
"""Layouts by folder, each with the state of the settings for which it holds."""


def layout_of(git: Git) -> Flow[Layout]:
    """Return the layout of the repository around the folder of `git`.

    Git is asked once, and again when the settings files change.

    Raises:
        ProcessError: there is none, or it has no work tree.
    """
    folders = git_folders(git.cwd.absolute())
    state = (folders, settings_state(folders))
    known = _layouts.get(git.cwd)
    if known is None or known[0] != state:
        while len(_layouts) >= _KEPT:
            _layouts.pop(next(iter(_layouts)), None)
        known = _layouts[git.cwd] = state, (yield from _read_layout(git))
    return known[1]


def checked_out(git: Git, layout: Layout) -> Flow[str]:
    """Return the branch that is checked out, "" if HEAD is detached."""
    if layout.has_ref_files:
        return current_branch(git.cwd) or ""
    said = yield from git.run("symbolic-ref", "--quiet", "HEAD")
    return said.text.removeprefix("refs/heads/")


def _read_layout(git: Git) -> Flow[Layout]:
    """Ask git, unless the repository is one like any other."""
    cwd = git.cwd
    settings = yield from settings_of(git)
    found = ordinary_repository(cwd)
    if found is not None and settings is not None and _is_around_its_git(settings):
        own = found.resolve()
        objects, index, exclude = (own / name for name in _PARTS)
        return Layout(
            top=cwd.resolve(),
            git_dir=own,
            common=own,
            objects=objects,
            index=index,
            exclude=exclude,
            settings=settings,
        )
    words = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    paths = (word for name in _PARTS for word in ("--git-path", name))
    said = yield from git.must("rev-parse", *words, *paths)
    top, *others = said.text.split("\n")
    git_dir, common, objects, index, exclude = ((cwd / path).resolve() for path in others)
    prefix = f"{os.path.relpath(cwd.resolve(), top)}/"
    return Layout(
        top=Path(top),
        git_dir=git_dir,
        common=common,
        objects=objects,
        index=index,
        exclude=exclude,
        prefix="" if prefix.startswith(("./", "../")) else prefix,
        settings=settings or {},
    )


def _is_around_its_git(settings: Mapping[str, str]) -> bool:
    """Return whether the work tree of a repository is the folder that its `.git` is in.

    The version is among the settings of every repository, unless this git cannot read it.
    """
    return (
        "core.repositoryformatversion" in settings
        and "core.worktree" not in settings
        and settings.get("core.bare", "false") == "false"
    )
