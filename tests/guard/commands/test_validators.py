"""The validators of `chmod`, `pkill`, `rm`, `mv` and `bin/dev.sh`, and the allowlists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.guard.commands.processes import chmod_reason, pkill_reason
from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
from cuggino.guard.profiles import PROFILES, READING, WRITING, listed, pkill_targets
from tests.guard.judging import make_project, reason_of
from tests.vectors import not_followed, rows

ROWS = rows("validators")
NOT_FOLLOWED = not_followed("validators")


def validated(row: dict[str, Any], folder: Path) -> tuple[str, str]:
    """Return why the row's arguments are denied, and the words required in the reason."""
    project = str(make_project(folder / "project"))
    args = row["args"]
    wanted = (row["reason"] or "").replace("/project", project)
    policy = Policy(project, allow_destructive=True)
    kind = row["fn"].removeprefix("validate_")
    if kind == "chmod":
        return chmod_reason(args[0]), wanted
    if kind == "pkill":
        return pkill_reason(args[0], args[1]), wanted
    if kind == "path_within_project":
        state = row["fs"] or {}
        if state.get("realpath_error"):
            (folder / "project" / args[0]).symlink_to(args[0].removeprefix("./"))
        elif state.get("exists") and ".." not in args[0]:
            (folder / "project" / args[0]).write_text("x", encoding="utf-8")
        return Paths(policy, temporary=()).write(args[0], [project]), wanted
    words = ["bin/dev.sh" if kind == "dev_script" else kind, *args[0]]
    return reason_of(" ".join(words), policy), wanted


def is_met(row: dict[str, Any], folder: Path) -> bool:
    """Return True if the row's decision and reason are met."""
    reason, wanted = validated(row, folder)
    return row["allowed"] == (not reason) and wanted in reason


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in ROWS])
def test_recorded_decisions(row: dict[str, Any], tmp_path: Path) -> None:
    """Each row is met, except those listed as not followed (AUT-166 to AUT-170)."""
    assert is_met(row, tmp_path) == (row["id"] not in NOT_FOLLOWED)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in rows("profiles")])
def test_lists_have_all_programs_of_both_revisions(row: dict[str, Any]) -> None:
    """Every program and target of either revision's profiles is in ours (AUT-172)."""
    assert set(row["base"]) <= {*READING, *WRITING}
    for name, commands in row["commands"].items():
        assert set(commands) <= set(PROFILES[name].commands)
        assert set(row["pkill_targets"][name]) <= set(PROFILES[name].pkill_targets)


def test_base_is_always_listed_and_other_profiles_only_when_chosen() -> None:
    """Choosing a profile excludes the others, but never base (AUT-171)."""
    chosen = listed(Policy("/project", profiles=("node",)))
    assert {"ls", "git", "npm"} <= chosen
    assert not {"pip", "cargo", "phpunit"} & chosen
    assert {"pip", "cargo", "phpunit"} <= listed(Policy("/project"))
    assert {"node", "npm", "npx", "vite", "next"} == pkill_targets(
        Policy("/project", profiles=("node",))
    )


def test_rm_and_mv_need_permission_and_are_denied_in_sync() -> None:
    """Adding them to the allowed commands is not enough (AUT-165), and `sync` denies them."""
    assert not {"rm", "mv"} & listed(Policy("/project", extra_commands=("rm", "mv")))
    assert {"rm", "mv"} <= listed(Policy("/project", allow_destructive=True))
    synced = listed(Policy("/project", allow_destructive=True, mode="sync"))
    assert not {"rm", "mv", "mkdir", "cp", "chmod", "pkill"} & synced


def test_extended_profile_adds_everyday_tools() -> None:
    """rg, sed, touch and make are allowed only with `extended`."""
    assert {"rg", "sed", "touch", "make"} <= listed(Policy("/project", profiles=("extended",)))
    assert not {"rg", "sed", "touch", "make"} & listed(Policy("/project"))
