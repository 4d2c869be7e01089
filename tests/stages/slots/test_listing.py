"""Slots are listed, and removed where nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino import run
from cuggino.errors import ConfigError, StorageError
from cuggino.stages.slots import (
    HANDS,
    TRUNK,
    SlotListing,
    SlotsCleaned,
    base_ref,
    candidate_ref,
    clean_slots,
    kept_ref,
    list_slots,
    prepare_slot,
    publish_candidate,
    slots_of,
)
from tests.git_project import GitProject, make_once
from tests.stages.slots.conftest import SlottedProject

CHANGED = "uncommitted changes"


def listed(project: SlottedProject, **options: Any) -> SlotListing:
    listing = run(list_slots(project.root, **options))
    assert isinstance(listing, SlotListing)
    return listing


def cleaned(project: SlottedProject, **options: Any) -> SlotsCleaned:
    result = run(clean_slots(project.root, **options))
    assert isinstance(result, SlotsCleaned)
    return result


def gate_tree(folder: Path, project: Path) -> None:
    """Make a folder that is recorded as the gate tree of the project."""
    folder.mkdir()
    record = {"project": str(project), "config": ""}
    folder.with_name(f"{folder.name}.json").write_text(json.dumps(record))


def names(folders: Any) -> list[str]:
    return [folder.folder.name for folder in folders]


@pytest.fixture
def used(project: SlottedProject, tmp_path: Path) -> SlottedProject:
    """A project whose slots hold nothing, a candidate, commits and uncommitted files."""
    make_once("used slots", tmp_path, lambda: use(project))
    return project


def use(project: SlottedProject) -> None:
    slots = slots_of(project.root, None, 4)
    base = project.head()
    project.git("update-ref", TRUNK, base)
    for slot, item in zip(slots, ("a.md", "b.md", "c.md", "d.md"), strict=True):
        project.prepare(slot, item)
    for slot in slots[1:3]:
        project.work(slot, f"work {slot.number}\n")
    (slots[3].folder / "new.py").write_text("new\n")
    run(publish_candidate(slots[1], item="b.md", base=base, attempt=1))


class TestListing:
    def test_no_slots(self, project: SlottedProject, tmp_path: Path) -> None:
        """A project without slots has an empty list, and so has a folder without a repository."""
        assert listed(project) == SlotListing(folder=tmp_path / "shop.cuggino-slots", trunk=None)
        (tmp_path / "plain").mkdir()
        assert run(list_slots(tmp_path / "plain")) == SlotListing(
            folder=tmp_path / "plain.cuggino-slots", trunk=None
        )
        assert not (tmp_path / "shop.cuggino-slots").exists()

    def test_slots(self, used: SlottedProject) -> None:
        """Every slot has its item, its size and the work that no ref holds."""
        listing = listed(used)
        assert names(listing.folders) == ["slot-1", "slot-2", "slot-3", "slot-4"]
        assert [folder.item for folder in listing.folders] == ["a.md", "b.md", "c.md", "d.md"]
        assert [folder.unlanded for folder in listing.folders] == [
            "",
            "",
            "commits that have not landed",
            "uncommitted changes",
        ]
        assert all(folder.size > 10_000 for folder in listing.folders)
        assert {folder.base for folder in listing.folders} == {used.head()}
        (ref,) = listing.refs
        assert (ref.kind, ref.ref, ref.item) == ("candidate", candidate_ref("b.md"), "b.md")
        assert (ref.subject, ref.landed) == ("work", False)
        assert listing.trunk == used.head()

    def test_while_a_run_works(self, used: SlottedProject) -> None:
        """Slots that may be at work are not looked into, and never removable."""
        (used.slot(3).root / ".git" / "config").write_text("[user]\n\tname = mine\n")
        listing = listed(used, busy=True)
        assert [folder.busy for folder in listing.folders] == [True] * 4
        assert not any(folder.is_removable for folder in listing.folders)
        assert (used.slot(3).root / ".git" / "config").read_text() == "[user]\n\tname = mine\n"

    def test_other_folders(self, used: SlottedProject, tmp_path: Path) -> None:
        """Gate trees, set-aside slots and remains are recognized; other folders are not ours."""
        home = used.slot().root.parent
        gate_tree(home / "gate", used.root)
        gate_tree(home / "check-2", used.slot(2).folder)
        for name in ("check", "check-3", "slot-9.new", "slot-1.gone", "mine", "slot-7"):
            (home / name).mkdir()
        inner = GitProject(used.slot(1).folder / "inner")
        inner.write("x")
        inner.git("add", "x")
        inner.git("commit", "--quiet", "--message", "x")
        used.prepare(used.slot(1), "e.md")
        kinds = {folder.folder.name: folder.kind for folder in listed(used).folders}
        assert kinds == {
            "gate": "gate",
            "check-2": "gate",
            "slot-1": "slot",
            "slot-2": "slot",
            "slot-3": "slot",
            "slot-4": "slot",
            "slot-9.new": "remains",
            "slot-1.gone": "remains",
            "kept-slot-1-1": "aside",
        }

    def test_hands(self, used: SlottedProject) -> None:
        """They are clones of the first slot, and go before it; it stays as long as work is left."""
        clone = used.slot(1)
        home = clone.root.parent / HANDS
        first, second = slots_of(clone.folder, str(home), 2)
        for hand, task in ((first, "task-1.1"), (second, "task-1.2")):
            run(prepare_slot(hand, base=used.head(), item=task))
        gate_tree(home / "gate", clone.folder)
        (second.folder / "new.py").write_text("new\n")
        hands = [one for one in listed(used).folders if one.folder.parent == home]
        assert [
            ("gate", 0, "", ""),
            ("hand", 1, "task-1.1", ""),
            ("hand", 2, "task-1.2", CHANGED),
        ] == [(one.kind, one.number, one.item, one.unlanded) for one in hands]
        result = cleaned(used)
        assert ["slot-2", "gate", "slot-1"] == names(result.folders)
        assert {"work of hands", CHANGED} < {one.unlanded for one in result.left.folders}
        assert not first.root.exists()
        head = clone.root / ".git" / "HEAD"
        head.rename(head.with_name("gone"))
        assert "git cannot read it" in listed(used).folders[0].unlanded
        head.with_name("gone").rename(head)
        (second.folder / "new.py").unlink()
        kept = used.commit("what a task left", clone.root)
        used.git("update-ref", kept_ref("task-1.3", 1), kept, cwd=clone.root)
        used.git("reset", "--quiet", "--hard", "HEAD~", cwd=clone.root)
        assert ["slot-2"] == names(cleaned(used).folders)
        assert not home.exists()
        _, (saved,) = used.prepare(clone, "e.md")
        assert kept == used.refs()[saved.ref]

    def test_a_slot_that_git_cannot_read(self, used: SlottedProject) -> None:
        """A broken slot is listed with the reason, and not removed."""
        (used.slot(1).root / ".git" / "HEAD").write_text("garbage")
        folder = listed(used).folders[0]
        assert "git cannot read it" in folder.unlanded
        assert "slot-1" not in names(cleaned(used).folders)


class TestCleaning:
    @pytest.mark.real_agent
    def test_what_is_safe(self, used: SlottedProject) -> None:
        """Slots without unlanded work go, the others and all refs with work stay."""
        before = listed(used)
        planned = cleaned(used, dry_run=True)
        assert listed(used) == before
        result = cleaned(used)
        assert names(result.folders) == names(planned.folders) == ["slot-1", "slot-2"]
        assert (result.refs, result.left) == ((), planned.left)
        assert names(listed(used).folders) == ["slot-3", "slot-4"]
        assert (used.slot(4).folder / "new.py").read_text() == "new\n"
        assert set(used.refs()) == {TRUNK, candidate_ref("b.md"), base_ref(3), base_ref(4)}
        assert sorted(path.name for path in used.slot().root.parent.iterdir()) == [
            *("slot-3", "slot-3.json", "slot-4", "slot-4.json")
        ]

    @pytest.mark.real_agent
    def test_landed_refs(self, used: SlottedProject) -> None:
        """Refs whose work has landed go with their slots; the folder goes when it is empty."""
        used.prepare(used.slot(3), "e.md")
        used.prepare(used.slot(4), "f.md")
        kept = listed(used).refs
        assert {ref.ref for ref in kept} == {
            candidate_ref("b.md"),
            kept_ref("c.md", 1),
            kept_ref("d.md", 1),
        }
        used.git("merge", "--quiet", candidate_ref("b.md"))
        used.git("merge", "--quiet", "-s", "ours", kept_ref("c.md", 1))
        result = cleaned(used)
        assert {ref.ref for ref in result.refs} == {candidate_ref("b.md"), kept_ref("c.md", 1)}
        assert [ref.ref for ref in result.left.refs] == [kept_ref("d.md", 1)]
        assert set(used.refs()) == {TRUNK, kept_ref("d.md", 1)}
        assert not used.slot().root.parent.exists()
        used.prepare(used.slot(1), "g.md")

    def test_remains(self, used: SlottedProject) -> None:
        """Remains of a killed process are removed, read-only folders included."""
        home = used.slot().root.parent
        (home / "slot-8.gone" / "mod").mkdir(parents=True)
        (home / "slot-8.gone" / "mod" / "file").write_text("x")
        (home / "slot-8.gone" / "mod").chmod(0o555)
        gate_tree(home / "gate", used.root)
        gate_tree(home / "check", used.root)
        assert set(names(cleaned(used).folders)) == {
            *("check", "gate", "slot-1", "slot-2", "slot-8.gone")
        }
        assert not (home / "check.json").exists()
        assert not (home / "slot-8.gone").exists()

    def test_nothing(self, project: SlottedProject) -> None:
        """Without slots there is nothing to remove."""
        assert cleaned(project).folders == ()

    def test_a_folder_inside_the_project(self, project: SlottedProject) -> None:
        """A slot folder that cannot be one is never cleaned."""
        with pytest.raises(ConfigError, match="inside the project"):
            run(clean_slots(project.root, "."))

    def test_a_folder_that_cannot_be_removed(
        self, used: SlottedProject, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A folder that stays is an error that names it."""

        def refuse(self: Path, target: Path) -> Path:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "rename", refuse)
        with pytest.raises(StorageError, match="slot-1"):
            run(clean_slots(used.root))
