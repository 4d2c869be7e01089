"""`cuggino undo` and `cuggino snapshots`, by hand, after a destructive agent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from cuggino.storage import Workspace
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.keyboard import Setup
from tests.cli.rounds import APPROVES, PLANS, agent
from tests.git_project import GitProject, isolate_git, make_once
from tests.stages.trees import tree_of

DESTROYING = (
    PLANS
    + agent(
        "implementing",
        {"run": "git reset -q --hard && rm -rf src && echo evil >README.md"},
        {"write": "made.txt", "text": "made"},
        {"say": "<DONE>feat: all</DONE>"},
    )
    + APPROVES
)

Files = dict[str, tuple[str, bytes]]
Destroyed = tuple[GitProject, Files]
BEFORE: Files = {}
"""The files of the project before an agent has destroyed them."""


def _work_and_destroy(folder: Path) -> None:
    project = GitProject(folder)
    project.write(".specs/a.md", "# A\n")
    project.write("README.md", "read\n")
    project.write("src/a.py", "a\n")
    project.write("scenario.toml", DESTROYING)
    save_config(project.root, Config(agent="scripted:scenario.toml", guard="off", sandbox="off"))
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "first")
    project.write("src/a.py", "changed\r\nby a person\n")
    project.write("src/new.py", "untracked\n").chmod(0o755)
    (project.root / "src/link").symlink_to("a.py")
    (project.root / "README.md").unlink()
    BEFORE.update(tree_of(project.root))
    assert 0 == main(["run", "--focus", "all", "--quiet"])
    assert not (project.root / "src").exists()


@pytest.fixture
def destroyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Destroyed:
    """A project with uncommitted work, and its files before an agent has destroyed them."""
    isolate_git(monkeypatch, tmp_path / "home")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    make_once("destroyed", folder, lambda: _work_and_destroy(folder))
    return GitProject(folder, made=True), BEFORE


def test_everything_is_back(destroyed: Destroyed, cli: Cli) -> None:
    """Tracked and untracked files are back byte for byte, and the undo can be undone."""
    project, before = destroyed
    after = tree_of(project.root)
    cli.printed()
    said = cli("undo", "--yes")
    assert before == tree_of(project.root)
    assert "  restore  src/new.py\n" in said
    assert "  remove   made.txt\n" in said
    assert "Changed 5 files.\n" in said
    (command,) = [line for line in said.splitlines() if line.startswith("To undo it: ")]
    assert 0 == main([*command.split()[4:], "--yes"])
    assert after == tree_of(project.root)


def test_a_stage(destroyed: Destroyed, cli: Cli) -> None:
    """A stage of the latest run, or of one by its id, is a point to go back to."""
    project, before = destroyed
    cli.printed()
    lines = cli("snapshots").splitlines()
    names = [line.split()[2] for line in lines]
    assert ["planning-1", "implementing-1"] == [n.split("/")[1] for n in names]
    assert 0 == main(["undo", names[1], "-y"])
    assert before == tree_of(project.root)


@pytest.mark.real_agent
def test_a_person_is_asked(destroyed: Destroyed, typed: Setup, cli: Cli) -> None:
    """Nothing changes without a yes: not after a no, Ctrl-C, or without a terminal."""
    project, before = destroyed
    after = tree_of(project.root)
    assert "pass --yes" in cli.err("undo")
    for keys in ("n\r", "\x03", "\x04"):
        assert 1 == typed(keys, "undo")
        assert "Nothing was changed.\n" in cli.printed().out
        assert after == tree_of(project.root)
    assert 0 == typed("what\ry\r", "undo")
    assert "Answer y or n" in cli.printed().out
    assert before == tree_of(project.root)


def test_nothing_to_do(destroyed: Destroyed, cli: Cli) -> None:
    """A second undo of the same run finds nothing to change, and asks nothing."""
    assert 0 == main(["undo", "--yes"])
    cli.printed()
    assert "The files are as they were.\n" in cli("undo")


def test_commits_of_agents_stay(destroyed: Destroyed, cli: Cli) -> None:
    """Branches stay where they are; the message gives the `git reset` to move one back."""
    project, before = destroyed
    first = project.git("rev-parse", "HEAD").strip()
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "by an agent")
    head = project.git("rev-parse", "HEAD").strip()
    cli.printed()
    assert 0 == main(["undo", "--yes"])
    assert f"git reset {first[:12]}" in cli.printed().out
    assert head == project.git("rev-parse", "HEAD").strip()
    assert before == tree_of(project.root)


def test_a_broken_configuration_is_no_obstacle(destroyed: Destroyed) -> None:
    """An agent's changes to the configuration can be undone, too."""
    project, before = destroyed
    project.write(".cuggino.json", "{broken")
    assert 0 == main(["undo", "--yes"])
    assert before == tree_of(project.root)


def test_a_run_at_work(destroyed: Destroyed, cli: Cli) -> None:
    """While a run works here nothing is undone."""
    project, _ = destroyed
    after = tree_of(project.root)
    with Workspace(project.root).lock(command="cuggino run"):
        assert 2 == main(["undo", "--yes"])
    assert "cuggino run" in cli.printed().err
    assert after == tree_of(project.root)


@pytest.mark.parametrize("name", ["nothing", "implementing-7", "0/1"])
def test_an_unknown_name(destroyed: Destroyed, name: str, cli: Cli) -> None:
    """An unknown run or stage is wrong usage."""
    assert f"no snapshot {name}" in cli.err("undo", name)


def test_a_file_that_cannot_be_restored(destroyed: Destroyed, tmp_path: Path, cli: Cli) -> None:
    """The file is named, the rest is restored, and the exit code is 1."""
    project, before = destroyed
    (tmp_path / "elsewhere").mkdir()
    (project.root / "src").symlink_to(tmp_path / "elsewhere")
    project.write(".git/info/exclude", "/src\n")
    assert "Not restored: src/a.py: src is in the way" in cli.err("undo", "--yes", code=1)
    assert [] == list((tmp_path / "elsewhere").iterdir())
    (project.root / "src").unlink()
    assert 0 == main(["undo", "--yes"])
    assert before == tree_of(project.root)


def test_as_json(destroyed: Destroyed, cli: Cli) -> None:
    """Each snapshot is an object, whose reference git knows."""
    project, _ = destroyed
    cli.printed()
    listed = [json.loads(line) for line in cli("snapshots", "--json").splitlines()]
    assert ["planning-1", "implementing-1"] == [one["stage"] for one in listed]
    for one in listed:
        assert one["commit"] == project.git("rev-parse", one["ref"]).strip()
    assert 1 == len({one["run_id"] for one in listed})


def test_without_git(here: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Without a repository there are no snapshots, and nothing to undo."""
    isolate_git(monkeypatch, here / "home")
    assert "There are no snapshots.\n" == cli("snapshots")
    assert "there are no snapshots" in cli.err("undo")
    assert not (here / ".cuggino").exists()


def test_from_python(destroyed: Destroyed) -> None:
    """The same by the library."""
    from cuggino import Runtime, run

    project, before = destroyed
    runtime = Runtime.live(cwd=project.root)
    plan = run(runtime.undo_plan())
    assert plan is not None
    undone = run(runtime.undo(plan))
    assert undone is not None
    assert before == tree_of(project.root)
    assert undone.before in (run(runtime.snapshots()) or [])
    shutil.rmtree(project.root / "src")
    plan = run(runtime.undo_plan("undo"))
    assert plan is not None
    assert {"README.md", "made.txt"} == {c.path for c in plan.changes if c.kind == "create"}
