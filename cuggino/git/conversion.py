"""A check that git stores files byte for byte, so that they can be hashed without git.

Attributes and `core.autocrlf` can convert a file when it is committed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cuggino.errors import ProcessError
from cuggino.git.program import Git
from cuggino.git.settings import list_settings
from cuggino.operators import Flow
from cuggino.sandbox import git_folders, home_of

_SETTINGS = re.compile(
    r"core\.(autocrlf|attributesfile|excludesfile|filemode|ignorecase|longpaths"
    r"|precomposeunicode|symlinks|worktree|bare"
    r"|repositoryformatversion)|attr\.tree|extensions\.(objectformat|refstorage)"
)
"""Settings that determine how git reads and stores files."""
_CONVERTING = ("core.autocrlf", "core.attributesfile", "attr.tree")
_OFF = ("false", "no", "off", "0")
_MOST = 512
"""Maximum number of repositories whose settings are cached."""

SettingsState: TypeAlias = tuple[tuple[int, int, int] | None, ...]

_known: dict[Path, tuple[SettingsState, Mapping[str, str] | None]] = {}
"""The settings of a repository, with the state of their files; None if git cannot read them."""


def stores_as_is(git: Git, paths: Iterable[str]) -> Flow[bool]:
    """Return whether git stores these files of the repository byte for byte.

    False if in doubt. Git is asked once for the settings, and again when their files change.

    Paths are relative to git's folder, the one with the `.git`.
    """
    top = git.cwd
    if not _exists(f"{top}/.git") or "GIT_ATTR_SOURCE" in os.environ:
        return False
    parents = {""}
    for path in paths:
        parent = path
        while (parent := parent.rpartition("/")[0]) not in parents:
            parents.add(parent)
    if any(_exists(f"{top}/{parent}/.gitattributes") for parent in parents):
        return False
    folders = git_folders(top)
    user = _user_files()
    if not folders:
        return False
    places = (f"{folders[-1]}/info/attributes", user.attributes)
    if any(map(_exists, (*places, *_system_attributes(_variable("PATH"))))):
        return False
    settings = yield from settings_of(git)
    if settings is None:
        return False
    return all(settings.get(name, "false").lower() in _OFF for name in _CONVERTING)


def settings_state(folders: tuple[Path, ...]) -> SettingsState:
    """Return a value that changes when the settings of a repository or its user are written.

    `folders` are those of `git_folders`.
    """
    return _state_of(folders, _user_files().settings)


def _state_of(folders: tuple[Path, ...], user: tuple[str, ...]) -> SettingsState:
    own = (f"{folder}/{name}" for folder in folders for name in ("config", "config.worktree"))
    return tuple(map(_print, (*own, *user)))


def settings_of(git: Git) -> Flow[Mapping[str, str] | None]:
    """Return the settings that decide how git reads and stores files, by name in lower case.

    None if git cannot read them. Git is asked once, and again when the settings files change.
    """
    folders = git_folders(git.cwd.absolute())
    state = settings_state(folders)
    key = folders[0] if folders else git.cwd
    known = _known.get(key)
    if known is None or known[0] != state:
        while len(_known) >= _MOST:
            _known.pop(next(iter(_known)), None)
        known = _known[key] = state, (yield from _read(git))
    return known[1]


def _read(git: Git) -> Flow[Mapping[str, str] | None]:
    try:
        settings = yield from list_settings(git)
    except ProcessError:
        return None
    return {one.name: one.text for one in settings if _SETTINGS.fullmatch(one.name)}


class _UserFiles(NamedTuple):
    attributes: str
    settings: tuple[str, ...]


def _user_files() -> _UserFiles:
    """Return where git looks for the user's own attributes and settings."""
    home = home_of(os.environ) or ""
    folder = f"{_variable('XDG_CONFIG_HOME') or f'{home}/.config'}/git"
    named = _variable("GIT_CONFIG_GLOBAL")
    settings = (named,) if named else (f"{folder}/config", f"{home}/.gitconfig")
    return _UserFiles(f"{folder}/attributes", settings)


@lru_cache(maxsize=1)
def _system_attributes(path: str) -> tuple[str, ...]:
    """Return where an installed git may keep attributes for all users."""
    found = shutil.which("git", path=path)
    prefixes = (
        [] if found is None else [Path(found).parent.parent, Path(found).resolve().parents[1]]
    )
    return tuple(dict.fromkeys(f"{base}/etc/gitattributes" for base in ("", *prefixes)))


def _variable(name: str) -> str:
    return os.environ.get(name, "")


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - a Path would take as long again


def _print(path: str) -> tuple[int, int, int] | None:
    try:
        state = os.stat(path)  # noqa: PTH116 - a Path would take as long again
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size
