"""Commands that the guard once let pass, run in the view of their role."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.arena import PROTECTED, Arena, enclosed_as_other, needs_bubblewrap
from tests.vectors import rows

ROWS = rows("role_writes")
_SLOW = ("npm", "npx", "ssh", "pip", "java", "gdb", "less")
QUICK = [row for row in ROWS if not any(word in row["command"] for word in _SLOW)]
"""Rows whose programs neither start slowly nor look for a network."""


def written(arena: Arena, row: Mapping[str, Any], run: Callable[[str], object]) -> list[str]:
    """Run the command of the row; return the paths that its role may not change and that differ."""
    names = PROTECTED if row["role"] == "implementing" else ["."]
    before = arena.state_of(names)
    run(str(row["command"]))
    after = arena.state_of(names)
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def changed_by(rows: list[dict[str, Any]], folder: Path) -> dict[str, list[str]]:
    """Run the commands, each in a new project; return what each changed."""
    boundary = needs_bubblewrap(folder)
    found = {}
    for number, row in enumerate(rows):
        arena = Arena(folder / str(number))
        found[row["id"]] = written(arena, row, partial(arena.run, boundary, row["role"]))
    return {name: paths for name, paths in found.items() if paths}


@pytest.mark.real_agent
@pytest.mark.parametrize("part", range(4))
def test_all_commands(tmp_path: Path, part: int) -> None:
    """No command changes a protected path, or anything in the project for a role that looks."""
    assert {} == changed_by(ROWS[part::4], tmp_path)


@pytest.mark.real_agent
def test_a_role_of_an_ordinary_user_writes_only_what_it_may(tmp_path: Path) -> None:
    """The same for some commands, run by a user who is not root."""
    needs_bubblewrap(tmp_path)
    found: dict[object, list[str]] = {}
    for number, row in enumerate(QUICK[::16]):
        arena = Arena(tmp_path / str(number))
        enclosure = enclosed_as_other(arena, row["role"])
        changed = written(arena, row, partial(arena.run_in, enclosure))
        if changed:
            found[row["id"]] = changed
    assert {} == found


def test_the_commands_work_without_a_view(tmp_path: Path) -> None:
    """Without a view, commands of each role change what they may not, so the tests above bite."""
    for role, command in (("implementing", "touch .specs/z"), ("reviewing", "touch src/z")):
        arena = Arena(tmp_path / role)
        bare = partial(subprocess.run, cwd=arena.project, shell=True, check=True)
        assert written(arena, {"role": role, "command": command}, bare)
