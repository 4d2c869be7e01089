"""Slots and fast-forwards survive a kill at any moment, a full disk and large files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, throw

from cuggino import run
from cuggino.errors import ProcessError, ProcessFailed
from cuggino.events import Event, WatchFollowDelayed, WatchFollowHealed
from cuggino.processes import process_output
from cuggino.stages.slots import (
    TRUNK,
    candidate_ref,
    kept_ref,
    prepare_slot,
    publish_candidate,
    slots_of,
)
from tests.git_commands import replace_git
from tests.git_project import make_once
from tests.stages.slots.conftest import SlottedProject
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

    def __init__(self, work: Landings, line_ends: str = "") -> None:
        self.work = work
        self.root = work.project.root
        make_once(("half", line_ends), work.root, self._make)
        ends = (work.head(f"refs/cuggino/following/{name}") for name in ("from", "to"))
        self.before, self.new = ends
        self.write(".git/index.lock", "")

    def _make(self) -> None:
        work = self.work
        before = work.commit("Files", FILES)
        trunk = work.opened()
        self.landed = work.candidate("a.md", {**LANDED, "folder": None, "tree/one.txt": None})
        # A file becomes a folder, and a folder a file.
        self._amend({"folder/file.txt": "1\n", "tree/two.txt": None, "tree": "a file\n"})
        assert "WatchLanded" == events(trunk.land(self.landed))[-1].tag
        work.git("update-ref", "refs/cuggino/following/from", before)
        work.git("update-ref", "refs/cuggino/following/to", work.head(TRUNK))

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
    half = Half(work, ends)
    text = LANDED["changed.txt"] or ""
    crlf = ends == "true"
    (half.root / "changed.txt").write_bytes(
        (text.replace("\n", "\r\n") if crlf else text).encode()[:77]
    )
    happened = half.restart()
    assert ["WatchFollowHealed", "WatchFollowed"] == tags(happened)
    assert half.has_followed()


# -- slots survive a kill at any moment, a full disk and large files


class Killed(Exception):
    """The process ends here."""


class Steps:
    """Ends the process before or after a command of git."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.last = 10_000
        self.after = False
        replace_git(monkeypatch, self._output)

    def kill(self, last: int, *, after: bool) -> None:
        self.count, self.last, self.after = 0, last, after

    def _output(self, *args: Any, **options: Any) -> Observable[bytes]:
        self.count += 1
        if self.count < self.last or (self.count == self.last and self.after):
            output = process_output(*args, **options)
            if self.count < self.last:
                return output
            with suppress(ProcessFailed):  # an exit code that answers a question
                run(output)
        return throw(Killed())


strides = pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.real_agent)])
"""Kill at every eighth command of git, and at each of them with the second command."""


def survives(
    steps: Steps,
    work: Callable[[], Observable[Any]],
    check: Callable[[], None],
    *,
    most: int,
    stride: int,
) -> None:
    """Do the work with kills at commands of git, each time again, and check the result."""
    for last in range(1, most, stride):
        for after in (False, True):
            steps.kill(last, after=after)
            try:
                run(work())
            except Killed:
                steps.kill(10_000, after=False)
                run(work())
                check()
            else:
                assert last > 3
                return
    raise AssertionError("there are more commands than expected")


@pytest.mark.real_agent
@strides
def test_a_kill_at_a_step(
    project: SlottedProject, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    """Whenever a preparation is killed, the next one loses nothing and keeps nothing twice."""
    slot = project.slot()
    base = project.head()
    steps = Steps(monkeypatch)
    number = 0

    def prepare() -> Observable[Any]:
        return prepare_slot(slot, base=base, item=f"{number + 1}.md")

    def check() -> None:
        nonlocal number
        refs = project.refs("refs/cuggino/kept")
        if number:
            assert list(refs) == [kept_ref(f"{number}.md", 1)]
            assert project.git("show", f"{kept_ref(f'{number}.md', 1)}:app.py") == f"{number}\n"
            project.git("update-ref", "-d", kept_ref(f"{number}.md", 1))
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        assert project.head(slot.root) == base
        number += 1
        (slot.folder / "app.py").write_text(f"{number}\n")

    survives(steps, prepare, check, most=40, stride=stride)
    assert number > 10 / stride


@strides
def test_a_killed_clone_at_a_step(
    project: SlottedProject, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    """A slot that was killed while it was made is made again."""
    slot = project.slot()
    steps = Steps(monkeypatch)

    def check() -> None:
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        assert project.refs("refs/cuggino/kept") == {}
        assert [path.name for path in sorted(slot.root.parent.iterdir())] == [
            *("slot-1", "slot-1.json")
        ]
        shutil.rmtree(slot.root.parent)

    def prepare() -> Observable[Any]:
        return prepare_slot(slot, base=project.head(), item="a.md")

    survives(steps, prepare, check, most=40, stride=stride)


@pytest.mark.real_agent
@strides
def test_a_kill_while_work_moves(
    project: SlottedProject, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    """Unfinished work goes from slot to slot, wherever a kill comes between."""
    slots = slots_of(project.root, None, 2)
    project.prepare(slots[0])
    (slots[0].folder / "app.py").write_text("committed\n")
    work = project.commit("work", slots[0].root)
    (slots[0].folder / "new.py").write_text("uncommitted\n")
    steps = Steps(monkeypatch)
    turn = 1

    def move() -> Observable[Any]:
        return prepare_slot(slots[turn], base=project.head(), item="a.md", resume=True)

    def check() -> None:
        nonlocal turn
        assert project.head(slots[turn].root) == work
        assert (slots[turn].folder / "app.py").read_text() == "committed\n"
        assert (slots[turn].folder / "new.py").read_text() == "uncommitted\n"
        turn = 1 - turn
        # The other one is taken for something else meanwhile.
        run(prepare_slot(slots[turn], base=project.head(), item="b.md"))

    survives(steps, move, check, most=60, stride=stride)


@strides
def test_a_kill_while_a_candidate_is_published(
    project: SlottedProject, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    """A candidate is published once, and an earlier one is kept once."""
    slot, base = project.slot(), project.head()
    project.prepare(slot)
    steps = Steps(monkeypatch)
    number = 0

    def work() -> Observable[Any]:
        return publish_candidate(slot, item="a.md", base=base, attempt=1)

    def check() -> None:
        nonlocal number
        assert project.refs()[candidate_ref("a.md")] == project.head(slot.root)
        assert len(project.refs("refs/cuggino/kept")) == number - 1
        again()

    def again() -> None:
        nonlocal number
        project.git("reset", "--quiet", "--hard", base, cwd=slot.root)
        number += 1
        (slot.folder / "app.py").write_text(f"{number}\n")
        project.commit("work", slot.root)

    again()
    survives(steps, work, check, most=30, stride=stride)
    assert number > 5 / stride


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A git that finds no space on the disk for a clone, while a file is there."""
    real = shutil.which("git")
    (tmp_path / "bin").mkdir()
    mark = tmp_path / "full"
    mark.write_text("")
    script = tmp_path / "bin" / "git"
    script.write_text(
        "#!/bin/sh\n"
        f'if [ -e {mark} ]; then for word in "$@"; do new=$word; done\n'
        'case " $* " in *" clone "*) mkdir -p "$new/.git"; echo part >"$new/.git/part"\n'
        'echo "fatal: cannot write: No space left on device" >&2; exit 128;; esac; fi\n'
        f'exec {real} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return mark


def test_a_full_disk(project: SlottedProject, full: Path) -> None:
    """The error has advice, nothing is left, and the slot is made once there is space."""
    slot = project.slot()
    with pytest.raises(ProcessError) as caught:
        run(prepare_slot(slot, base=project.head(), item="a.md"))
    assert "slot 1 cannot be made" in caught.value.message
    assert "No space left on device" in caught.value.message
    assert "slotFolder" in (caught.value.hint or "")
    assert list(slot.root.parent.iterdir()) == []
    full.unlink()
    project.prepare(slot)
