"""`cuggino run` in a dirty work tree, and what becomes of the history."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.git_project import GitProject, isolate_git
from tests.limits import LIMIT
from tests.processes.subscribers import eventually

SCENARIO = """\
[[planning]]
steps = [
    { write = "$CUGGINO_PLAN_FILE", text = "# Plan" },
    { say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>" },
]
[[implementing]]
steps = [
    { run = "echo work >>both.txt; echo work >new.txt; COMMAND" },
    { say = "<DONE>feat: all</DONE>" },
]
[[reviewing]]
steps = [{ say = "<APPROVED>fine</APPROVED>" }]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """A project with commits on, and two files that a person has changed."""
    isolate_git(monkeypatch, tmp_path / "home")
    made = GitProject(tmp_path / "project")
    made.write(".specs/a.md", "# A\n")
    made.write("mine.txt", "old\n")
    made.write("both.txt", "old\n")
    scenario(made)
    save_config(
        made.root, Config(agent="scripted:scenario.toml", commit=True, guard="off", sandbox="off")
    )
    made.git("add", "--all")
    made.git("commit", "--quiet", "--message", "first")
    made.write("mine.txt", "mine\n")
    made.write("both.txt", "mine\n")
    monkeypatch.chdir(made.root)
    return made


def scenario(project: GitProject, command: str = "true") -> None:
    project.write("scenario.toml", SCENARIO.replace("COMMAND", command))


def changes(project: GitProject) -> set[str]:
    return set(project.git("show", "--format=", "--name-only").split())


def test_a_persons_file_stays_out(project: GitProject, cli: Cli) -> None:
    """It is named at the start; a file that both changed is named and committed."""
    said = cli("run", "--focus", "all", "--quiet")
    assert "Uncommitted before the run, so left out of commits: both.txt, mine.txt\n" in said
    assert "The next commit will include your uncommitted changes: both.txt\n" in said
    assert {"both.txt", "new.txt"} == changes(project)
    assert "mine\nwork\n" == project.git("show", "HEAD:both.txt")
    assert " M mine.txt\n" in project.git("status", "--porcelain")


def test_everything_as_before(project: GitProject, cli: Cli) -> None:
    """`--dirty commit` commits a person's files with the first task."""
    assert "ncommitted" not in cli("run", "--focus", "all", "--quiet", "--dirty", "commit")
    assert {"both.txt", "mine.txt", "new.txt"} == changes(project)


def test_refused(project: GitProject, cli: Cli) -> None:
    """`--dirty refuse` ends the run before an agent works; resumed, it looks again."""
    said = cli.both("run", "--focus", "all", "--dirty", "refuse", code=2)
    assert "there are uncommitted changes: both.txt, mine.txt" in said.err
    assert "--dirty keep" in said.err
    assert not (project.root / "new.txt").exists()
    assert 2 == main(["run", "--resume", "--dirty", "refuse"])
    assert "left out of commits: both.txt, mine.txt" in cli("run", "--resume", "--dirty", "keep")
    assert {"both.txt", "new.txt"} == changes(project)


def test_refused_until_it_is_clean(project: GitProject) -> None:
    """A refused run is resumed once a person has committed."""
    assert 2 == main(["run", "--focus", "all", "--dirty", "refuse"])
    project.git("commit", "--quiet", "--all", "--message", "mine")
    assert 0 == main(["run", "--resume", "--dirty", "refuse"])
    assert {"both.txt", "new.txt"} == changes(project)


def test_a_clean_tree(project: GitProject, cli: Cli) -> None:
    """Nothing is reported for a clean tree."""
    project.git("commit", "--quiet", "--all", "--message", "mine")
    assert "ncommitted" not in cli("run", "--focus", "all", "--dirty", "refuse")


def test_a_rewritten_history(project: GitProject, cli: Cli) -> None:
    """The end of a run and its summary report that its start commit is lost."""
    base = project.git("rev-parse", "HEAD").strip()
    scenario(project, "git checkout -q --orphan x && git commit -q -m x")
    project.git("commit", "--quiet", "--all", "--message", "mine")
    lost = project.git("rev-parse", "HEAD").strip()
    assert base != lost
    said = cli("run", "--focus", "all")
    assert f"The commit that the run began with, {lost[:12]}, is no longer in the history" in said
    assert f"  Rewritten  {lost[:12]}, the start of the run, left the history\n" in said


@pytest.mark.real_agent
def test_the_set_survives_kill_9(project: GitProject) -> None:
    """A resumed run knows the files that were dirty before its first process."""
    scenario(project, "test -e go || sleep 60")
    command = [sys.executable, "-m", "cuggino_cli", "run", "--json"]
    with subprocess.Popen(
        [*command, "--focus", "all"], stdout=subprocess.PIPE, env={**os.environ}
    ) as first:
        assert first.stdout is not None
        told: list[str] = []
        while "DirtyFilesKept" not in told:  # the agent may work before it is printed
            told.append(json.loads(first.stdout.readline())["_tag"])
        assert eventually(lambda: (project.root / "new.txt").exists())
        first.send_signal(signal.SIGKILL)
        told += [json.loads(line)["_tag"] for line in first.stdout]
    assert 1 == told.count("DirtyFilesKept")
    project.write("go")
    second = subprocess.run(
        [*command, "--resume"], stdout=subprocess.PIPE, check=True, timeout=LIMIT
    )
    events = [json.loads(line) for line in second.stdout.splitlines()]
    assert "DirtyFilesKept" not in [event["_tag"] for event in events]
    (mixed,) = [event for event in events if event["_tag"] == "DirtyFilesCommitted"]
    assert ["both.txt"] == mixed["paths"]
    assert {"both.txt", "new.txt", "go"} == changes(project)
    assert " M mine.txt\n" in project.git("status", "--porcelain")
