"""Agents of the loop that attack what their role may not write, under each boundary."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loops.writing import (
    QUICK,
    ROLES,
    BoundaryName,
    WritingProject,
    as_scenario,
    assert_held,
    attack,
    needs,
    sessions_for,
)

NAMES: tuple[BoundaryName, ...] = ("bubblewrap", "landlock", "none")
_ALWAYS = [
    row for row in QUICK if row["role"] == "planning" or ".mcp.json" in row.get("changed", ())
]


@pytest.mark.parametrize(
    "name",
    [
        "bubblewrap",
        pytest.param("none", marks=pytest.mark.real_agent),
        pytest.param("landlock", marks=pytest.mark.real_agent),
    ],
)
def test_nothing_protected_is_changed_at_the_end_of_a_stage(
    tmp_path: Path, name: BoundaryName
) -> None:
    """Writes that no kernel prevents are undone after the session, whose verdict is void."""
    needs(name, tmp_path)
    project = WritingProject(tmp_path / "arena")
    # A quarter: `test_real_writes.py` runs all under each boundary, and
    # `tests/stages/test_verification.py` proves what is put back for each kind of change.
    chosen = [*_ALWAYS, *QUICK[NAMES.index(name) :: 4]]
    attacked = attack(project, as_scenario(sessions_for(project, name, chosen)), name)
    assert_held(attacked, name)
    if name == "landlock":
        assert {"implementing"} == attacked.violated.keys()
    if name == "none":
        assert set(ROLES) == attacked.violated.keys()
    if name != "bubblewrap":
        assert {".specs/a.md", ".specs/b.md", ".mcp.json"} < attacked.violated["implementing"]
