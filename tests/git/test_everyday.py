"""What users have in a repository goes on working in a view: filters, hooks, flags and more."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cuggino.events import CommitFailed, CommitPerformed
from cuggino.sandbox import Views
from tests.git.test_escapes import look
from tests.git_project import GitProject
from tests.sandbox.arena import needs_bubblewrap

Prepare = Callable[[GitProject, Path], None]


def tool(home: Path, name: str, script: str) -> None:
    """Install a program of the user's, which is on the PATH."""
    (home / "bin").mkdir(exist_ok=True)
    path = home / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def encrypted(project: GitProject, home: Path) -> None:
    """Encrypt files as git-crypt does, by a program with a key in the repository's folder."""
    key = project.root / ".git" / "git-crypt" / "keys" / "default"
    key.parent.mkdir(parents=True)
    key.write_text("key\n")
    tool(home, "crypt", f"test -s {key} && tr a-z n-za-m")
    _filter(project, "git-crypt", "crypt")


def large(project: GitProject, home: Path) -> None:
    """Store files apart as LFS does, and commit their digests."""
    store = project.root / ".git" / "lfs"
    store.mkdir()
    clean = f"cat > {store}/new; sum=$(sha256sum < {store}/new); mv {store}/new {store}/one\n"
    tool(home, "big", f'case $1 in clean) {clean} echo "oid $sum";; *) cat {store}/one;; esac')
    _filter(project, "lfs", "big")


def _filter(project: GitProject, name: str, program: str) -> None:
    project.git("config", f"filter.{name}.clean", f"{program} clean")
    project.git("config", f"filter.{name}.smudge", f"{program} smudge")
    project.git("config", f"filter.{name}.required", "true")
    project.write(".gitattributes", f"work.txt filter={name}\n")


def hooked(project: GitProject, home: Path) -> None:
    """Check each commit by a program in the user's home folder."""
    tool(home, "lint", 'test "$(cat work.txt)" = work && echo linted > .git/linted')
    hook = project.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexec lint\n")
    hook.chmod(0o755)


def flagged(project: GitProject, home: Path) -> None:
    """Hide the changes of a file from git."""
    project.write("mine.txt", "theirs\n")
    project.git("add", "mine.txt")
    project.git("commit", "--quiet", "--message", "Add mine")
    project.git("update-index", "--assume-unchanged", "mine.txt")
    project.write("mine.txt", "mine\n")


def nested(project: GitProject, home: Path) -> None:
    """Have a repository in an ignored folder, with a file monitor of its own."""
    inner = GitProject(project.root / "tools")
    inner.write("a.txt", "a\n")
    inner.git("add", "a.txt")
    inner.git("commit", "--quiet", "--message", "a")
    project.write(".gitignore", "tools/\n")


COMMITTED: dict[Prepare, tuple[str, str]] = {
    encrypted: ("jbex\n", "work\n"),
    large: ("oid ", "work\n"),
    hooked: ("work\n", "work\n"),
    flagged: ("work\n", "work\n"),
    nested: ("work\n", "work\n"),
}
"""What is committed of `work.txt`, or how it begins, and what is in the work tree."""


@pytest.mark.parametrize("prepare", COMMITTED, ids=lambda prepare: str(prepare.__name__))
def test_a_commit(
    prepare: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: GitProject
) -> None:
    """A stage is committed with what the user's programs make of it; nothing else changes."""
    needs_bubblewrap(project.root)
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    prepare(project, home)
    events: list[Any] = look(project, Views())
    assert not [event for event in events if isinstance(event, CommitFailed)]
    assert any(isinstance(event, CommitPerformed) for event in events)
    committed, there = COMMITTED[prepare]
    assert project.git("cat-file", "blob", "HEAD:work.txt").startswith(committed.rstrip("\n"))
    assert there == (project.root / "work.txt").read_text()
    assert "work.txt" not in project.git("status", "--porcelain")
    if prepare is hooked:
        assert (project.root / ".git" / "linted").exists()
    if prepare is flagged:
        assert "theirs" == project.git("cat-file", "blob", "HEAD:mine.txt").strip()
        assert "h mine.txt" in project.git("ls-files", "-v")
