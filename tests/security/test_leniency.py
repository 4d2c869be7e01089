"""What passes though nobody can tell what it writes, and for whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.security.policy import Policy
from cuggino.security.roles import ROLES, role_policy
from cuggino.security.tools import judge
from tests.security.judging import SHFMT, Case, listed_cases, make_project, policy_of, reason_of
from tests.vectors import DATA

CASES = list(listed_cases(DATA / "guard_leniency.txt"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One project for all commands."""
    folder = make_project(tmp_path_factory.mktemp("leniency") / "project")
    (folder / ".specs").mkdir()
    for name in ("a.py", "src/a.py", "src/a.js", ".specs/a.md"):
        (folder / name).write_text("x", encoding="utf-8")
    return folder


def policy_for(case: Case, project: Path) -> Policy:
    """The policy that the section's name speaks of."""
    if case.section.startswith("implementing"):
        return role_policy("implementing", project=project, level="roles")
    return policy_of(case.section, str(project))


@pytest.mark.parametrize("section", sorted({case.section for case in CASES}))
def test_the_cases_are_decided_as_their_section_says(section: str, project: Path) -> None:
    """What cannot be told passes for one who implements, unless something protected is named."""
    wrong = [
        (case.command, reason)
        for case in CASES
        if case.section == section
        for reason in [reason_of(case.command, policy_for(case, project))]
        if bool(reason) != section.endswith("deny")
    ]
    assert [] == wrong


@pytest.mark.parametrize("role", sorted(set(ROLES) - {"implementing", "deliver"}))
def test_a_role_that_may_not_write_all_is_told_to_write_it_out(role: str, project: Path) -> None:
    """No limited role may write to a target that nobody can tell."""
    policy = next(
        role_policy(known, project=project, level="roles") for known in ROLES if known == role
    )
    assert reason_of('echo x > "$f"', policy)


@pytest.mark.parametrize("command", ['echo x > "$f"', '"$PYTHON" x.py'])
def test_the_whole_guard_lets_it_pass(command: str, project: Path) -> None:
    """The tools' door gives the walk all of the command's text."""
    policy = role_policy("implementing", project=project, level="roles")
    said = judge(policy, "Bash", {"command": command}, str(project), shfmt=SHFMT)
    assert "allow" == said.decision
    strict = judge(policy, "Bash", {"command": f"{command} .git"}, str(project), shfmt=SHFMT)
    assert "deny" == strict.decision
