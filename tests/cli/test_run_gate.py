"""`cuggino run` with an agent that changes what its approval rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from cuggino.config import Config, save_config
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, PLANS, implements, reviews
from tests.git_project import GitProject, isolate_git

CHECK = "#!/bin/sh\ngrep -q hello app.py\n"
TEST = "def test_hello():\n    assert 1\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """A repository with a check, a test and a specification."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = GitProject(tmp_path / "project")
    project.write(".specs/hello.md", "# Hello\n\nThe old check goes away.\n")
    project.write("check.sh", CHECK)
    project.write("tests/test_hello.py", TEST)
    project.write(".gitignore", ".cuggino/\nscenario.toml\n")
    project.git("add", "-A")
    project.git("commit", "--quiet", "--message=begin")
    monkeypatch.chdir(project.root)
    return project


def played(
    project: GitProject, scenario: str, *, gate: Literal["block", "clean", "context"] = "context"
) -> int:
    """Run the scenario once around; return the exit code."""
    project.write("scenario.toml", scenario)
    config = Config(
        agent="scripted:scenario.toml",
        check_command="sh check.sh",
        gate=gate,
        commit=True,
        max_iterations=1,
        sandbox="off",
    )
    save_config(project.root, config)
    return main(["run", "--focus", "hello"])


WEAKENS = implements("check.sh", "exit 0\n")


def test_a_check_that_the_agent_rewrites(project: GitProject, cli: Cli) -> None:
    """With `gate: block` the approval does not count, and the run prints why, measured."""
    assert 11 == played(project, PLANS + WEAKENS + APPROVES, gate="block")
    printed = " ".join(cli.printed().out.split())
    assert "[Check] Completed (exit 0)" in printed
    assert "C1: fails with the versions of the start of check.sh" in printed
    assert "does not count: the check fails with the versions of the start of check.sh" in printed


def test_a_change_that_the_reviewer_accepts(project: GitProject, cli: Cli) -> None:
    """With `gate: block` an approval counts that quotes what the specification says of it."""
    accepts = reviews("<APPROVED>C1: the old check goes away</APPROVED>")
    assert 0 == played(project, PLANS + WEAKENS + accepts, gate="block")
    assert "Changed check.sh" in " ".join(cli.printed().out.split())


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        (WEAKENS, "check.sh"),
        (implements("tests/test_hello.py", f"@pytest.mark.skip\n{TEST}"), "tests/test_hello.py"),
    ],
    ids=["check", "skipped test"],
)
def test_reported_by_default(agent: str, path: str, project: GitProject, cli: Cli) -> None:
    """Without a gate the reviewer decides; the run and its summary name what was changed."""
    assert 0 == played(project, PLANS + agent + APPROVES)
    printed = " ".join(cli.printed().out.split())
    assert f"[Loop] Files that approvals depend on changed: {path}" in printed
    assert f"Changed {path} (check, tests or specs)" in printed


@pytest.mark.parametrize(
    ("path", "code", "told"),
    [
        ("app.py", 0, "[Loop] Implementation approved!"),
        ("local.txt", 11, "does not count: the check exited with 1 on a clean checkout"),
    ],
)
def test_a_clean_checkout(path: str, code: int, told: str, project: GitProject, cli: Cli) -> None:
    """With `gate: clean` the last check runs on what HEAD has, without what git ignores."""
    project.write(".gitignore", ".cuggino/\nscenario.toml\nlocal.txt\n")
    project.write("check.sh", f"test -f {path}\n")
    project.git("commit", "--quiet", "--all", "--message=a check")
    assert code == played(project, PLANS + implements(path, "hello\n") + APPROVES, gate="clean")
    printed = " ".join(cli.printed().out.split())
    assert "[Check] Running: sh check.sh (on a clean checkout)" in printed
    assert told in printed
