"""The removal of stale git locks, which no process can hold."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from cuggino.git.locks import remove_stale_locks
from tests.git_project import GitProject

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def repo(tmp_path: Path) -> GitProject:
    """A repository with a folder in it."""
    project = GitProject(tmp_path.resolve() / "repo")
    (project.root / "folder").mkdir()
    return project


@pytest.fixture
def lock(repo: GitProject) -> Path:
    """The lock of its index."""
    return repo.write(".git/index.lock", "")


@contextmanager
def running(*argv: str, cwd: Path) -> Iterator[None]:
    """A program that prints `ready` and waits for the end of its input."""
    with subprocess.Popen(argv, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"ready\n")
        process.stdin.flush()
        process.stdout.readline()
        yield
        process.stdin.close()


GIT = ("git", "cat-file", "--batch-check")


def test_a_lock_that_nobody_holds(repo: GitProject, lock: Path) -> None:
    """It is removed and returned; missing locks and other files are skipped."""
    gone, folder = repo.root / ".git/HEAD.lock", repo.root / "folder"
    assert [lock] == remove_stale_locks([gone, folder, lock], repo.root, since=LONG_AGO)
    assert not lock.exists()
    assert folder.is_dir()


def test_a_lock_from_before(repo: GitProject, lock: Path) -> None:
    """A lock from before the run stays."""
    since = datetime.now(UTC)
    before = (since - timedelta(seconds=5)).timestamp()
    os.utime(lock, (before, before))
    assert [] == remove_stale_locks([lock], repo.root, since=since)
    assert lock.exists()


@pytest.mark.parametrize(
    ("argv", "where"),
    [
        (GIT, "repo"),
        (GIT, "repo/folder"),
        (("git", "--git-dir={repo}/.git", *GIT[1:]), "."),
        (("git", "-C", "{repo}/folder", *GIT[1:]), "."),
    ],
)
def test_a_git_that_works_there(
    argv: tuple[str, ...], where: str, repo: GitProject, lock: Path
) -> None:
    """A lock stays while a git works in the repository, and is removed after that git has ended."""
    words = [word.format(repo=repo.root) for word in argv]
    with running(*words, cwd=repo.root.parent / where):
        assert [] == remove_stale_locks([lock], repo.root, since=LONG_AGO)
    assert [lock] == remove_stale_locks([lock], repo.root, since=LONG_AGO)


def test_a_git_that_works_elsewhere(repo: GitProject, lock: Path, tmp_path: Path) -> None:
    """A git in another repository keeps nothing here."""
    other = GitProject(tmp_path / "repo2")
    with running(*GIT, cwd=other.root):
        assert [lock] == remove_stale_locks([lock], repo.root, since=LONG_AGO)


def test_a_program_that_has_it_open(repo: GitProject, lock: Path, tmp_path: Path) -> None:
    """A process that has the file open holds it, whatever its name and wherever it works."""
    code = f"import sys; held = open({str(lock)!r}); print(flush=True); sys.stdin.read()"
    with running(sys.executable, "-c", code, cwd=tmp_path):
        assert [] == remove_stale_locks([lock], repo.root, since=LONG_AGO)
    assert [lock] == remove_stale_locks([lock], repo.root, since=LONG_AGO)


def test_a_git_that_has_ended_and_was_not_waited_for(repo: GitProject, lock: Path) -> None:
    """An ended process holds no lock."""
    ended = subprocess.Popen(["git", "--version"], cwd=repo.root, stdout=subprocess.DEVNULL)
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(ended.pid)
        while process.status() != psutil.STATUS_ZOMBIE:
            pass
    try:
        assert [lock] == remove_stale_locks([lock], repo.root, since=LONG_AGO)
    finally:
        ended.wait()


class Stranger:
    """A process that can be asked for little."""

    def __init__(self, name: str, refuses: Callable[[], Exception]) -> None:
        self._name, self._refuses = name, refuses

    def status(self) -> str:
        return psutil.STATUS_SLEEPING

    def name(self) -> str:
        return self._name

    def open_files(self) -> list[str]:
        raise psutil.AccessDenied

    def cwd(self) -> str:
        raise self._refuses()


@pytest.mark.parametrize(
    ("stranger", "removed"),
    [
        (Stranger("git", psutil.AccessDenied), False),
        (Stranger("git-remote-http", OSError), False),
        (Stranger("git", lambda: psutil.NoSuchProcess(1)), True),
        (Stranger("vi", psutil.AccessDenied), True),
    ],
)
def test_in_doubt_it_stays(
    stranger: Stranger, removed: bool, repo: GitProject, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that does not tell where it works may work here; one that has just ended does not."""
    monkeypatch.setattr(psutil, "process_iter", lambda: iter([stranger]))
    assert removed == (remove_stale_locks([lock], repo.root, since=LONG_AGO) == [lock])
    assert removed == (not lock.exists())


def test_words_that_are_no_path(
    repo: GitProject, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An argument that no path can be does not hold the lock."""
    told = Stranger("git", psutil.AccessDenied)
    monkeypatch.setattr(told, "cwd", lambda: "/", raising=False)
    monkeypatch.setattr(told, "cmdline", lambda: ["git", "--file=/a\0b"], raising=False)
    monkeypatch.setattr(psutil, "process_iter", lambda: iter([told]))
    assert [lock] == remove_stale_locks([lock], repo.root, since=LONG_AGO)
