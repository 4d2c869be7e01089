"""Fast-forwards that were killed half way: what they wrote goes back, what a person wrote stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.events import Event, WatchFollowDelayed, WatchFollowHealed
from cuggino.stages.slots import TRUNK
from tests.stages.slots.landings import Landings, events, tags

FILES = {
    "changed.txt": "before\n",
    "removed.txt": "before\n",
    "folder": "a file\n",
    "tree/one.txt": "1\n",
    "tree/two.txt": "2\n",
    "program": "before\n",
}
LANDED: dict[str, str | None] = {
    "changed.txt": "what has landed\n" * 50,
    "removed.txt": None,
    "new/deep/file.txt": "new\n" * 50,
    "program": "#!/bin/sh\n",
}


class Half:
    """A project whose fast-forward to a landing was killed before any file was written."""

    def __init__(self, work: Landings) -> None:
        self.work = work
        self.root = work.project.root
        for path, text in FILES.items():
            work.project.write(path, text)
        self.before = work.commit("Files")
        trunk = work.opened()
        self.landed = work.candidate("a.md", {**LANDED, "folder": None, "tree/one.txt": None})
        # A file becomes a folder, and a folder a file.
        self._amend({"folder/file.txt": "1\n", "tree/two.txt": None, "tree": "a file\n"})
        assert "WatchLanded" == events(trunk.land(self.landed))[-1].tag
        self.new = work.head(TRUNK)
        work.git("update-ref", "refs/cuggino/following/from", self.before)
        work.git("update-ref", "refs/cuggino/following/to", self.new)
        self.write(".git/index.lock", "")

    def _amend(self, files: dict[str, str | None]) -> None:
        work, slot = self.work, self.work.slot
        for path, text in files.items():
            if text is None:
                (slot / path).unlink()
                if not any((slot / path).parent.iterdir()):
                    (slot / path).parent.rmdir()
            else:
                (slot / path).parent.mkdir(exist_ok=True)
                (slot / path).write_text(text)
        work.git("add", "--all", cwd=slot)
        work.git("commit", "--quiet", "--amend", "--no-edit", cwd=slot)
        commit = work.git("rev-parse", "HEAD", cwd=slot)
        work.git("fetch", "--quiet", str(slot), "+HEAD:refs/cuggino/candidates/a.md")
        self.landed = self.landed.model_copy(update={"commit": commit})

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def as_landed(self, *paths: str) -> None:
        """Write these files as the fast-forward does."""
        for path in paths:
            place = self.root / path
            if place.is_file():
                place.unlink()
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(self.work.project.git("show", f"{self.new}:{path}"))
            if path == "program":
                place.chmod(0o755)

    def restart(self) -> list[Event]:
        happened = events(self.work.trunk().open())
        assert [] == self.work.refs("refs/cuggino/following")
        assert not (self.root / ".git/index.lock").exists()
        return happened

    def has_followed(self, status: str = "") -> bool:
        assert status == self.work.status()
        return self.work.head() == self.new


@pytest.fixture
def half(work: Landings) -> Half:
    return Half(work)


def test_killed_before_the_first_file(half: Half) -> None:
    """A lock and nothing else: the lock is removed, and the branch follows."""
    assert ["WatchFollowed"] == tags(half.restart())
    assert half.has_followed()


def test_every_kind_of_change(half: Half) -> None:
    """Changed, new, removed and torn files, and files that become folders, all go back."""
    half.write("mine.txt", "mine\n")
    half.as_landed("changed.txt", "new/deep/file.txt", "program")
    (half.root / "removed.txt").unlink()
    (half.root / "folder").unlink()
    half.as_landed("folder/file.txt")
    for path in ("tree/one.txt", "tree/two.txt"):
        (half.root / path).unlink()
    (half.root / "tree").rmdir()
    half.write("tree", "a f")
    healed, followed = half.restart()
    assert isinstance(healed, WatchFollowHealed)
    assert ("main", 9) == (healed.branch, healed.restored)
    assert "a f" == half.work.project.git("show", f"{healed.kept}:tree")
    assert "mine.txt" not in half.work.git("ls-tree", "-r", "--name-only", healed.kept)
    assert "WatchFollowed" == followed.tag
    assert half.has_followed("?? mine.txt")
    assert os.access(half.root / "program", os.X_OK)


def test_a_person_has_edited_since(half: Half) -> None:
    """A person's edits after the kill stay, delay the branch and are named."""
    half.as_landed("program", "new/deep/file.txt")
    half.write("changed.txt", "mine\n")
    half.write("new/mine.txt", "mine too\n")
    happened = half.restart()
    assert ["WatchFollowHealed", "WatchFollowDelayed"] == tags(happened)
    delayed = happened[1]
    assert isinstance(delayed, WatchFollowDelayed)
    assert ("changed.txt",) == delayed.paths
    assert not half.has_followed(" M changed.txt\n?? new/mine.txt")
    assert "mine\n" == (half.root / "changed.txt").read_text()
    assert not (half.root / "new/deep").exists()


def test_a_persons_beginning_of_the_new_file(half: Half) -> None:
    """An edit that looks like a torn file goes back, but is kept as it was."""
    half.write("changed.txt", "what has")
    healed = half.restart()[0]
    assert isinstance(healed, WatchFollowHealed)
    assert "what has" == half.work.project.git("show", f"{healed.kept}:changed.txt")
    assert half.has_followed()


def test_killed_before_the_branch_has_moved(half: Half) -> None:
    """All files and the index are new, HEAD is old: they go back and move again."""
    (half.root / ".git/index.lock").unlink()
    half.write("mine.txt", "mine\n")
    half.work.git("read-tree", "-m", "-u", half.before, half.new)
    half.work.git("add", "mine.txt")
    healed = half.restart()[0]
    assert isinstance(healed, WatchFollowHealed)
    assert half.has_followed("A  mine.txt")


def test_killed_after_the_branch_has_moved(half: Half) -> None:
    """Everything is done but the note of it."""
    (half.root / ".git/index.lock").unlink()
    half.work.git("merge", "--quiet", "--ff-only", half.new)
    assert [] == half.restart()
    assert half.has_followed()


def test_a_person_has_put_it_right(half: Half) -> None:
    """A person who removed the lock, committed and went on is not disturbed."""
    half.as_landed("changed.txt", "program")
    (half.root / ".git/index.lock").unlink()
    half.work.git("checkout", "--quiet", "-b", "saved")
    mine = half.work.commit("Mine", {"other.txt": "1\n"})
    half.work.git("checkout", "--quiet", "main")
    happened = half.restart()
    assert "WatchFollowed" == happened[-1].tag
    assert half.has_followed()
    assert mine == half.work.head("saved")


def test_a_lock_that_is_held(half: Half) -> None:
    """A git that still runs is waited for."""
    half.as_landed("changed.txt")
    with (half.root / ".git/index.lock").open("w"):  # by this process
        happened = events(half.work.trunk().open())
    delayed = happened[0]
    assert isinstance(delayed, WatchFollowDelayed)
    assert "another git command is at work (index.lock exists)" == delayed.reason
    assert half.work.refs("refs/cuggino/following")
    assert ["WatchFollowHealed", "WatchFollowed"] == tags(half.restart())


def test_an_older_lock(half: Half) -> None:
    """A lock from before the fast-forward is another program's, and stays."""
    os.utime(half.root / ".git/index.lock", (1, 1))
    assert "index.lock" in getattr(events(half.work.trunk().open())[0], "reason", "")
    assert (half.root / ".git/index.lock").exists()


def test_a_sparse_checkout(half: Half, tmp_path: Path) -> None:
    """Files that the user has left out of the tree are not brought back by healing."""
    (half.root / ".git/index.lock").unlink()
    half.work.git("sparse-checkout", "set", "--no-cone", "/changed.txt", "/new/")
    half.write(".git/index.lock", "")
    half.as_landed("changed.txt")
    healed = half.restart()[0]
    assert isinstance(healed, WatchFollowHealed)
    assert 1 == healed.restored
    assert half.has_followed()
    assert ["changed.txt", "new"] == sorted(
        path.name for path in half.root.iterdir() if path.name != ".git"
    )


@pytest.mark.parametrize("ends", ["true", "input"])
def test_line_ends_of_the_system(work: Landings, ends: str) -> None:
    """Files are compared as git would commit them, regardless of their line ends on disk."""
    work.git("config", "core.autocrlf", ends)
    half = Half(work)
    text = LANDED["changed.txt"] or ""
    crlf = ends == "true"
    (half.root / "changed.txt").write_bytes(
        (text.replace("\n", "\r\n") if crlf else text).encode()[:77]
    )
    happened = half.restart()
    assert ["WatchFollowHealed", "WatchFollowed"] == tags(happened)
    assert half.has_followed()
