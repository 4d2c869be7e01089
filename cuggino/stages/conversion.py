"""Whether git stores the files of a work tree as they are, so that their hashes need no git.

Attributes and `core.autocrlf` can convert a file on its way into a commit.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

from reactivex import operators as ops

from cuggino.errors import ProcessError, ProcessFailed
from cuggino.operators import Flow, ask
from cuggino.sandbox import git_folders, home_of
from cuggino.sources import git_output

_ATTRIBUTES = ".gitattributes"
_SETTINGS = r"^(core\.(autocrlf|attributesfile)|attr\.tree)$"
_OFF = ("false", "no", "off", "0")
_MOST = 512
"""Repositories whose settings are kept in mind."""

SettingsState: TypeAlias = tuple[tuple[int, int, int] | None, ...]

_known: dict[Path, tuple[SettingsState, bool]] = {}
"""Whether the settings of a repository convert nothing, with the state of their files."""


def stores_as_is(top: Path, paths: Iterable[bytes]) -> Flow[bool]:
    """Return whether git stores these files of the repository at `top` byte for byte.

    False in doubt. Git is asked once for the settings, and again when their files change.

    Paths are relative to `top`, the folder with the `.git`.
    """
    folders = git_folders(top)
    if not folders or not (top / ".git").exists() or "GIT_ATTR_SOURCE" in os.environ:
        return False
    parents = {b""}
    for path in paths:
        parent = path
        while (parent := parent.rpartition(b"/")[0]) not in parents:
            parents.add(parent)
    if any((top / os.fsdecode(parent) / _ATTRIBUTES).exists() for parent in parents):
        return False
    user = _user_folder()
    shared = (user / "attributes", *_system_attributes(os.environ.get("PATH", "")))
    if any(place.exists() for place in (folders[-1] / "info" / "attributes", *shared)):
        return False
    return (yield from _has_plain_settings(top, folders))


def settings_state(folders: tuple[Path, ...]) -> SettingsState:
    """Return what differs when the settings of a repository or of its user have been written.

    `folders` are those of `git_folders`.
    """
    own = (folder / name for folder in folders for name in ("config", "config.worktree"))
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    home = home_of(os.environ) or Path("/")
    user = (Path(named),) if named else (_user_folder() / "config", home / ".gitconfig")
    return tuple(map(_print, (*own, *user)))


def _has_plain_settings(top: Path, folders: tuple[Path, ...]) -> Flow[bool]:
    state = settings_state(folders)
    known = _known.get(folders[0])
    if known is None or known[0] != state:
        while len(_known) >= _MOST:
            _known.pop(next(iter(_known)), None)
        known = _known[folders[0]] = state, (yield from _read(top))
    return known[1]


def _read(top: Path) -> Flow[bool]:
    command = ("-c", "core.fsmonitor=false", "config", "-z", "--get-regexp", _SETTINGS)
    output = git_output(*command, cwd=top, sweep=False)
    try:
        said = yield from ask(output.pipe(ops.last_or_default(b"")))
    except ProcessFailed as error:
        return error.child_exit_code == 1  # none of them is set
    except ProcessError:
        return False
    pairs = (one.partition("\n") for one in os.fsdecode(said or b"").split("\0") if one)
    values = {name: value if separator else "true" for name, separator, value in pairs}
    return all(value.lower() in _OFF for value in values.values())


def _user_folder() -> Path:
    """Return the folder where git looks for the user's own attributes and settings."""
    home = home_of(os.environ) or Path("/")
    return Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config", "git")


@lru_cache(maxsize=1)
def _system_attributes(path: str) -> tuple[Path, ...]:
    """Return where an installed git may keep attributes for all users."""
    found = shutil.which("git", path=path)
    prefixes = (
        [] if found is None else [Path(found).parent.parent, Path(found).resolve().parents[1]]
    )
    return tuple(dict.fromkeys(base / "etc" / "gitattributes" for base in (Path("/"), *prefixes)))


def _print(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size
