"""Write permissions of the roles, as policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
from cuggino.guard.roles import PERMISSION_SETS, PERMISSIONS, ROLES, PermissionSet, role_policy

PLACES = (
    "src/a.py", "README.md", ".specs/a.md", ".cuggino/wip/x.plan.md", ".cuggino/wip/x.review.md",
    ".cuggino/wip/x.md", ".cuggino/backlog/001.md", ".cuggino/spec-issues/a.md",
    ".cuggino/tbd/a.md", ".cuggino/memory.md", ".cuggino/journal/x", ".cuggino/prompts/a.md",
    ".autonoe/status.json", ".autonoe-note.md", ".git/config", ".claude/settings.json",
)  # fmt: skip
"""Every kind of place in the table."""

SOURCES = {"src/a.py", "README.md", ".autonoe-note.md"}
MAY: dict[PermissionSet, set[str]] = {
    "planning": {".cuggino/wip/x.plan.md"},
    "implementing": SOURCES,
    "reviewing": {".cuggino/wip/x.review.md"},
    "audit": set(),
    "pm": {
        ".specs/a.md", ".cuggino/backlog/001.md", ".cuggino/spec-issues/a.md",
        ".cuggino/tbd/a.md", ".cuggino/memory.md",
    },
    "deliver": SOURCES | {".specs/a.md"},
    "verify": {".autonoe-note.md"},
    "sync": {".autonoe-note.md"},
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project next to others, outside the temporary folders."""
    root = tmp_path / "home" / "project"
    for folder in ("src", ".specs", ".cuggino/wip", ".cuggino/backlog", ".git"):
        (root / folder).mkdir(parents=True)
    return root


def made(role: PermissionSet, project: Path, *, specs: str = ".specs") -> Policy:
    """Return the policy of a role in the project."""
    wip = project / ".cuggino" / "wip"
    return role_policy(
        role,
        project=project,
        level="roles",
        specs=specs,
        plan=wip / "x.plan.md",
        review=wip / "x.review.md",
        allow_destructive=True,
    )


@pytest.mark.parametrize("role", PERMISSION_SETS)
def test_writable_places_of_a_role(role: PermissionSet, project: Path) -> None:
    """Of all places, exactly those of the role's row may be written and removed."""
    guard = Paths(made(role, project), temporary=[])
    home = [str(project)]
    assert MAY[role] == {place for place in PLACES if not guard.write(place, home)}
    assert MAY[role] == {place for place in PLACES if not guard.remove(place, home)}


def test_every_role_has_permissions() -> None:
    """The permissions of every role are one of the sets."""
    assert set(ROLES) == set(PERMISSIONS)
    assert set(PERMISSIONS.values()) == set(PERMISSION_SETS) - {"pm"}


@pytest.mark.parametrize("role", PERMISSION_SETS)
def test_policy_round_trip(role: PermissionSet, project: Path) -> None:
    """A policy survives JSON, and names its role."""
    policy = made(role, project)
    assert policy == Policy.from_json(policy.to_json())
    assert role == policy.role
    assert "roles" == policy.level


def test_verifying_sessions_are_never_destructive(project: Path) -> None:
    """`verify` and `sync` allow nothing destructive, even if the user does (AUT-223)."""
    for role in PERMISSION_SETS:
        policy = made(role, project)
        assert (role in ("verify", "sync")) == (policy.mode == "sync")
        assert (policy.mode == "run") == policy.allow_destructive


def test_user_settings(project: Path) -> None:
    """Profiles, programs and pkill targets of the user are in the policy."""
    policy = role_policy(
        "deliver",
        project=project,
        level="full",
        profiles=["node"],
        extra_commands=["make"],
        pkill_targets=["vite"],
    )
    assert ("full", ("node",), ("make",), ("vite",)) == (
        policy.level,
        policy.profiles,
        policy.extra_commands,
        policy.pkill_targets,
    )


def test_linked_specifications(project: Path) -> None:
    """A linked folder is resolved when the policy is made; a link made later grants nothing."""
    (project / "docs").mkdir()
    (project / "specs").symlink_to("docs")
    policy = made("pm", project, specs="specs")
    home = [str(project)]
    assert "" == Paths(policy, temporary=[]).write("specs/a.md", home)
    (project / "specs").unlink()
    (project / "specs").symlink_to("src")
    assert Paths(policy, temporary=[]).write("specs/a.py", home)
    assert Paths(policy, temporary=[]).write("specs", home)


@pytest.mark.parametrize("specs", ["../shared", ".claude/specs", ".cuggino/specs"])
def test_specifications_in_unusual_places(project: Path, specs: str) -> None:
    """The manager may write the specifications wherever they are; the implementer may not."""
    home = [str(project)]
    assert "" == Paths(made("pm", project, specs=specs), temporary=[]).write(f"{specs}/a.md", home)
    guard = Paths(made("implementing", project, specs=specs), temporary=[])
    assert guard.write(f"{specs}/a.md", home)


def test_a_project_that_is_its_own_specification_can_be_implemented(project: Path) -> None:
    """If the specifications are the project itself, source can still be written."""
    guard = Paths(made("implementing", project, specs="."), temporary=[])
    assert "" == guard.write("src/a.py", [str(project)])


def test_a_linked_project_is_the_same_project(project: Path) -> None:
    """A policy for a linked project covers the real folder, and the reverse."""
    link = project.parent / "link"
    link.symlink_to(project)
    guard = Paths(made("reviewing", link), temporary=[])
    for folder in (project, link):
        assert "" == guard.write(f"{folder}/.cuggino/wip/x.review.md", [])
        assert guard.write(f"{folder}/src/a.py", [])
