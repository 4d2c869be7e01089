"""The changed files that may decide whether the check passes, besides the work itself.

No rule can know that. What these files do is measured, by running the check with the versions of
the start, so a file too many costs one answer of the reviewer at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from cuggino.domain import is_test_file

_ENDINGS = """
awk bash bat bazel bzl cfg cmake conf env gradle inc ini jq kdl ksh mak mk nix properties ps1 sh
toml zsh
"""
_SETTINGS = frozenset(_ENDINGS.split())
"""Endings of scripts and settings."""
_PROGRAM_NAMES = """
_pytest behave cargo compileall coverage deno doctest flake8 go jest just make mocha mypy node nose2
nox npm npx pnpm pylint pyright pytest python python3 ruff tox unittest vitest yarn
"""
_PROGRAMS = frozenset(_PROGRAM_NAMES.split())
"""Programs and modules that check: the project's own would take their place."""
_IN_THEIR_PLACE = re.compile(
    r"^\.|^(?:conftest|noxfile|sitecustomize|usercustomize)\.py$|^(?:setup|tox)\.cfg$"
    r"|^(?:bunfig|clippy|pyproject|pytest|ruff|rustfmt)\.toml$|^(?:mypy|pytest|tox)\.ini$"
    r"|^(?:biome|deno|pyrightconfig)\.jsonc?$|^pylintrc$|\.config\.\w+$|^(?:GNU)?makefile$"
    # often included where they exist: local.mk, settings_local.py
    r"|\.(?:inc|mak|mk)$|(?:^|[._-])local\.(?:[cm]?[jt]s|bash|cfg|conf|env|ini|json|py|rb|sh|toml|ya?ml)$"
)
"""Names of files that change how programs check as soon as they exist."""
_BY_NAME = re.compile(
    r"(?:^|[._-])(?:checks?|ci|expected|golden|harness|lint|qa|selftest|spec|tests?|verify)"
    r"(?:[._-]|$)"
    r"|\.config\.\w+$|^(?:gulpfile|gruntfile|jakefile)\.|^(?:conftest|noxfile|setup)\.py$"
    r"|^(?:composer|deno|package|project|tsconfig.*|turbo|nx)\.json$|^(?:build|phpunit|pom)\.xml"
    r"|^(?:docker-)?compose.*\.ya?ml$|^taskfile\.ya?ml$|^rakefile|file$",
    re.IGNORECASE,
)
_FOLDERS = frozenset({".ci", "check", "checks", "ci", "expected", "golden", "qa"})
"""Folders of what checks and of what they read."""
_NOT_EXECUTABLE = 126
"""The exit code of a shell that may not execute a file."""
_NOTHING_RAN = re.compile(
    r"no tests ran|collected 0 items|ran 0 tests|no tests? (?:files |modules )?found|no test files"
    r"|no test specified|no tests executed|no examples found"
    r"|start directory is not importable|could not find '[^'\n]*\btests?\b"
    r"|no rule to make target [^,\n]+\.\s+stop|missing script:",
    re.IGNORECASE,
)


def deciding_files(
    changed: Iterable[str],
    added: Iterable[str],
    *,
    had_tests: bool,
    patterns: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the files, sorted, that may decide the result of the check regardless of the work.

    Of the `changed` and removed ones these are tests, scripts, settings, files without an ending,
    and what `patterns` names. Of the `added` ones they are files that change how programs check as
    soon as they exist, such as `conftest.py` or `pytest.py`, and tests. The first tests of a
    project can weaken nothing, but they rest on such files, so they are named beside them only.
    """
    found = {path for path in changed if _decides(path, patterns)}
    tests: set[str] = set()
    for path in added:
        parts = PurePosixPath(path).parts
        stems = {parts[0].removesuffix(".py"), parts[-1]}
        is_theirs = bool(_IN_THEIR_PLACE.search(parts[-1])) or not stems.isdisjoint(_PROGRAMS)
        is_named = any(_matches(path, pattern) for pattern in patterns)
        if is_named or is_theirs:
            found.add(path)
        elif is_test_file(path):
            tests.add(path)
    return tuple(sorted(found | tests if had_tests or found else found))


def ran_nothing(output: str, *, exit_code: int | None = 1) -> bool:
    """Return whether a check reports that it found no test to run, or cannot be run yet."""
    return exit_code == _NOT_EXECUTABLE or _NOTHING_RAN.search(output) is not None


def _decides(path: str, patterns: Sequence[str]) -> bool:
    name = PurePosixPath(path).name
    ending = name.rpartition(".")[2].lower() if "." in name.lstrip(".") else ""
    return (
        is_test_file(path)
        or name.startswith(".")
        or ending in _SETTINGS
        or ending == ""
        or _BY_NAME.search(name) is not None
        or PurePosixPath(path).parts[0].removesuffix(".py") in _PROGRAMS
        or not _FOLDERS.isdisjoint(PurePosixPath(path).parts[:-1])
        or any(_matches(path, pattern) for pattern in patterns)
    )


def _matches(path: str, pattern: str) -> bool:
    pattern = pattern.removeprefix("./").rstrip("/")
    return fnmatchcase(path, pattern) or path.startswith(f"{pattern}/")
