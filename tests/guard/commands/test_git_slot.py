"""`git` in a slot: it changes the slot alone, and pushes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.policy import Level, Policy
from cuggino.guard.roles import role_policy
from tests.guard.judging import reason_of

DENIED = (
    "git push",
    "git push origin HEAD:main",
    "git push ../../project HEAD:refs/heads/main",
    "git send-pack ../../project main",
    "git -C ../../project push . HEAD:main",
    "git lfs push origin main",
    "git -C ../../project commit -am x",
    "git -C ../../project stash",
    "git -C ../../project update-ref refs/heads/main HEAD",
    "git -C ../../project config core.hooksPath x",
    "git -C ../../project config user.name x",
    "git -C ../../project fetch ../slots/slot-1 HEAD:refs/heads/x",
    "git -C ../../project gc",
    "git -C ../slot-2 reset --hard",
    "cd ../../project && git commit -am x",
    "cd .. && git -C slot-2 checkout -b x",
    "git --git-dir=../../project/.git commit --allow-empty -m x",
    "git --work-tree=../../project checkout -f",
    "GIT_DIR=../../project/.git git commit --allow-empty -m x",
    "env GIT_DIR=../../project/.git git commit --allow-empty -m x",
    "export GIT_DIR=../../project/.git; git commit --allow-empty -m x",
    "git config --global user.name x",
    "git config -f ../../project/.git/config user.name x",
    "git clone . ../x",
    "git clone . ../slot-2/x",
    "git worktree add ../x",
    "git init ../x",
    "echo x > ../slot-2/a.txt",
    "cd .. && echo x > slot-2/a.txt",
    "cp a.txt ../../project/a.txt",
)
ALLOWED = (
    "git stash",
    "git stash pop",
    "git config user.name x",
    "git -C ../../project config --get user.name",
    "git commit -am x",
    "git -C src commit -m x",
    "git checkout -b x",
    "git merge x",
    "git fetch ../../project main",
    "git -C ../../project log",
    "git -C ../slot-2 diff HEAD",
    "git clone . vendor/x",
)


def policy(folder: Path, level: Level, *, destructive: bool) -> Policy:
    slot = folder / "slots" / "slot-1"
    for place in (slot / ".git", slot / "src", slot.parent / "slot-2", folder / "project" / ".git"):
        place.mkdir(parents=True)
    return role_policy(
        "implementing",
        project=slot,
        level=level,
        allow_destructive=destructive,
        apart=(slot.parent, folder / "project"),
    )


@pytest.mark.parametrize("destructive", [False, True])
def test_nothing_outside_of_the_slot_changes(tmp_path: Path, destructive: bool) -> None:
    """Neither the user's project nor another slot, also if destructive commands are allowed."""
    found = policy(tmp_path, "roles", destructive=destructive)
    assert [] == [command for command in DENIED if not reason_of(command, found)]
    assert [] == [command for command in ALLOWED if reason_of(command, found)]


def test_the_full_guard_pushes_nothing_either(tmp_path: Path) -> None:
    """It denies the same commands."""
    found = policy(tmp_path, "full", destructive=True)
    assert [] == [command for command in DENIED if not reason_of(command, found)]


def test_the_project_of_a_slot_may_be_a_folder_of_it(tmp_path: Path) -> None:
    """git works in the whole repository of the slot, as it does in that of a project."""
    found = policy(tmp_path, "roles", destructive=False)
    inner = found._replace(project=f"{found.project}/src")
    assert "" == reason_of("cd .. && git commit -am x", inner)
    assert reason_of("cd ../.. && git -C slot-2 commit -am x", inner)


def test_outside_of_slots_it_is_as_before(tmp_path: Path) -> None:
    """The rules are those of slots alone."""
    found = policy(tmp_path, "roles", destructive=True)._replace(apart=())
    assert "" == reason_of("git push origin HEAD:main", found)
