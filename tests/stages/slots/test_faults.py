"""Slots survive a kill at any moment, a full disk and large files."""

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
from cuggino.processes import process_output
from cuggino.stages.slots import (
    candidate_ref,
    kept_ref,
    prepare_slot,
    publish_candidate,
    slots_of,
)
from tests.git_commands import replace_git
from tests.stages.slots.conftest import SlottedProject


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
