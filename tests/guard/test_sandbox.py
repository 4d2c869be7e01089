"""The sandbox of a session, derived from its policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.guard import sandbox as sandboxes
from cuggino.guard.policy import PROTECTED
from cuggino.guard.roles import role_policy
from cuggino.guard.sandbox import CACHES, DOMAINS, sandbox_for


@pytest.fixture
def project(tmp_path: Path) -> Path:
    wip = tmp_path / ".cuggino" / "wip"
    wip.mkdir(parents=True)
    for name in ("a.md", "a.plan.md", "b.md"):
        (wip / name).write_text("")
    (tmp_path / ".cuggino" / "lock").write_text("")
    return tmp_path.resolve()


def test_protected_files(project: Path) -> None:
    """Protected files and the specs are denied, existing or not; `.git` is left to commits."""
    policy = role_policy("implementing", project=project, level="roles")
    sandbox = sandbox_for(policy)
    names = [name for name in PROTECTED if name != ".git"]
    assert tuple(str(project / name) for name in (*names, ".specs")) == sandbox.deny_write
    assert DOMAINS == sandbox.domains


def test_scratch_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch folders are writable, except one that contains the project, by any of its names."""
    for name in ("scratch", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "scratch")
    places = [str(tmp_path / name) for name in ("scratch", "link", "other")]
    monkeypatch.setattr(sandboxes, "SCRATCH", tuple(places))

    def writable(project: Path) -> tuple[str, ...]:
        policy = role_policy("implementing", project=project, level="roles")
        return sandbox_for(policy).allow_write

    assert (*places, *CACHES) == writable(tmp_path / "project")
    assert (places[2], *CACHES) == writable(tmp_path / "scratch" / "project")
    assert (places[2], *CACHES) == writable(tmp_path / "link" / "project")


def test_a_granted_file_can_be_written(project: Path) -> None:
    """In a folder with a role's file, all other entries are denied."""
    wip = project / ".cuggino" / "wip"
    plan = wip / "a.plan.md"
    policy = role_policy("planning", project=project, level="full", plan=plan)
    denied = [Path(path) for path in sandbox_for(policy).deny_write]
    assert not [path for path in denied if plan.is_relative_to(path)]
    expected = [wip.parent / "lock", wip / "a.md", wip / "b.md"]
    assert expected == [path for path in denied if path.is_relative_to(wip.parent)]
    assert project / ".cuggino.json" in denied


def test_more_hosts(project: Path) -> None:
    """The user's hosts follow the built-in ones, without duplicates."""
    policy = role_policy("implementing", project=project, level="roles")
    assert (*DOMAINS, "*.example.com") == sandbox_for(
        policy, domains=["*.example.com", "pypi.org", "*.example.com"]
    ).domains


@pytest.mark.parametrize(
    ("settings", "is_on"),
    [
        ({}, True),
        ({"guard": "full"}, True),
        ({"sandbox": False}, False),
        ({"guard": "off"}, False),
    ],
)
def test_when_the_sandbox_is_on(settings: dict[str, object], is_on: bool, project: Path) -> None:
    """The sandbox is on by default with the guard, and off without it or by its own key."""
    config = Config.model_validate(settings)
    policy = configured_policy(config, "implementing", project=project)
    assert is_on == (configured_sandbox(config, policy) is not None)
