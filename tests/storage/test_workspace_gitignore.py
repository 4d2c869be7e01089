"""The `.gitignore` of the `.cuggino` folder, for agents that commit themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cuggino.errors import StorageError
from cuggino.storage import Workspace


def test_run_files_are_ignored(tmp_path: Path) -> None:
    """Git ignores the files of runs on this machine, but not those a person works with."""
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


def test_an_existing_gitignore_is_kept(tmp_path: Path) -> None:
    """An existing file is never changed."""
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
    """The workspace error names the operation."""
    (tmp_path / ".cuggino" / "..gitignore.tmp").mkdir(parents=True)
    with pytest.raises(StorageError, match="gitignore") as refused:
        Workspace(tmp_path).open()
    assert "ignore run files" == refused.value.operation
