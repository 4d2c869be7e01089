"""Commands that only look start nothing that a project brings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import pytest

import cuggino_cli
from cuggino.doctor.project_code import why_not_started
from cuggino.events import CommitPerformed, RunStarted
from cuggino.storage import Workspace, new_run_id
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.git_project import isolate_git
from tests.hostile_project import HostileProject
from tests.limits import LIMIT

_NOW = datetime(2026, 11, 22, tzinfo=UTC)
LOOKS = (
    *("doctor", "doctor --agent claude", "agents --json", "runs", "backlog list", "issues list"),
    *("report -o report.html", "guard check ls", "help", "--version"),
)
MORE_LOOKS = ("doctor", "agents", "runs --json", "help config", "run --help")
"""Those that read what others read and show it otherwise: with the second command."""
COMPLETED = ("doctor --agent ", "runs ", "backlog retry ", "run --resume ")
"""What stands on the command line when a name is to be completed."""

Turns: TypeAlias = list[tuple[list[str], dict[str, str]]]

IN_TURN = """
import json, os, sys
from cuggino_cli.main import main
for number, (words, env) in enumerate(json.loads(sys.argv[1])):
    os.environ.update(env)
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    for name in env:
        del os.environ[name]
    assert not {"", os.getcwd()} & {*sys.path}, words
    print(end=f"<{code}>", flush=True)
"""
"""Commands one after the other: most of the time of one is that of importing it."""


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
    "commands",
    [LOOKS, pytest.param(MORE_LOOKS, marks=pytest.mark.real_agent)],
    ids=["usual", "more"],
)
def test_a_look_starts_nothing(hostile: HostileProject, commands: Sequence[str]) -> None:
    """Looking at a project, and completing names, runs neither its programs nor its modules."""
    looks: Turns = [(look.split(), {}) for look in commands]
    completed: Turns = [([], _completing(words)) for words in COMPLETED]
    script = hostile.root.with_name("in_turn.py")
    script.write_text(IN_TURN)
    done = _ran(hostile, sys.executable, str(script), json.dumps([*looks, *completed]))
    assert [] == hostile.ran()
    assert ("", 0) == (done.stderr, done.returncode)
    *said, rest = re.split("<([01])>", done.stdout)
    assert (2 * len(looks) + 2 * len(completed), "") == (len(said), rest)
    assert all(said[: 2 * len(looks) : 2]), said
    _assert_left_out(" ".join(said[0].split()))


def _assert_left_out(said: str) -> None:
    """Assert that doctor names each agent that is not checked with the reason, and git's."""
    assert "evil:Agent is not checked: its program bin/claude lies in the project" in said
    assert "claude is not checked: its program ./bin/claude lies in the project" in said
    assert "shutil:rmtree is not checked: it is code that the project names" in said
    assert "the repository's settings start programs: core.pager" in said or "fsmonitor" in said


@pytest.mark.parametrize("words", ["doctor --agent claude", ""])
def test_as_a_program(hostile: HostileProject, words: str) -> None:
    """The program imports nothing from the current folder, nor does it for a completion."""
    program = shutil.which("cuggino", path=str(Path(sys.executable).parent))
    assert program is not None
    env = {} if words else _completing("doctor --agent ")
    done = _ran(hostile, program, *words.split(), env=env)
    assert [] == hostile.ran()
    assert "Traceback" not in done.stderr


def test_as_a_module_of_python(hostile: HostileProject) -> None:
    """`python -m` adds the current folder to the path of modules, which is of no use here."""
    place = str(Path(cuggino_cli.__file__).parent.parent)
    (hostile.root / "cuggino_cli.py").unlink()  # Python itself would import it
    env = {"PYTHONPATH": place}
    done = _ran(hostile, sys.executable, "-m", "cuggino_cli", "runs", env=env)
    assert (0, True) == (done.returncode, bool(done.stdout))
    assert [] == hostile.ran()


@pytest.mark.parametrize(
    "command", ["doctor", pytest.param("agents", marks=pytest.mark.real_agent)]
)
def test_a_destructive_import_path(
    hostile: HostileProject, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A function of Python's library is an import path too, with the program as its argument."""
    hostile.configure(agent="shutil:rmtree", agentPath=str(hostile.root / "bin"))
    monkeypatch.chdir(hostile.root)
    assert main([command]) in (0, 1)
    assert (hostile.root / "bin" / "claude").exists()


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


def _completing(words: str) -> dict[str, str]:
    """Return the variables by which a shell asks for a completion."""
    count = str(len(words.split()) + 1)
    return {
        "_CUGGINO_COMPLETE": "bash_complete",
        "COMP_WORDS": f"cuggino {words}",
        "COMP_CWORD": count,
    }


def _ran(
    project: HostileProject, *argv: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=project.root,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
