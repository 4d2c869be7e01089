"""The original's commands with its decisions, and the recommended ones."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.guard.policy import Mode, Policy
from tests.guard.judging import make_project, reason_of
from tests.vectors import not_followed, rows

FILES = ("bash_security", "bash_security_oracle", "bash_security_hardening")
ROWS = {row["id"]: row for name in FILES for row in rows(name)}
NOT_FOLLOWED = {row: why for name in FILES for row, why in not_followed(name).items()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Create one project for all rows, none of which changes it."""
    return str(make_project(tmp_path_factory.mktemp("commands") / "project"))


def vector_policy(row: dict[str, Any], project: str) -> Policy:
    """Return the policy that a row's options describe."""
    options = row["options"]
    mode: Mode = "sync" if options.get("mode") == "sync" else "run"
    extra = options.get("allowCommands") or []
    if isinstance(extra, dict):
        extra = [*extra.get("base", []), *extra.get(mode, [])]
    elif mode == "sync":
        extra = []
    needs_none = options.get("allowDestructive") and not options.get("projectDir")
    return Policy(
        "" if needs_none else project,
        mode=mode,
        profiles=tuple(row["profiles"]) if row["profiles"] else None,
        extra_commands=tuple(extra),
        pkill_targets=tuple(options.get("allowPkillTargets") or ()),
        allow_destructive=bool(options.get("allowDestructive")),
    )


def is_met(row: dict[str, Any], project: str) -> bool:
    """Return whether the row gets its decision and its reason."""
    command = (row["command"] or "").replace("/project", project)
    reason = reason_of(command, vector_policy(row, project), project) if command else ""
    allowed = row.get("recommended_allowed", row.get("allowed"))
    text = "" if allowed else (row.get("reason") or "").replace("/project", project)
    return allowed == (not reason) and text in reason


@pytest.mark.real_agent
@pytest.mark.parametrize("name", FILES)
def test_rows_of_a_file(name: str, project: str) -> None:
    """Every row gets its decision, with its text in the reason (AUT-160 to AUT-219)."""
    wrong = [
        row["id"]
        for row in rows(name)
        if row["id"] not in NOT_FOLLOWED and not is_met(row, project)
    ]
    assert [] == wrong


@pytest.mark.parametrize("row_id", sorted(NOT_FOLLOWED))
def test_rows_listed_as_not_followed(row_id: str, project: str) -> None:
    """A row is listed as not followed only while it is decided otherwise."""
    assert not is_met(ROWS[row_id], project)
