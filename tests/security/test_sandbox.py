"""What the sandbox of a session holds, by its policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.config import Config, configured_policy, configured_sandbox
from cuggino.security.policy import PROTECTED
from cuggino.security.roles import role_policy
from cuggino.security.sandbox import CACHES, DOMAINS, SCRATCH, sandbox_for


@pytest.fixture
def project(tmp_path: Path) -> Path:
    wip = tmp_path / ".cuggino" / "wip"
    wip.mkdir(parents=True)
    for name in ("a.md", "a.plan.md", "b.md"):
        (wip / name).write_text("")
    (tmp_path / ".cuggino" / "lock").write_text("")
    return tmp_path.resolve()


def test_what_is_protected_stays(project: Path) -> None:
    """Protected files and the specs are denied, there or not; `.git` is left to commits."""
    policy = role_policy("implementing", project=project, level="roles")
    sandbox = sandbox_for(policy)
    names = [name for name in PROTECTED if name != ".git"]
    assert tuple(str(project / name) for name in (*names, ".specs")) == sandbox.deny_write
    assert (*SCRATCH, *CACHES) == sandbox.allow_write
    assert DOMAINS == sandbox.domains


def test_a_granted_file_can_be_written(project: Path) -> None:
    """Of a folder that holds the file of a role, everything else that is there is denied."""
    wip = project / ".cuggino" / "wip"
    plan = wip / "a.plan.md"
    policy = role_policy("planning", project=project, level="full", plan=plan)
    denied = [Path(path) for path in sandbox_for(policy).deny_write]
    assert not [path for path in denied if plan.is_relative_to(path)]
    expected = [wip.parent / "lock", wip / "a.md", wip / "b.md"]
    assert expected == [path for path in denied if path.is_relative_to(wip.parent)]
    assert project / ".cuggino.json" in denied


def test_more_hosts(project: Path) -> None:
    """Hosts of the user come behind the built-in ones, each once."""
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
def test_when_there_is_one(settings: dict[str, object], is_on: bool, project: Path) -> None:
    """It is on by default with the guard, and off with it or by its own key."""
    config = Config.model_validate(settings)
    policy = configured_policy(config, "implementing", project=project)
    assert is_on == (configured_sandbox(config, policy) is not None)
