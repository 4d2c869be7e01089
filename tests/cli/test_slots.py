"""`cuggino slots`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino import Runtime, run
from cuggino.config import Config, save_config
from cuggino.errors import WorkspaceLocked
from cuggino.stages.slots import kept_ref
from cuggino.storage import Workspace
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.git_project import isolate_git
from tests.stages.slots.conftest import SlottedProject


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlottedProject:
    """A project with a used slot, one with uncommitted work, and kept work."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = SlottedProject(tmp_path / "shop")
    project.prepare(project.slot(1), "a.md")
    (project.slot(1).folder / "new.py").write_text("new\n")
    project.prepare(project.slot(1), "b.md")
    project.prepare(project.slot(2), "c\n\x1b[31m.md")
    (project.slot(2).folder / "new.py").write_text("new\n")
    monkeypatch.chdir(project.root)
    return project


def test_list(project: SlottedProject, cli: Cli) -> None:
    """Each slot and each ref is a line, without control characters."""
    told = cli("slots", "list")
    home, first, second, ref = told.splitlines()
    assert home.startswith(f"{project.root}.cuggino-slots (")
    assert first.startswith("  slot-1  b.md  ")
    assert first.endswith("all work is safe")
    assert second.endswith("uncommitted changes")
    assert ref.startswith(kept_ref("a.md", 1))
    assert "\x1b" not in told


def test_json(project: SlottedProject, cli: Cli) -> None:
    """The same as JSON, and what was removed."""
    listing = json.loads(cli("slots", "list", "--json"))
    assert [folder["slot"] for folder in listing["folders"]] == [1, 2]
    assert [folder["unlanded"] for folder in listing["folders"]] == [None, "uncommitted changes"]
    assert [ref["item"] for ref in listing["refs"]] == ["a.md"]
    planned = json.loads(cli("slots", "clean", "--dry-run", "--json"))
    assert (planned["removed"], [one["slot"] for one in planned["folders"]]) == (False, [1])
    done = json.loads(cli("slots", "clean", "--json"))
    assert done == {**planned, "removed": True}


def test_clean(project: SlottedProject, cli: Cli) -> None:
    """Removed and kept folders are named; nothing is left to remove then."""
    assert main(["slots", "clean", "--dry-run"]) == 0
    assert project.slot(1).root.exists()
    assert "Would remove slot-1  b.md" in cli.printed().out
    removed, kept, ref = cli("slots", "clean").splitlines()
    assert removed.startswith("Removed slot-1  b.md")
    assert kept.startswith("Kept slot-2")
    assert ref.startswith(f"Kept {kept_ref('a.md', 1)}")
    assert not project.slot(1).root.exists()
    assert project.slot(2).root.exists()
    assert cli("slots", "clean").startswith("There is nothing to remove.")


def test_no_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """Without slots the list reports none."""
    monkeypatch.chdir(tmp_path)
    assert cli("slots", "list") == "There are no slots.\n"


def test_while_a_run_works(project: SlottedProject, cli: Cli) -> None:
    """A run that holds the project is shown, and nothing is removed meanwhile."""
    workspace = Workspace(project.root)
    with workspace.lock(command="cuggino watch"):
        assert "a run is at work" in cli("slots", "list")
        assert "in use by process" in cli.err("slots", "clean")
    assert project.slot(1).root.exists()


def test_from_the_library(project: SlottedProject) -> None:
    """`Runtime.slots` and `Runtime.clean_slots` follow the configuration."""
    runtime = Runtime.live(cwd=project.root, agent="claude")
    listing = run(runtime.slots())
    assert listing is not None
    assert [folder.number for folder in listing.folders] == [1, 2]
    with Workspace(project.root).lock(command="test"), pytest.raises(WorkspaceLocked):
        run(runtime.clean_slots())
    cleaned = run(runtime.clean_slots(dry_run=True))
    assert cleaned is not None
    assert [folder.number for folder in cleaned.folders] == [1]
    save_config(project.root, Config(slot_folder="../elsewhere"))
    elsewhere = run(Runtime.live(cwd=project.root, agent="claude").slots())
    assert elsewhere is not None
    assert elsewhere.folders == ()
