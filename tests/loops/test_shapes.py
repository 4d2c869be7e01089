"""Projects of every shape: each role has git in its view, work is committed, and undo works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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


@pytest.fixture(params=["below the temporary folder", "elsewhere"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder for projects; a view hides the folder for temporary files."""
    if request.param != "elsewhere":
        yield tmp_path
        return
    near = Path(__file__).parents[2] / ".cache" / "shapes"
    near.mkdir(parents=True, exist_ok=True)
    folder = near / tmp_path.name
    folder.mkdir()
    try:
        yield folder
    finally:
        subprocess.run(["rm", "-r", "-f", folder], check=True)


@pytest.mark.parametrize("sandbox", ["require", "off"])
@pytest.mark.parametrize("make", SHAPES, ids=lambda make: str(make.__name__))
def test_shape(place: Path, make: Make, sandbox: str, tmp_path: Path) -> None:
    """Each role sees the history, the check and the commit work, and an undo takes it back."""
    if sandbox == "off" and place != tmp_path:
        pytest.skip("without a view all places are alike")
    project = make(place)
    if sandbox == "require":
        needs_bubblewrap(project)
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(_SCENARIO)
    settings: dict[str, Any] = {"sandbox": sandbox == "require", "commit": True}
    settings["checkCommand"] = "git rev-parse HEAD && test -f new.txt"
    (project / ".cuggino.json").write_text(json.dumps(settings))
    words = ("run", "--focus", "x", "--agent", f"scripted:{scenario}", "--json")
    events = [ev.parse_event(line) for line in _cuggino(project, *words).splitlines()]
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


def _cuggino(project: Path, *words: str) -> str:
    env: dict[str, Any] = {**os.environ, "GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@x"}
    env |= {"GIT_COMMITTER_NAME": "T", "GIT_COMMITTER_EMAIL": "t@x"}
    done = subprocess.run(
        [sys.executable, "-m", "cuggino_cli", *words],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert 0 == done.returncode, done.stderr + done.stdout[-2000:]
    return done.stdout
