"""Which files of a project may decide whether its check passes, beside the work itself.

No rule can know that, so it errs on the side of too many: what they do is measured, by running the
check with the versions of the start.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from cuggino.domain import is_test_file

_SOURCES = """
c cc clj cljs cpp cs cu cxx dart el elm erl ex exs f90 fs go groovy h hpp hs java jl js jsx kt kts
lua m ml mm mjs mts nim php pl pm proto py pyi pyx r rb rkt rs sass scala scm scss sql svelte swift
ts tsx vb vue wat zig
"""
_CONTENT = """
adoc avif bmp csv css eot flac gif htm html ico ipynb jpeg jpg less md mdx mp3 mp4 ogg otf pdf png
po pot rst svg tex tsv ttf txt wasm wav webm webp woff woff2 xhtml
"""
_WORK = frozenset((_SOURCES + _CONTENT).split())
"""Endings of source code, and of what is neither code nor a setting."""
_PROGRAM_NAMES = """
_pytest behave compileall coverage doctest flake8 mypy nose2 nox pylint pyright pytest ruff tox
unittest
"""
_PROGRAMS = frozenset(_PROGRAM_NAMES.split())
"""Modules that check: the project's own would take their place."""
_BY_NAME = re.compile(
    r"(?:^|[._-])(?:check|checks|ci|lint|qa|selftest|spec|test|tests|verify)(?:[._-]|$)"
    r"|\.config\.\w+$|^\.\w+rc\.[cm]?[jt]s$|^(?:gulpfile|gruntfile|jakefile)\."
    r"|^(?:conftest|noxfile|setup|sitecustomize|usercustomize)\.py$",
    re.IGNORECASE,
)


def may_decide(path: str, *, patterns: Sequence[str] = ()) -> bool:
    """Return whether a file may decide what the check command says, whatever the work is.

    These are tests; everything that is neither source code nor text, such as scripts, settings and
    files without an ending; modules that take the place of a program that checks (`pytest.py`); and
    what the `patterns` name.
    """
    name = PurePosixPath(path).name
    ending = name.rpartition(".")[2].lower() if "." in name.lstrip(".") else ""
    return (
        is_test_file(path)
        or _BY_NAME.search(name) is not None
        or ending not in _WORK
        or PurePosixPath(path).parts[0].removesuffix(".py") in _PROGRAMS
        or any(_matches(path, pattern) for pattern in patterns)
    )


def _matches(path: str, pattern: str) -> bool:
    pattern = pattern.removeprefix("./").rstrip("/")
    return fnmatchcase(path, pattern) or path.startswith(f"{pattern}/")
