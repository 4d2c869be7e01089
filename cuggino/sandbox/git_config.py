"""The files of a project that git's settings include or run.

Git obeys them outside of any view: when it signs or pushes for the user, and whenever the user runs
it later. No agent may write them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from cuggino.files import readable

_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$", re.DOTALL)
_INCLUDES = re.compile(r"include\.path|includeif\..*\.path", re.DOTALL)
_RUNS = re.compile(
    r"gpg\.(.*\.)?(program|defaultkeycommand)|core\.(sshcommand|gitproxy|askpass)"
    r"|credential\.(.*\.)?helper|remote\..*\.(uploadpack|receivepack)",
    re.DOTALL,
)
"""Settings that start a program where git has the logins and keys of the user."""
_RUNS_ANYWHERE = re.compile(
    rf"{_RUNS.pattern}|filter\..*\.(clean|smudge|process)|core\.fsmonitor|merge\..*\.driver"
    r"|diff\.(external|.*\.(command|textconv))",
    re.DOTALL,
)
"""These, and others that start a program where git itself has a view."""
_DEEPEST = 10
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


def named_by_settings(
    root: Path, git_folders: Iterable[Path], home: Path | None, *, has_view: bool = True
) -> Iterator[Path]:
    """Yield the files below `root` that settings of the repository or its user name.

    Also those that do not exist yet; and if git has no view, all programs that it may start.
    """
    runs = _RUNS if has_view else _RUNS_ANYWHERE
    files = [folder / name for folder in git_folders for name in ("config", "config.worktree")]
    if named := os.environ.get("GIT_CONFIG_GLOBAL"):
        files.append(Path(named))
    elif home is not None:
        folder = os.environ.get("XDG_CONFIG_HOME") or home / ".config"
        files += [home / ".gitconfig", Path(folder) / "git" / "config"]
    for file in files:
        yield from _named_in(file, root, home, runs, 0)


def _named_in(
    file: Path, root: Path, home: Path | None, runs: re.Pattern[str], depth: int
) -> Iterator[Path]:
    for key, value in settings_in(file):
        if _INCLUDES.fullmatch(key):
            included = _expanded(value, file.parent, home)
            if included.is_relative_to(root):
                yield included
            if depth < _DEEPEST:
                yield from _named_in(included, root, home, runs, depth + 1)
        elif runs.fullmatch(key):
            for word in _words(value):
                named = _expanded(word, root, home)
                if named.is_relative_to(root) and named.is_file():
                    yield named


def settings_in(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the settings in a file of git, each key in lower case but for its middle part.

    A file that cannot be read has none, and lines that are not understood are skipped.
    """
    text = readable(file).decode("utf-8", "surrogateescape")
    prefix = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        rest = line.strip()
        if found := _SECTION.match(rest):
            below = re.sub(r"\\(.)", r"\1", found[2]) if found[2] is not None else None
            prefix = f"{found[1].lower()}." + (f"{below}." if below is not None else "")
            rest = rest[found.end() :].strip()
        if rest[:1] not in ("", "#", ";", "[") and (key := _KEY.match(rest)):
            yield prefix + key[1].lower(), _value(key[2] or "")


def _value(text: str) -> str:
    """Return a value without quotes and comments."""
    value, spaces, quoted = "", "", False
    letters = iter(text)
    for letter in letters:
        if letter in "#;" and not quoted:
            break
        if letter == '"':
            quoted = not quoted
            value, spaces = value + spaces, ""
        elif letter.isspace() and not quoted:
            spaces += letter
        else:
            if letter == "\\":
                escaped = next(letters, "")
                letter = _ESCAPES.get(escaped, escaped)
            value, spaces = value + spaces + letter, ""
    return value


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value.removeprefix("!"))
    except ValueError:
        return value.split()


def _expanded(path: str, folder: Path, home: Path | None) -> Path:
    if path.startswith("~/") and home is not None:
        return Path(os.path.normpath(home / path[2:]))
    return Path(os.path.normpath(folder / path))
