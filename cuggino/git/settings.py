"""The settings of git: listed, those that start programs, and an environment for git without them.

An unpacked archive can contain a `.git/config` whose programs run even on a read-only command:
`git status` starts `core.fsmonitor` and the filters of changed files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from cuggino.errors import ProcessError
from cuggino.git.head import head_of
from cuggino.git.program import Git
from cuggino.operators import Flow
from cuggino.processes import Said

OWN_SCOPES = frozenset({"local", "worktree"})
"""The scopes of settings of the repository itself, not of its user."""
STORED_SCOPES = OWN_SCOPES | {"system", "global"}
"""The scopes of settings in files, not of the command line or the environment."""

_LIST = ("--list", "--show-scope", "-z")
_STARTS = re.compile(
    r"core\.(fsmonitor|hookspath|sshcommand|gitproxy|pager|editor|askpass|alternaterefscommand)"
    r"|diff\.(external|.+\.(command|textconv))"
    r"|filter\..+\.(clean|smudge|process)"
    r"|gpg\.(.+\.)?(program|defaultkeycommand)"
    r"|(merge\..+\.driver)|credential\.(.+\.)?helper|remote\..+\.(uploadpack|receivepack|vcs)"
    r"|sequence\.editor|uploadpack\.packobjectshook|trailer\..+\.(command|cmd)",
    re.IGNORECASE | re.DOTALL,
)
_HARMLESS = ("", "true", "false")
"""Values that name no program; `core.fsmonitor = true` is git's own."""
_FILTER = re.compile(r"(filter\..+)\.(?:clean|smudge|process)", re.IGNORECASE | re.DOTALL)


class GitSetting(NamedTuple):
    """A setting."""

    name: str
    """Lowercase, except for the middle part."""
    value: str | None
    """None if only the name is given, which means true."""

    @property
    def text(self) -> str:
        """The value, as git reads a setting that can be true or false."""
        return "true" if self.value is None else self.value


def settings_in_list(
    fields: Sequence[str], *, scopes: Collection[str] | None = None
) -> list[GitSetting]:
    """Parse the output of `git config --list --show-scope -z`, in the order in which git reads it.

    With `scopes` only the settings of these are returned.
    """
    found = []
    for scope, entry in zip(fields[::2], fields[1::2], strict=True):
        if scopes is None or scope in scopes:
            name, separator, value = entry.partition("\n")
            found.append(GitSetting(name, value if separator else None))
    return found


def list_settings(
    git: Git, *where: str, scopes: Collection[str] | None = None
) -> Flow[list[GitSetting]]:
    """Return all settings, or those of the scopes; `where` are options of `git config`.

    Raises:
        ProcessError: git cannot read them.
    """
    listed = yield from git.must("config", *where, *_LIST)
    return settings_in_list(listed.fields, scopes=scopes)


def program_settings(folder: Path) -> tuple[GitSetting, ...]:
    """Return the repository's own settings that start programs; none without a repository."""
    listed = _git(folder, "config", *_LIST)
    if listed is None:
        return ()
    own = settings_in_list(listed.fields, scopes=OWN_SCOPES)
    return tuple(dict.fromkeys(one for one in own if starts_program(*one)))


def starts_program(name: str, value: str | None) -> bool:
    """Return whether a setting names a program that git starts."""
    return _STARTS.fullmatch(name) is not None and (value or "").strip().lower() not in _HARMLESS


def ordinary_repository(folder: Path) -> Path | None:
    """Return the `.git` of a folder that git treats as the top level of an ordinary repository.

    Such a repository shares nothing with another one and belongs to this user. Its settings may
    still name another work tree.
    """
    git = folder / ".git"
    try:
        owners = {folder.stat().st_uid, git.stat().st_uid, git.lstat().st_uid}
    except OSError:
        return None
    is_plain = not git.is_file() and not (git / "HEAD").is_symlink() and _is_ordinary(git)
    return git if is_plain and owners == {os.geteuid()} else None


def git_folder(folder: Path) -> Path | None:
    """Return the folder with the hooks and refs of the repository around `folder`, if any.

    Git is asked only if the folder itself is not the top of an ordinary repository.
    """
    own = folder / ".git"
    if _is_ordinary(own):
        return own
    asked = _git(folder, "rev-parse", "--git-common-dir")
    return None if asked is None else folder / asked.text


def _is_ordinary(git: Path) -> bool:
    """Return whether git treats the folder as a repository that shares nothing with another."""
    return (
        head_of(git) != ""
        and all(os.access(git / name, os.X_OK) for name in ("objects", "refs"))
        and not (git / "commondir").exists()
    )


def looking_environment(folder: Path) -> dict[str, str]:
    """Return the variables for a git that starts no programs that the repository names.

    They turn off its file monitor, hooks, filters and every way to fetch; add them to those of
    `git_environment`. They cannot turn off external diffs and text conversions, which only options
    of `git diff` do, and the git that checks submodules for changes uses the submodules' settings.
    """
    pairs = {"core.fsmonitor": "false", "core.hooksPath": os.devnull, "log.showSignature": "false"}
    for name, _ in program_settings(folder):
        if found := _FILTER.fullmatch(name):
            pairs |= {f"{found[1]}.clean": "", f"{found[1]}.process": ""}
            pairs[f"{found[1]}.required"] = "false"
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() else 0
    variables = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
    for number, (name, value) in enumerate(pairs.items(), first):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {**variables, "GIT_CONFIG_COUNT": str(first + len(pairs))}


def _git(folder: Path, *args: str) -> Said | None:
    """Run a git that only reads settings; None if it fails."""
    try:
        done = Git(cwd=folder).now(*args)
    except ProcessError:
        return None
    return done if done.code == 0 else None
