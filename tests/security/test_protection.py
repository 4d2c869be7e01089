"""The cases of the file tools' protection: AUT-220 to AUT-223, AUT-163."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.security.policy import Mode, Policy
from cuggino.security.shell.shfmt import find_shfmt
from cuggino.security.tools import judge
from tests.vectors import not_followed, rows

NOT_FOLLOWED = not_followed("protection")


def verdict(row: dict[str, Any]) -> tuple[str, str]:
    """What is decided on the row's tool call, and why."""
    mode: Mode = "sync" if row["hook"] == "sync-write-restriction" else "run"
    # The cases name two projects; the tool's path says which.
    path = next(iter(row["tool_input"].values()), "")
    project = "/workspace" if path.startswith("/workspace") else "/project"
    policy = Policy(project=project)._replace(mode=mode)
    found = judge(policy, row["tool_name"], row["tool_input"], project, shfmt=find_shfmt())
    return found.decision, found.reason


def expected(row: dict[str, Any]) -> tuple[str, str]:
    """What the row wants; where a stricter answer is recommended, that one."""
    decision = row.get("recommended_decision", row["decision"])
    return ("deny", row["reason"] or "") if decision == "block" else ("allow", "")


def is_met(row: dict[str, Any]) -> bool:
    """Whether the decision is that of the row, and its words are in the reason."""
    wanted, found = expected(row), verdict(row)
    return (
        wanted[0] == found[0] and wanted[1] in found[1] and bool(found[1]) == (wanted[0] == "deny")
    )


@pytest.mark.parametrize("row", rows("protection"), ids=lambda row: row["id"])
def test_a_case_is_decided_as_it_says(row: dict[str, Any]) -> None:
    """Each case is met, unless it is listed with a reason; then it is not."""
    assert (row["id"] not in NOT_FOLLOWED) == is_met(row)


def test_the_reasons_are_literally_those_of_the_specification() -> None:
    """Where a case gives a reason for a file tool, nothing is added to it."""
    told = [row for row in rows("protection") if row["reason"] and row["tool_name"] != "Bash"]
    assert len(told) > 5
    for row in told:
        assert row["reason"] == verdict(row)[1]
