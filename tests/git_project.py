"""A git repository for a test, isolated from the machine's configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
import pytest

from cuggino import Runtime, run
from cuggino.events import CommitFailed, CommitPerformed, DirtyFilesCommitted
from cuggino.gate import NoWork
from cuggino.stages import GitRepository, NoSnapshots, commit_to
from tests.limits import LIMIT


def isolate_git(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Limit git to the repository's own configuration, and hide any surrounding repository."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "GPG_", "GNUPG"))]:
        monkeypatch.delenv(name)
    home.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(home.parent))


_NEW = (
    ("init", "--quiet", "--initial-branch=main"),
    ("config", "user.name", "Tester"),
    ("config", "user.email", "tester@example.org"),
)
_QUICK = (
    ("config", "maintenance.auto", "false"),  # otherwise each commit starts two more processes
    ("config", "core.fsync", "none"),
)


@cache
def _new_repository() -> dict[Path, bytes | None]:
    """Return the content of a new `.git` with an author: without hooks, None for folders."""
    with tempfile.TemporaryDirectory(prefix="cuggino-git-") as place:
        for args in (*_NEW, *_QUICK):
            subprocess.run(["git", *args], cwd=place, check=True, timeout=LIMIT)
        git = Path(place, ".git")
        return {
            path.relative_to(git): None if path.is_dir() else path.read_bytes()
            for path in sorted(git.rglob("*"))
            if path.suffix != ".sample"
        }


def _make_repository(git: Path) -> None:
    """Make a repository as git makes it, without starting git for each."""
    git.mkdir()
    for path, content in _new_repository().items():
        if content is None:
            (git / path).mkdir()
        else:
            (git / path).write_bytes(content)


@dataclass(frozen=True)
class _Copy:
    """A file, a link or, without either, a folder."""

    path: Path
    mode: int
    modified: int
    content: bytes | None = None
    target: str = ""

    @classmethod
    def of(cls, path: Path, folder: Path) -> _Copy:
        state, name = path.lstat(), path.relative_to(folder)
        if path.is_symlink():
            return cls(name, 0, 0, target=str(path.readlink()))
        content = None if path.is_dir() else path.read_bytes()
        return cls(name, state.st_mode & 0o777, state.st_mtime_ns, content)

    def write(self, folder: Path, origin: Path) -> None:
        place = folder / self.path
        if self.target:
            place.symlink_to(self.target)
        elif self.content is None:
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(self.content.replace(bytes(origin), bytes(folder)))
            place.chmod(self.mode)
            os.utime(place, ns=(self.modified, self.modified))


_MADE: dict[Hashable, tuple[Path, list[_Copy]]] = {}


def make_once(key: Hashable, folder: Path, make: Callable[[], object]) -> None:
    """Fill `folder` by `make`, and by a copy from the second call with that key on.

    The path of the folder in a file becomes that of the copy. Files that the folder had before,
    and that are as they were, are not copied.
    """
    if key not in _MADE:
        known = {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}
        make()
        _MADE[key] = (
            folder,
            [
                _Copy.of(path, folder)
                for path in sorted(folder.rglob("*"))
                if path.is_dir() or path.lstat().st_mtime_ns != known.get(path)
            ],
        )
        return
    origin, made = _MADE[key]
    for each in made:
        each.write(folder, origin)
    for each in made:
        if each.path.name == "index" and each.path.parent.name == ".git":
            _refresh((folder / each.path).parents[1])


def _refresh(root: Path) -> None:
    """Let the index know the copied files; it fails where some have changed, as was intended."""
    subprocess.run(
        ["git", "update-index", "-q", "--refresh"],
        cwd=root,
        check=False,
        capture_output=True,
        timeout=LIMIT,
    )


def commit_at(git: Path, name: str) -> str | None:
    """Return the commit of a reference by its whole name, without starting git."""
    with suppress(OSError):
        text = (git / name).read_text().strip()
        return commit_at(git, text[5:]) if text.startswith("ref: ") else text
    with suppress(OSError):
        for line in (git / "packed-refs").read_text().splitlines():
            commit, _, packed = line.partition(" ")
            if packed == name:
                return commit
    return None


def fetch_into(git: Path, source: Path, name: str = "") -> None:
    """Copy the objects of another repository, and its `HEAD` as the reference `name`.

    `git fetch` does the same with six processes.
    """
    for path in (source / "objects").rglob("*"):
        place = git / "objects" / path.relative_to(source / "objects")
        if path.is_file() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    commit = commit_at(source, "HEAD")
    if name:
        assert commit is not None
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).write_text(f"{commit}\n")


class GitProject:
    """A repository at `root`, with an author, read through git itself."""

    def __init__(self, root: Path, *, made: bool = False) -> None:
        self.root = root
        if made:
            return
        root.mkdir(parents=True, exist_ok=True)
        if (root / ".git").exists():
            for args in _NEW:
                self.git(*args)
        else:
            _make_repository(root / ".git")

    def git(self, *args: str, cwd: Path | None = None) -> str:
        ran = subprocess.run(
            ["git", *args], cwd=cwd or self.root, capture_output=True, check=True, timeout=LIMIT
        )
        return ran.stdout.decode("utf-8", "surrogateescape")

    def write(self, path: str, text: str = "text\n") -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def hook(self, name: str, script: str) -> None:
        """Install a hook with the lines of a shell script."""
        file = self.write(f".git/hooks/{name}", f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def committed(self) -> set[str]:
        """Return the files of the current commit."""
        return set(self.git("ls-tree", "-rz", "--name-only", "HEAD").split("\0")) - {""}

    def message(self) -> str:
        """Return the message of the current commit, as stored."""
        return self.git("log", "-1", "--format=%B").rstrip("\n") + "\n"

    def count(self) -> int:
        return int(self.git("rev-list", "--count", "--branches"))


def without_comparisons(runtime: Runtime) -> Runtime:
    """Return a runtime without snapshots, and whose gate compares no files of the project.

    These are half of the git commands of a run.
    """
    return runtime.replace(snapshots=NoSnapshots(), work=NoWork())


EXCLUDED = (Path(".specs"), Path(".cuggino"))


def commit(
    project: GitProject, message: str = "work", *, cwd: Path | None = None, timeout: float = 60
) -> CommitPerformed | CommitFailed | None:
    """Run the commit stage and return its result."""
    specs, *rest = EXCLUDED
    repository = GitRepository(cwd or project.root, exclude=tuple(rest), timeout=timeout)
    event = run(commit_to(repository, message, iteration=2, exclude=(specs,)))
    assert not isinstance(event, DirtyFilesCommitted)
    return event


def failure(project: GitProject, *, cwd: Path | None = None, timeout: float = 60) -> str:
    """Return the error message of a failing commit."""
    event = commit(project, cwd=cwd, timeout=timeout)
    assert isinstance(event, CommitFailed)
    assert 2 == event.iteration
    return event.message


def merging(project: GitProject) -> None:
    """Leave the project in a merge with a conflict in the file `a`."""
    project.write("a", "base\n")
    commit(project)
    project.git("checkout", "--quiet", "-b", "other")
    project.write("a", "theirs\n")
    commit(project)
    project.git("checkout", "--quiet", "main")
    project.write("a", "ours\n")
    commit(project)
    with suppress(subprocess.CalledProcessError):
        project.git("merge", "other")


def is_alive(pid: int) -> bool:
    """Return True if the process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
