"""Git commands of a session that only inspects and verifies (AUT-223)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from cuggino.guard.roles import role_policy
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge

CHANGES = (
    *("git stash", "git stash pop", "git checkout .", "git checkout main", "git switch main"),
    *("git reset --hard", "git reset --har HEAD", "git reset --keep x", "git reset --merge"),
    *("git reset $MODE", "git restore .", "git merge x", "git rebase main", "git pull", "git am x"),
    *("git cherry-pick x", "git revert x", "git apply x", "git rm a", "git mv a b", "git clean -f"),
    *("git read-tree x", "ls && git stash", "sh -c 'git stash'", "git -C . stash"),
)
RECORDS = (
    *("git add .autonoe-note.md", "git commit -m note", "git commit -am sync"),
    *("git reset", "git reset HEAD a.txt", "git reset --mixed", "git tag v1", "git fetch"),
    *("git status", "git log -3", "git diff", "git stash list", "git apply --check x"),
)


def verdict(command: str, role: Literal["verify", "sync"], project: Path) -> str:
    policy = role_policy(role, project=project, level="full")
    call = {"command": command}
    return judge(policy, "Bash", call, str(project.resolve()), shfmt=find_shfmt()).decision


@pytest.mark.parametrize("role", ["verify", "sync"])
@pytest.mark.parametrize("command", CHANGES)
def test_replacing_files_is_denied(
    command: str, role: Literal["verify", "sync"], tmp_path: Path
) -> None:
    """A command that would replace the verified files is denied."""
    assert "deny" == verdict(command, role, tmp_path)


@pytest.mark.parametrize("role", ["verify", "sync"])
@pytest.mark.parametrize("command", RECORDS)
def test_inspecting_and_committing_the_note_is_allowed(
    command: str, role: Literal["verify", "sync"], tmp_path: Path
) -> None:
    """Inspecting and committing the note are allowed."""
    assert "allow" == verdict(command, role, tmp_path)
