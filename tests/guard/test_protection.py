"""The cases of the file tools' protection: AUT-220 to AUT-223, AUT-163."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.guard.policy import Mode, Policy
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge
from tests.vectors import not_followed, rows

NOT_FOLLOWED = not_followed("protection")


def verdict(row: dict[str, Any]) -> tuple[str, str]:
    """Return the decision on the row's tool call, and the reason."""
    mode: Mode = "sync" if row["hook"] == "sync-write-restriction" else "run"
    # The cases name two projects; the tool's path says which.
    path = next(iter(row["tool_input"].values()), "")
    project = "/workspace" if path.startswith("/workspace") else "/project"
    policy = Policy(project=project)._replace(mode=mode)
    found = judge(policy, row["tool_name"], row["tool_input"], project, shfmt=find_shfmt())
    return found.decision, found.reason


def expected(row: dict[str, Any]) -> tuple[str, str]:
    """Return the row's expected decision, or the stricter one that it recommends."""
    decision = row.get("recommended_decision", row["decision"])
    return ("deny", row["reason"] or "") if decision == "block" else ("allow", "")


def is_met(row: dict[str, Any]) -> bool:
    """Return whether the decision and the reason are those of the row."""
    wanted, found = expected(row), verdict(row)
    return (
        wanted[0] == found[0] and wanted[1] in found[1] and bool(found[1]) == (wanted[0] == "deny")
    )


@pytest.mark.parametrize("row", rows("protection"), ids=lambda row: row["id"])
def test_cases(row: dict[str, Any]) -> None:
    """Each case is met, except those listed with a reason."""
    assert (row["id"] not in NOT_FOLLOWED) == is_met(row)


def test_reasons_are_verbatim() -> None:
    """A reason that a case specifies for a file tool is used verbatim."""
    told = [row for row in rows("protection") if row["reason"] and row["tool_name"] != "Bash"]
    assert len(told) > 5
    for row in told:
        assert row["reason"] == verdict(row)[1]
