"""`cuggino doctor` on the forges that a watch uses."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cuggino.doctor.result import CheckResult
from tests.cli.looking import look

SOURCE = {"type": "github", "label": "agent"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project on github.com, with no program but git on the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    git = shutil.which("git")
    assert git is not None
    (programs / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(programs))
    folder = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    remote = ["git", "remote", "add", "origin", "git@github.com:o/r.git"]
    subprocess.run(remote, cwd=folder, check=True)
    return folder


def install(name: str, *, version: str, token: str = "") -> None:
    """Install a program that prints its version, and its token for the public host only."""
    file = Path(os.environ["PATH"]) / name
    file.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f'  --version) echo "{name} version {version} (2025-01-13)";;\n'
        f'  "auth token --hostname github.com") echo "{token}";;\n'
        f'  "config get token --host gitlab.com") echo "{token}";;\n'
        "  *) exit 1;;\n"
        "esac\n"
    )
    file.chmod(0o755)


def reported(folder: Path, **settings: Any) -> list[CheckResult]:
    given = {"commit": True, "checkCommand": "make", **settings}
    return look("forge", folder, **given)


def test_nothing_is_said_without_a_forge(project: Path) -> None:
    command = {"type": "command", "command": "true"}
    assert reported(project) == []
    assert reported(project, backlogSources=[command]) == []


def test_a_missing_program_comes_with_the_place_to_get_it(project: Path) -> None:
    (result,) = reported(project, backlogSources=[SOURCE])
    assert result.status == "problem"
    assert result.what == "forge: github.com/o/r: gh is not installed"
    assert "https://cli.github.com" in (result.hint or "")


def test_a_missing_login_comes_with_the_command(project: Path) -> None:
    install("gh", version="2.102.0")
    assert reported(project, backlogSources=[SOURCE]) == [
        CheckResult(
            "problem",
            "forge: gh has no login for github.com",
            "run `gh auth login --hostname github.com`",
        )
    ]


def test_an_old_program_is_named(project: Path) -> None:
    install("gh", version="2.4.0", token="x")
    (result,) = reported(project, backlogSources=[SOURCE])
    assert (result.status, result.hint) == ("note", "update gh")
    assert result.what == "forge: gh 2.4.0 is older than 2.23, the oldest tested"


def test_each_repository_is_checked_once(project: Path) -> None:
    install("gh", version="2.23.0", token="secret")
    install("glab", version="1.53.0")
    other = {"type": "gitlab", "label": "agent", "repo": "g/p"}
    results = reported(
        project,
        backlogSources=[SOURCE, {**SOURCE, "name": "more", "label": "later"}, other],
        slots=2,
        landOn="pr",
    )
    assert [(result.status, result.what) for result in results] == [
        ("ok", "forge: github.com/o/r by gh 2.23.0"),
        ("note", "forge: glab has no login for gitlab.com"),
    ]
    assert "secret" not in repr(results)


def test_a_repository_that_nothing_names_is_a_problem(project: Path) -> None:
    subprocess.run(["git", "remote", "remove", "origin"], cwd=project, check=True)
    (result,) = reported(project, backlogSources=[SOURCE])
    assert result.status == "problem"
    assert result.what == (
        "forge: no repository on github.com is known: the git remote does not exist"
    )
