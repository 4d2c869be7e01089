"""The files on which a check depends, and their changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

PathState: TypeAlias = Mapping[str, str]
"""Paths, relative to the project, with a digest of their content each."""

_READ_BY = {
    "just": ("justfile", "Justfile", ".justfile"),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "npm": ("package.json",),
    "nox": ("noxfile.py",),
    "pnpm": ("package.json",),
    "pytest": ("pytest.ini", ".pytest.ini", "tox.ini"),
    "rake": ("Rakefile", "rakefile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
    "yarn": ("package.json",),
}
"""Files that a check command's program reads although the command does not name them."""

_TEST_FOLDERS = frozenset({"__tests__", "e2e", "spec", "test", "tests"})
_TEST_FILE = re.compile(
    r"(test_.+|.+_test|.+[.-](test|spec)|.+_spec|.*[a-z0-9]Tests?|conftest)\.\w+$"
)
_OPERATOR = re.compile(r"[;&|()<>]+$")


_SKIPS = re.compile(
    r"""
    \bmark\.(skip|skipif|xfail)\b | \b(pytest|unittest)\.(skip\w*|xfail|expectedFailure)\b
    | @(skip|skipIf|skipUnless|expectedFailure)\b | \.skipTest\(
    | \b(it|test|describe|context|suite|specify)\.(skip|only|todo|fixme|failing)\b
    | (?<![\w.])(xit|xtest|xdescribe|xcontext|xspecify|fit|fdescribe|fcontext)\(\s*["'`]
    | @(Disabled|Ignore)\b | \[Ignore\b | \bSkip\s*=\s*"
    | \b[tb]\.Skip(f|Now)?\( | \#\[ignore\b | \bXCTSkip | \bmarkTest(Skipped|Incomplete)\(
    | ^\s*(skip|pending)(\s+(["']|if\b|unless\b)|\s*$)
    """,
    re.VERBOSE,
)


_BEGINS = re.compile(
    r"""
    ^\s*(async\s+)?def\s+test | ^\s*func\s+(\([^)]*\)\s*)?[tT]est
    | @Test\b | \[(Fact|Theory|Test)\b
    | \#\[(tokio::)?test\b | (?<![\w.])(it|test|specify)(\.\w+)?\(\s*["'`] | ^\s*(it|specify)\s+["']
    """,
    re.VERBOSE,
)


class PathChange(NamedTuple):
    """The change of a path between two states."""

    path: str
    kind: Literal["added", "changed", "removed"]


def path_changes(before: PathState, after: PathState) -> tuple[PathChange, ...]:
    """Return the changes between two states, sorted by path."""
    changes: list[PathChange] = []
    for path in sorted({*before, *after}):
        if path not in before:
            changes.append(PathChange(path, "added"))
        elif path not in after:
            changes.append(PathChange(path, "removed"))
        elif before[path] != after[path]:
            changes.append(PathChange(path, "changed"))
    return tuple(changes)


def files_of_command(command: str) -> tuple[str, ...]:
    """Return the paths that a shell command may read its checks from, whether they exist or not.

    These are its words, within quotes too, below each folder that it enters with `cd`, and the
    files that programs such as `make` or `npm` read by themselves.
    """
    return tuple(dict.fromkeys(_files_of(command, depth=3)))


def _files_of(command: str, depth: int) -> Iterator[str]:
    folder = PurePosixPath()
    previous = ""
    for word in _words(command):
        if previous == "cd" and not _OPERATOR.match(word):
            folder /= word
            previous = word
            continue
        if " " in word and depth:
            yield from (str(folder / path) for path in _files_of(word, depth - 1))
        if not _OPERATOR.match(word) and not word.startswith("-"):
            yield from dict.fromkeys((str(folder / word), str(PurePosixPath(word))))
            for name in _READ_BY.get(PurePosixPath(word).name, ()):
                yield from dict.fromkeys((str(folder / name), name))
        previous = word


def _words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # an unclosed quote, which the shell rejects as well
        return command.split()


def is_test_file(path: str) -> bool:
    """Return whether a path looks like a test, by the usual names of folders and files."""
    parts = PurePosixPath(path).parts
    return not _TEST_FOLDERS.isdisjoint(parts[:-1]) or has_test_name(path)


def has_test_name(path: str) -> bool:
    """Return whether the name of the file alone is one of a test."""
    return _TEST_FILE.match(PurePosixPath(path).name) is not None


def begins_test(line: str) -> bool:
    """Return whether a line of a test file begins a test."""
    return _BEGINS.search(line) is not None


def skips_tests(line: str) -> bool:
    """Return whether a line of a test marks tests to be skipped, or all others by `only`."""
    return _SKIPS.search(line) is not None


def is_named(path: str, text: str) -> bool:
    """Return whether the file name of the path occurs in the text as a whole word."""
    name = re.escape(PurePosixPath(path).name)
    return re.search(rf"(?<![\w.-]){name}(?![\w-])", text) is not None
