"""The state of a repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.git import RepositoryState, git_failure, repository_state
from tests.git_project import GitProject


def test_the_state_of_a_repository(tmp_path: Path) -> None:
    """It is that of the repository around the folder, with a branch unless HEAD is detached."""
    repo = GitProject(tmp_path.resolve() / "repo")
    assert RepositoryState(repo.root, "main", None, False) == repository_state(repo.root)
    below = repo.write("below/a.txt", "1").parent
    repo.git("add", "--all")
    repo.git("commit", "--message", "Begin")
    head = repo.git("rev-parse", "HEAD").strip()
    assert RepositoryState(repo.root, "main", head, False) == repository_state(below)
    repo.git("checkout", "--quiet", "--detach")
    repo.write("below/a.txt", "2")
    assert RepositoryState(repo.root, None, head, True) == repository_state(below)


def test_a_bare_repository_has_none(tmp_path: Path) -> None:
    """Neither a bare repository nor a missing folder is one to work in."""
    repo = GitProject(tmp_path / "repo")
    repo.git("init", "--quiet", "--bare", str(tmp_path / "bare.git"))
    assert repository_state(tmp_path / "bare.git") is None
    assert repository_state(tmp_path / "missing") is None


def test_git_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the system's own for a missing program."""
    repo = GitProject(tmp_path / "repo")
    repository_state(repo.root)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="git"):
        repository_state(repo.root)


def test_no_program_of_the_project_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by its absolute folder on the search path, nor by a relative one."""
    repo = GitProject(tmp_path / "repo")
    marker = tmp_path / "marker"
    planted = repo.write("bin/git", f"#!/bin/sh\ntouch '{marker}'\nexec /usr/bin/env false\n")
    planted.chmod(0o755)
    monkeypatch.chdir(repo.root)
    monkeypatch.setenv("PATH", f"bin:{repo.root}/bin:{os.environ['PATH']}")
    assert git_failure(repo.root) is None
    assert RepositoryState(repo.root, "main", None, False) == repository_state(repo.root)
    assert not marker.exists()
