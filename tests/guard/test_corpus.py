"""The corpus of bypasses and everyday commands, row by row through the whole guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.guard.policy import Mode, Policy
from cuggino.guard.tools import judge
from tests.guard.judging import SHFMT, make_project, reason_of
from tests.vectors import not_followed, rows

CORPUS = rows("guard_corpus")
FAMILIES = sorted({row["family"] for row in CORPUS})
NOT_FOLLOWED = not_followed("guard_corpus")


def corpus_policy(options: dict[str, Any], project: str) -> Policy:
    """Return the policy that a row's options describe."""
    mode: Mode = "sync" if options.get("mode") == "sync" else "run"
    extra = options["extra_commands"]
    if isinstance(extra, dict):
        allowed = [*extra.get("base", []), *extra.get(mode, [])]
    else:
        allowed = extra if mode == "run" else []
    profiles = options["profiles"]
    return Policy(
        project,
        mode=mode,
        profiles=None if profiles is None else tuple(profiles),
        extra_commands=tuple(allowed),
        pkill_targets=tuple(options.get("extra_pkill_targets") or ()),
        allow_destructive=options["allow_destructive"],
    )


def moved(value: Any, project: str) -> Any:
    """Return the value with the project's real path."""
    if isinstance(value, str):
        return value.replace("/project", project)
    if isinstance(value, dict):
        return {key: moved(item, project) for key, item in value.items()}
    return value


def decision(row: dict[str, Any], folder: Path) -> str:
    """Return the guard's decision on the row's tool call."""
    project = str(make_project(folder / "project", row.get("fs")))
    policy = corpus_policy(row["options"], project)
    cwd = moved(row["options"]["cwd"], project)
    if row["tool"] in ("Bash", "Monitor") and set(row["input"]) <= {"command", "description"}:
        command = row["input"].get("command")
        return "deny" if command and reason_of(moved(command, project), policy, cwd) else "allow"
    return judge(policy, row["tool"], moved(row["input"], project), cwd, shfmt=SHFMT).decision


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_of_a_family(family: str, tmp_path: Path) -> None:
    """Every row of the family is decided as expected, except those listed as not followed."""
    wrong = [
        (row["id"], row["command"])
        for number, row in enumerate(CORPUS)
        if row["family"] == family
        and row["id"] not in NOT_FOLLOWED
        and decision(row, tmp_path / str(number)) != row["expected"]
    ]
    assert [] == wrong


@pytest.mark.parametrize("row_id", sorted(NOT_FOLLOWED))
def test_rows_listed_as_not_followed(row_id: str, tmp_path: Path) -> None:
    """A row is listed as not followed only while it is decided otherwise."""
    row = next(row for row in CORPUS if row["id"] == row_id)
    assert row["expected"] != decision(row, tmp_path)
