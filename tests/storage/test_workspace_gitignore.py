"""What of the `.cuggino` folder git leaves alone in a project whose agents commit themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.storage import Workspace


def test_files_of_runs_are_no_part_of_commits(tmp_path: Path) -> None:
    """What belongs to runs on this machine is ignored by git, what a person works with is not."""
    workspace = Workspace(tmp_path)
    with workspace.session() as session:
        workspace.write_spec_issue("unclear")
        workspace.backlog.joinpath("item.md").write_text("do it")
        for name in ("journal/run.jsonl", "locks/status.lock", "agent.sha256"):
            file = workspace.folder / name
            file.parent.mkdir(exist_ok=True)
            file.touch()
        assert session.session_file.exists()
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        told = subprocess.run(
            ["git", "status", "--porcelain", "-uall"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
    names = [Path(line[3:]) for line in told.stdout.splitlines()]
    assert {".gitignore", "backlog", "spec-issues"} == {name.parts[1] for name in names}


def test_a_gitignore_of_somebody_stays(tmp_path: Path) -> None:
    """One that is there is not changed, however often it is asked for."""
    workspace = Workspace(tmp_path)
    ignore = workspace.folder / ".gitignore"
    workspace.folder.mkdir()
    ignore.write_text("*\n")
    workspace.open()
    assert "*\n" == ignore.read_text()
    ignore.unlink()
    workspace.open()
    before = ignore.read_text()
    workspace.open()
    assert before == ignore.read_text()
    assert "/journal/" in before


def test_a_gitignore_that_cannot_be_written(tmp_path: Path) -> None:
    """It is an error of the workspace that names what was tried."""
    (tmp_path / ".cuggino" / "..gitignore.tmp").mkdir(parents=True)
    with pytest.raises(StorageError, match="gitignore") as refused:
        Workspace(tmp_path).open()
    assert "ignore run files" == refused.value.operation
