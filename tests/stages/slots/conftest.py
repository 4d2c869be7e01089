"""A project with slots, on real git."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cuggino import run
from cuggino.events import WatchSlotPrepared, WatchWorkKept
from cuggino.stages.slots import Slot, prepare_slot, slots_of
from tests.git_project import GitProject, isolate_git, make_once
from tests.stages.slots.landings import Landings


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


class SlottedProject(GitProject):
    """A project with a commit, and its slots."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        make_once("slotted", root, self._make)

    def _make(self) -> None:
        self.write(".gitignore", ".cuggino/\n.env\ncache/\n")
        self.write("app.py", "one\n")
        self.write("lib/util.py", "util\n")
        self.commit("base")

    def commit(self, message: str, cwd: Path | None = None) -> str:
        """Commit everything and return the commit."""
        self.git("add", "--all", cwd=cwd)
        self.git("commit", "--quiet", "--allow-empty", "-m", message, cwd=cwd)
        return self.head(cwd)

    def head(self, cwd: Path | None = None) -> str:
        """Return the current commit, without a process where its branch is a file."""
        git = (cwd or self.root) / ".git"
        with suppress(OSError):
            name = (git / "HEAD").read_text().strip()
            return (git / name[5:]).read_text().strip() if name.startswith("ref: ") else name
        return self.git("rev-parse", "HEAD", cwd=cwd).strip()

    def refs(self, below: str = "refs/cuggino") -> dict[str, str]:
        """Return the commits of refs by name."""
        listed = self.git("for-each-ref", "--format=%(refname) %(objectname)", below)
        return dict(line.split(" ") for line in listed.splitlines())

    def slot(self, number: int = 1) -> Slot:
        return slots_of(self.root, None, number)[-1]

    def prepare(
        self, slot: Slot, item: str = "a.md", base: str | None = None, **options: Any
    ) -> tuple[WatchSlotPrepared, list[WatchWorkKept]]:
        """Prepare a slot; return what was prepared, and what was kept before."""
        events: list[Any] = []
        run(prepare_slot(slot, base=base or self.head(), item=item, **options), events.append)
        *kept, prepared = events
        assert isinstance(prepared, WatchSlotPrepared)
        assert all(isinstance(event, WatchWorkKept) for event in kept)
        assert prepared.slot == slot.number
        assert prepared.filename == item
        assert prepared.folder == str(slot.folder)
        return prepared, kept

    def work(self, slot: Slot, text: str = "work\n") -> str:
        """Commit a change of `app.py` in the slot, as an agent does; return the commit."""
        (slot.folder / "app.py").write_text(text)
        return self.commit("work", slot.root)


@pytest.fixture
def project(tmp_path: Path) -> SlottedProject:
    return SlottedProject(tmp_path / "shop")


@pytest.fixture
def slot(project: SlottedProject, tmp_path: Path) -> Slot:
    """The first slot of the project, prepared for the item `a.md`."""
    slot = project.slot()
    make_once(("prepared slot", project.head()), tmp_path, lambda: project.prepare(slot))
    return slot


@pytest.fixture
def work(tmp_path: Path) -> Landings:
    return Landings(tmp_path)
