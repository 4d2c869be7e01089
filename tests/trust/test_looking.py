"""Commands that only look start nothing that a project brings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import cuggino_cli
from cuggino.doctor.project_code import why_not_started
from cuggino.events import CommitPerformed, RunStarted
from cuggino.storage import Workspace, new_run_id
from cuggino.storage.journal import Journal
from tests.git_project import isolate_git
from tests.hostile_project import HostileProject
from tests.limits import LIMIT

_NOW = datetime(2026, 11, 22, tzinfo=UTC)
LOOKS = (
    "doctor",
    "doctor --agent claude",
    "agents --json",
    "runs",
    "backlog list",
    "issues list",
    "report -o report.html",
    "guard check ls",
    "help",
    "--version",
)
MORE_LOOKS = ("agents", "runs --json", "help config", "run --help")
"""Those that read what others read and show it otherwise: with the second command."""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostileProject:
    """A project whose configuration, modules and repository start programs, with a recorded run."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = HostileProject(tmp_path / "project")
    program = project.program("bin/claude", "2.1.329 (Claude Code)")
    for name in ("evil", "click", "reactivex", "cuggino_cli"):
        project.module(name)
    project.configure(
        agent="evil:Agent",
        agentPath="bin/claude",
        agents={"planning": {"agent": "claude", "path": "./bin/claude"}},
        fallback=["shutil:rmtree", {"agent": "codex", "path": str(program)}],
        checkCommand="./evil.sh check",
        setupCommand="./evil.sh setup",
        commit=True,
    )
    project.git.write("SPEC.md", "# Spec\n")
    project.git.write(
        ".autonoe/agent.json", '{"mcpServers": {"evil": {"command": "./bin/claude"}}}'
    )
    commit = project.git.git("rev-parse", "HEAD").strip()
    project.break_git()
    run_id = new_run_id()
    started = RunStarted(run_id=run_id, kind="run", command="cuggino run")
    journal = Journal.create(Workspace(project.root).journal, started, at=_NOW, sync=False)
    journal.append(CommitPerformed(iteration=1, commit_hash=commit, message="x"), at=_NOW)
    journal.close()
    project.ran()
    return project


@pytest.mark.parametrize(
    "command",
    [*LOOKS, *(pytest.param(command, marks=pytest.mark.real_agent) for command in MORE_LOOKS)],
)
def test_a_look_starts_nothing(hostile: HostileProject, command: str) -> None:
    """Looking at a project runs neither its programs nor its modules."""
    done = _cuggino(hostile, *command.split())
    assert [] == hostile.ran()
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1)
    assert done.stdout


@pytest.mark.parametrize("words", ["doctor --agent ", "runs ", "backlog retry ", "run --resume "])
def test_completion_starts_nothing(hostile: HostileProject, words: str) -> None:
    """Completing names on the command line reads files only."""
    env = {"_CUGGINO_COMPLETE": "bash_complete", "COMP_WORDS": f"cuggino {words}"}
    env["COMP_CWORD"] = str(len(words.split()) + 1)
    done = _cuggino(hostile, env=env)
    assert [] == hostile.ran()
    assert "Traceback" not in done.stderr


def test_as_a_module_of_python(hostile: HostileProject) -> None:
    """`python -m` adds the current folder to the path of modules, which is of no use here."""
    place = str(Path(cuggino_cli.__file__).parent.parent)
    (hostile.root / "cuggino_cli.py").unlink()  # Python itself would import it
    done = subprocess.run(
        [sys.executable, "-m", "cuggino_cli", "runs"],
        cwd=hostile.root,
        env={**os.environ, "PYTHONPATH": place},
        capture_output=True,
        timeout=LIMIT,
        check=True,
    )
    assert done.stdout
    assert [] == hostile.ran()


@pytest.mark.parametrize(
    "command", ["doctor", pytest.param("agents", marks=pytest.mark.real_agent)]
)
def test_a_destructive_import_path(hostile: HostileProject, command: str) -> None:
    """A function of Python's library is an import path too, with the program as its argument."""
    hostile.configure(agent="shutil:rmtree", agentPath=str(hostile.root / "bin"))
    _cuggino(hostile, command)
    assert (hostile.root / "bin" / "claude").exists()


@pytest.mark.real_agent
def test_doctor_names_what_it_left_out(hostile: HostileProject) -> None:
    """Each agent that is not checked is reported with the reason, and so are git's programs."""
    said = " ".join(_cuggino(hostile, "doctor").stdout.split())
    assert "evil:Agent is not checked: its program bin/claude lies in the project" in said
    assert "claude is not checked: its program ./bin/claude lies in the project" in said
    assert "shutil:rmtree is not checked: it is code that the project names" in said
    assert "the repository's settings start programs: core.pager" in said or "fsmonitor" in said


@pytest.mark.parametrize(
    ("path", "is_started"),
    [
        (None, True),
        ("claude", True),
        ("/usr/bin/claude", True),
        ("../claude", True),
        ("./claude", False),
        ("bin/claude", False),
        ("../project/claude", False),
        ("out", True),
        ("./out", False),
        ("../into", False),
        ("{project}/claude", False),
        ("inside", False),
    ],
)
def test_programs_of_the_project(tmp_path: Path, path: str | None, is_started: bool) -> None:
    """A program counts as one of the project by its name, and by what a link leads to."""
    folder, place = tmp_path / "project", tmp_path / "bin"
    folder.mkdir()
    place.mkdir()
    (folder / "claude").write_text("#!/bin/sh\n")
    (folder / "claude").chmod(0o755)
    (folder / "out").symlink_to("/bin/sh")
    (tmp_path / "into").symlink_to(folder / "claude")
    (place / "inside").symlink_to(folder / "claude")
    (place / "out").symlink_to("/bin/sh")
    path = path and path.replace("{project}", str(folder))
    why = why_not_started("claude", folder=folder, path=path, env={"PATH": str(place)})
    assert is_started == (why == "")


@pytest.mark.parametrize(
    ("name", "trusted", "named", "is_started"),
    [
        ("claude", False, False, True),
        ("scripted:a.toml", False, False, True),
        ("replay:a.jsonl", False, False, True),
        ("shutil:rmtree", False, False, False),
        ("shutil:rmtree", True, False, True),
        ("shutil:rmtree", False, True, True),
        ("evil:Agent", True, False, False),
        ("evil.inner:Agent", True, False, False),
        ("evil:Agent", False, True, True),
        ("not_installed_anywhere:Agent", True, False, True),
    ],
)
def test_import_paths(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    trusted: bool,
    named: bool,
    is_started: bool,
) -> None:
    """A module is imported if the user has accepted it and it is not of the project."""
    (tmp_path / "evil").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    why = why_not_started(
        name, folder=tmp_path, path=None, env=os.environ, trusted=trusted, named=named
    )
    assert is_started == (why == "")


def _cuggino(
    project: HostileProject, *args: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the console script, which unlike `python -m` imports nothing from the current folder."""
    program = shutil.which("cuggino", path=str(Path(sys.executable).parent))
    assert program is not None
    return subprocess.run(
        [program, *args],
        cwd=project.root,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
