"""`cuggino run` and `watch` where git refuses commits: work is not called done before it is in."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, PLANS, implements
from tests.git_project import GitProject, isolate_git

SCENARIO = PLANS + implements("app.py", "print('hello')") + APPROVES
REFUSED = "the work is not committed: git commit exited with code 1: no: app.py has no tests"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """A repository with a specification and an agent that needs one round."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = GitProject(tmp_path / "project")
    project.write(".specs/hello.md", "# Hello\n")
    project.write("scenario.toml", SCENARIO)
    save_config(project.root, Config(agent="scripted:scenario.toml", commit=True, sandbox="off"))
    project.write(".gitignore", ".cuggino/\n")
    project.git("add", "-A")
    project.git("commit", "--quiet", "--message=begin")
    monkeypatch.chdir(project.root)
    return project


@pytest.mark.real_agent
def test_refused_by_a_hook(project: GitProject, cli: Cli) -> None:
    """A run whose commits are refused exits with 1; mended and resumed, it commits and ends."""
    project.hook("pre-commit", "echo 'no: app.py has no tests' >&2; exit 1")
    assert REFUSED in " ".join(cli.err("run", "--focus", "hello", code=1).split())
    assert 1 == project.count()

    project.hook("pre-commit", "exit 0")
    tags = [json.loads(line)["_tag"] for line in cli("run", "--resume", "--json").splitlines()]
    assert ["CommitPerformed", "LoopApproved"] == tags[-2:]
    assert not {"PlanningStart", "ImplementingStart", "ReviewingStart"} & set(tags)
    assert "Say hello\n" == project.message()
    assert "app.py" in project.committed()


@pytest.mark.parametrize(
    ("hinder", "reason"),
    [
        ("identity", "no user.name and user.email to commit with, but commit is on"),
        ("lock", "the repository is locked (.git/index.lock), but commit is on"),
        ("conflict", "unresolved merge conflicts in app.py, but commit is on"),
        ("signature", "commits cannot be signed: "),
        ("owner", "detected dubious ownership in repository at"),
        (".git", ".git cannot be written, but commit is on"),
        ("specs", "holds no specification"),
        (".specs", ".specs cannot be read"),
    ],
)
def test_what_is_known_before(
    hinder: str,
    reason: str,
    project: GitProject,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    """A run that could not commit, or has nothing to build, starts no agent; doctor reports it."""
    match hinder:
        case "identity":
            project.git("config", "--remove-section", "user")
            project.git("config", "user.useConfigOnly", "true")
        case "lock":
            project.write(".git/index.lock", "")
        case "conflict":
            blob = project.git("rev-parse", "HEAD:.gitignore").strip()
            stages = "".join(f"100644 {blob} {stage}\tapp.py\n" for stage in (1, 2, 3))
            subprocess.run(
                ["git", "update-index", "--index-info"],
                cwd=project.root,
                input=stages.encode(),
                check=True,
            )
        case "signature":
            project.git("config", "commit.gpgSign", "true")
            project.git("config", "gpg.format", "ssh")
            project.git("config", "user.signingKey", str(project.root / "none"))
        case "owner":
            monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        case "specs":
            (project.root / ".specs" / "hello.md").unlink()
        case _:  # root may do anything
            access = os.access
            denies = lambda path, mode: Path(path).name != hinder and access(path, mode)  # noqa: E731
            monkeypatch.setattr(os, "access", denies)
    assert reason in " ".join(cli.err("run", "--focus", "hello").split())
    assert not (project.root / ".cuggino").exists()
    told = " ".join("".join(cli.both("doctor", code=1)).split())
    assert reason.removesuffix(", but commit is on") in told
