"""Projects of every shape: each role has git in its view, work is committed, and undo works."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from tests.git_project import GitProject
from tests.limits import LIMIT
from tests.sandbox.arena import needs_bubblewrap

pytestmark = pytest.mark.real_agent

Make = Callable[[Path], Path]

_SCENARIO = """
[[planning]]
[[planning.steps]]
run = "git log -1 --format=planning:%s && git status --short > /dev/null"
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>One task</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
run = "git log -1 --format=implementing:%s && git status --short > /dev/null"
[[implementing.steps]]
write = "new.txt"
text = "new\\n"
[[implementing.steps]]
say = "<DONE>Add it</DONE>"
[[reviewing]]
[[reviewing.steps]]
run = "git log -1 --format=reviewing:%s && git diff HEAD~1 --stat && git status --short > /dev/null"
[[reviewing.steps]]
say = "<APPROVED>Good</APPROVED>"
"""


def _fill(folder: Path) -> None:
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "app.md").write_text("# App\n")
    (folder / "main.txt").write_text("main\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.txt").write_text("deep\n")
    (folder / ".gitignore").write_text(".cuggino/\n")


def _repository(folder: Path) -> GitProject:
    repository = GitProject(folder)
    _fill(folder)
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "start")
    return repository


def root(place: Path) -> Path:
    return _repository(place / "app").root


def subfolder(place: Path) -> Path:
    repository = _repository(place / "all")
    _fill(repository.root / "packages" / "app")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "package")
    return repository.root / "packages" / "app"


def worktree(place: Path) -> Path:
    _repository(place / "main").git("worktree", "add", "-q", "-b", "work", str(place / "app"))
    return place / "app"


def submodule(place: Path) -> Path:
    module, around = _repository(place / "module"), _repository(place / "around")
    allow = ("-c", "protocol.file.allow=always")
    around.git(*allow, "submodule", "--quiet", "add", str(module.root), "app")
    around.git("commit", "--quiet", "--message", "module")
    around.git("checkout", "--quiet", "-b", "work", cwd=around.root / "app")
    return around.root / "app"


def sparse(place: Path) -> Path:
    repository = _repository(place / "app")
    repository.git("sparse-checkout", "set", "--no-cone", "/*", "!/sub/")
    return repository.root


def shallow(place: Path) -> Path:
    origin = _repository(place / "origin")
    origin.git("commit", "--quiet", "--allow-empty", "--message", "second")
    origin.git("clone", "--quiet", "--depth=1", f"file://{origin.root}", str(place / "app"))
    return place / "app"


def partial(place: Path) -> Path:
    origin = _repository(place / "origin")
    origin.git("config", "uploadpack.allowFilter", "true")
    url = f"file://{origin.root}"
    origin.git("clone", "--quiet", "--filter=blob:none", url, str(place / "app"))
    return place / "app"


def blanks(place: Path) -> Path:
    return _repository(place / "ä ö 'q' \"r\"").root


def link(place: Path) -> Path:
    (place / "link").symlink_to(subfolder(place))
    return place / "link"


SHAPES: tuple[Make, ...] = (
    *(root, subfolder, worktree, submodule, sparse, shallow, partial, blanks, link),
)


ENGINES = {
    "bubblewrap+overlay": "",
    "bubblewrap": """case " $*" in *" --tmp-overlay "*) exit 1;; esac
awk '$3 == "overlay" && $2 != "/" { exit 1 }' /proc/self/mounts || exit 1
exec BWRAP "$@"
""",
    "landlock": "echo 'no namespaces here' >&2; exit 1\n",
    "none": "",
}
"""What confines the roles, each with the `bwrap` of a system that has nothing better."""


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder outside of the one for temporary files, which a view hides."""
    near = Path(__file__).parents[2] / ".cache" / "shapes"
    near.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=near) as folder:
        yield Path(folder)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", SHAPES, ids=lambda make: str(make.__name__))
def test_shape(elsewhere: Path, make: Make, engine: str, tmp_path: Path) -> None:
    """Each role sees the history, the check and the commit work, and an undo takes it back."""
    _works_with(engine, make(elsewhere), make, tmp_path)


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: str(make.__name__))
def test_shape_below_the_temporary_folder(make: Make, tmp_path: Path) -> None:
    """A view hides that folder, but not the project in it."""
    _works_with("bubblewrap+overlay", make(tmp_path), make, tmp_path)


@pytest.mark.parametrize("make", SHAPES, ids=lambda make: str(make.__name__))
def test_slots(elsewhere: Path, make: Make, tmp_path: Path) -> None:
    """A slot is a clone of a project of any shape, whose branch follows what has landed."""
    project = make(elsewhere)
    needs_bubblewrap(project)
    _set_up(project, tmp_path, "bubblewrap+overlay")
    scenario = tmp_path / "scenario.toml"
    _cuggino(project, "backlog", "add", "one", "--text", "Add it.")
    words = ("watch", "--slots", "2", "--agent", f"scripted:{scenario}", "--json")
    with subprocess.Popen(
        [sys.executable, "-m", "cuggino_cli", *words],
        cwd=project,
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
    ) as watch:
        assert watch.stdout is not None
        events = []
        for line in watch.stdout:
            events.append(ev.parse_event(line))
            if isinstance(events[-1], ev.WatchFollowed | ev.WatchFollowDelayed | ev.WatchItemRetry):
                watch.send_signal(signal.SIGINT)
    assert 130 == watch.returncode
    kinds = [type(event) for event in events]
    assert ev.WatchFollowed in kinds
    assert ev.RoleViolated not in kinds
    assert "new\n" == (project / "new.txt").read_text()


def _works_with(engine: str, project: Path, make: Make, place: Path) -> None:
    """Run the scenario to its approval, and undo it."""
    _set_up(project, place, engine)
    words = ("run", "--focus", "x", "--agent", f"scripted:{place}/scenario.toml", "--json")
    said = _cuggino(project, *words, bwrap=place if ENGINES[engine] else None)
    events = [ev.parse_event(line) for line in said.splitlines()]
    chosen = [event.engine for event in events if isinstance(event, ev.SandboxChosen)]
    assert chosen == ([engine] if engine != "none" else [])
    told = "".join(event.output for event in events if isinstance(event, ev.ToolResult))
    for role in ("planning", "implementing", "reviewing"):
        assert f"{role}:" in told
    assert "new.txt | 1 +" in told
    checks = [event.exit_code for event in events if isinstance(event, ev.CheckCommandOutput)]
    assert 0 == checks[-1]
    kinds = [type(event) for event in events]
    assert ev.CommitPerformed in kinds
    assert not {ev.CommitFailed, ev.SnapshotFailed, ev.RoleViolated} & set(kinds)
    _cuggino(project, "undo", "--yes")
    assert not (project / "new.txt").exists()
    if make is not sparse:
        assert "deep\n" == (project / "sub" / "deep.txt").read_text()


def _set_up(project: Path, place: Path, engine: str) -> None:
    """Write scenario and configuration, and a `bwrap` that is as able as the engine."""
    if engine != "none":
        needs_bubblewrap(project)
    (place / "scenario.toml").write_text(_SCENARIO)
    settings: dict[str, Any] = {"sandbox": engine != "none", "commit": True}
    settings["checkCommand"] = "git rev-parse HEAD && test -f new.txt"
    (project / ".cuggino.json").write_text(json.dumps(settings))
    if script := ENGINES[engine]:
        bwrap = place / "bwrap"
        bwrap.write_text(f"#!/bin/sh\n{script.replace('BWRAP', str(shutil.which('bwrap')))}")
        bwrap.chmod(0o755)


def _environment(bwrap: Path | None = None) -> dict[str, str]:
    env = {**os.environ, "GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@x"}
    env |= {"GIT_COMMITTER_NAME": "T", "GIT_COMMITTER_EMAIL": "t@x"}
    return env if bwrap is None else {**env, "PATH": f"{bwrap}:{env['PATH']}"}


def _cuggino(project: Path, *words: str, bwrap: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cuggino_cli", *words],
        cwd=project,
        env=_environment(bwrap),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert 0 == done.returncode, done.stderr + done.stdout[-2000:]
    return done.stdout
