"""Leniency for targets that are unknown until run time, by role."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.policy import Policy
from cuggino.guard.roles import PERMISSION_SETS, role_policy
from cuggino.guard.tools import judge
from tests.guard.judging import SHFMT, Case, listed_cases, make_project, policy_of, reason_of
from tests.vectors import DATA

CASES = list(listed_cases(DATA / "guard_leniency.txt"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create one project for all commands."""
    folder = make_project(tmp_path_factory.mktemp("leniency") / "project")
    (folder / ".specs").mkdir()
    for name in ("a.py", "src/a.py", "src/a.js", ".specs/a.md"):
        (folder / name).write_text("x", encoding="utf-8")
    return folder


def policy_for(case: Case, project: Path) -> Policy:
    """Return the policy that the section's name describes."""
    if case.section.startswith("implementing"):
        return role_policy("implementing", project=project, level="roles")
    return policy_of(case.section, str(project))


@pytest.mark.parametrize("section", sorted({case.section for case in CASES}))
def test_cases(section: str, project: Path) -> None:
    """An unknown target is allowed for an implementer unless the command names a protected path."""
    wrong = [
        (case.command, reason)
        for case in CASES
        if case.section == section
        for reason in [reason_of(case.command, policy_for(case, project))]
        if bool(reason) != section.endswith("deny")
    ]
    assert [] == wrong


@pytest.mark.parametrize("role", sorted(set(PERMISSION_SETS) - {"implementing", "deliver"}))
def test_limited_roles_are_denied(role: str, project: Path) -> None:
    """No limited role may write to an unknown target."""
    policy = next(
        role_policy(known, project=project, level="roles")
        for known in PERMISSION_SETS
        if known == role
    )
    assert reason_of('echo x > "$f"', policy)


@pytest.mark.parametrize("command", ['echo x > "$f"', '"$PYTHON" x.py'])
def test_the_guard_passes_the_whole_text(command: str, project: Path) -> None:
    """The guard passes the whole text of the command to the walk."""
    policy = role_policy("implementing", project=project, level="roles")
    said = judge(policy, "Bash", {"command": command}, str(project), shfmt=SHFMT)
    assert "allow" == said.decision
    strict = judge(policy, "Bash", {"command": f"{command} .git"}, str(project), shfmt=SHFMT)
    assert "deny" == strict.decision
