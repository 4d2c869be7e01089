"""Paths of a project: their changes, and which of them are tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

PathState: TypeAlias = Mapping[str, str]
"""Paths, relative to the project, with a digest of their content each."""

_TEST_FOLDERS = frozenset(
    {"__fixtures__", "__snapshots__", "__tests__", "e2e", "fixtures", "spec", "test", "testdata"}
    | {"tests"}
)
_TEST_FILE = re.compile(
    r"(tests?|test_.+|.+_tests?|.+[.-](cy|e2e|tests?|spec)|.+_spec|.*[a-z0-9](Spec|Tests?)"
    r"|Test[A-Z]\w*|conftest)\.\w+$|.+\.(bats|feature|snap|t)$"
)
_CACHES = (
    *("__pycache__", "*.py[co]", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"),
    *("*.egg-info", ".coverage", ".cache", ".gradle", ".DS_Store"),
)
"""Names of files and folders that compilers and tests write, and write again when they are gone."""


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


def is_test_file(path: str) -> bool:
    """Return whether a path looks like a test, by the usual names of folders and files."""
    place = PurePosixPath(path)
    is_among_tests = not _TEST_FOLDERS.isdisjoint(place.parts[:-1])
    return is_among_tests or _TEST_FILE.match(place.name) is not None


def is_cache(path: str) -> bool:
    """Return whether a path is or lies in a cache of compilers or tests, by the usual names."""
    parts = PurePosixPath(path).parts
    return any(fnmatchcase(part, cache) for part in parts for cache in _CACHES)
