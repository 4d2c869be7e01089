"""Slots are prepared for items, and lose nothing of the item before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cuggino import run
from cuggino.errors import ConfigError, ProcessError, StorageError
from cuggino.operators import Flow, ask
from cuggino.stages.slots import (
    TRUNK,
    Slot,
    base_ref,
    kept_ref,
    prepare_slot,
    preparing,
    slots_of,
)
from cuggino.stages.slots.record import record_of
from tests.git_project import GitProject
from tests.stages.slots.conftest import SlottedProject


class TestNew:
    def test_a_clone_with_the_base(self, project: SlottedProject) -> None:
        """A new slot is a clone of the project at the base, on no branch and with no remote."""
        first = project.head()
        project.write("app.py", "two\n")
        project.commit("second")
        slot = project.slot()
        prepared, kept = project.prepare(slot, base=first)
        assert (prepared.base, kept) == (first, [])
        assert project.head(slot.root) == first
        assert (slot.folder / "app.py").read_text() == "one\n"
        assert project.git("remote", cwd=slot.root) == ""
        assert project.git("for-each-ref", "refs/heads", "refs/remotes", cwd=slot.root) == ""
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        assert project.refs() == {base_ref(1): first}
        assert project.git("status", "--porcelain") == ""

    def test_it_shares_the_objects(self, project: SlottedProject) -> None:
        """The slot borrows the objects of the project instead of copying them."""
        project.write("big.bin", os.urandom(500_000).hex())
        project.commit("big")
        slot = project.slot()
        project.prepare(slot)
        own = [path for path in (slot.root / ".git" / "objects").rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in own) < 10_000

    def test_slots_are_apart(self, project: SlottedProject) -> None:
        """Every slot has its own files, branches, stashes and settings."""
        first, second = slots_of(project.root, None, 2)
        project.prepare(first, "a.md")
        project.prepare(second, "b.md")
        (first.folder / "app.py").write_text("of a\n")
        project.git("stash", cwd=first.root)
        project.git("branch", "mine", cwd=first.root)
        project.git("config", "user.name", "Somebody", cwd=first.root)
        for other in (second.root, project.root):
            assert project.git("stash", "list", cwd=other) == ""
            assert "mine" not in project.git("branch", "--list", cwd=other)
            assert project.git("config", "user.name", cwd=other) == "Tester\n"

    def test_settings_and_hooks(self, project: SlottedProject, tmp_path: Path) -> None:
        """Commits in a slot are made as in the project: same author, ignored files and hooks."""
        project.git("config", "user.name", 'Te"st\\er # ; me')
        project.git("config", "commit.gpgsign", "false")
        project.git("config", "core.autocrlf", "input")
        project.git("config", "filter.up.clean", 'tr "a-z" "A-Z"')
        project.git("config", "remote.origin.url", "https://me:secret@example.org/x.git")
        project.git("config", "http.extraHeader", "Authorization: secret")
        project.git("config", "credential.helper", "store")
        project.hook("pre-commit", "echo ran >> ../hook-log")
        project.write(".git/info/exclude", "scratch.txt\n")
        slot = project.slot()
        project.prepare(slot)
        assert project.git("config", "user.name", cwd=slot.root) == 'Te"st\\er # ; me\n'
        assert project.git("config", "filter.up.clean", cwd=slot.root) == 'tr "a-z" "A-Z"\n'
        assert project.git("config", "core.autocrlf", cwd=slot.root) == "input\n"
        assert "secret" not in (slot.root / ".git" / "config").read_text()
        assert "credential" not in (slot.root / ".git" / "config").read_text()
        (slot.folder / "scratch.txt").write_text("x")
        (slot.folder / ".cuggino").mkdir()
        (slot.folder / ".cuggino" / "lock").write_text("x")
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        (slot.folder / "new.py").write_text("x")
        project.commit("work", slot.root)
        assert (slot.root.parent / "hook-log").read_text() == "ran\n"

    @pytest.mark.parametrize("line", ["user.name=No-Value", "alias.x=!a;b"])
    def test_the_environment_is_not_written(
        self, project: SlottedProject, slot: Slot, monkeypatch: pytest.MonkeyPatch, line: str
    ) -> None:
        """Settings that an agent changed in its slot are reset for the next item."""
        key, _, value = line.partition("=")
        project.git("config", key, value, cwd=slot.root)
        (slot.root / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch evil\n")
        (slot.root / ".git" / "hooks" / "post-checkout").chmod(0o755)
        project.git("config", "core.fsmonitor", "touch evil", cwd=slot.root)
        project.prepare(slot, "b.md")
        listed = project.git("config", "--local", "--list", cwd=slot.root)
        assert line not in listed
        assert "fsmonitor" not in listed
        assert not (slot.folder / "evil").exists()
        assert list((slot.root / ".git" / "hooks").iterdir()) == []

    def test_a_project_in_a_folder_of_its_repository(self, project: SlottedProject) -> None:
        """A slot of a subproject is a clone of the whole repository."""
        (project.root / "lib" / ".specs").mkdir()
        (project.root / "lib" / ".specs" / "s.md").write_text("new\n")
        (slot,) = slots_of(project.root / "lib")
        project.prepare(slot)
        assert (slot.folder / "util.py").read_text() == "util\n"
        assert (slot.folder / ".specs" / "s.md").read_text() == "new\n"
        assert (slot.root / "app.py").exists()

    def test_a_linked_worktree(self, project: SlottedProject, tmp_path: Path) -> None:
        """The project may be a worktree of its repository."""
        project.git("worktree", "add", "--quiet", "-b", "side", "../tree")
        (tmp_path / "tree" / "side.py").write_text("side\n")
        base = project.commit("side", tmp_path / "tree")
        (slot,) = slots_of(tmp_path / "tree")
        project.prepare(slot, base=base)
        assert (slot.folder / "side.py").read_text() == "side\n"

    def test_a_shallow_project(self, project: SlottedProject, tmp_path: Path) -> None:
        """A shallow project cannot be shared: its slots have objects of their own."""
        project.write("app.py", "two\n")
        project.commit("second")
        project.git("clone", "--quiet", "--depth=1", f"file://{project.root}", "../thin")
        (slot,) = slots_of(tmp_path / "thin")
        thin = tmp_path / "thin"
        project.prepare(slot, base=project.head(thin))
        (thin / "app.py").write_text("three\n")
        project.git("config", "user.name", "T", cwd=thin)
        project.git("config", "user.email", "t@example.org", cwd=thin)
        base = project.commit("third", thin)
        project.prepare(slot, "b.md", base=base)
        assert (slot.folder / "app.py").read_text() == "three\n"


class TestAgain:
    def test_caches_stay(self, project: SlottedProject, slot: Slot) -> None:
        """The next item has the files of its base, and the caches of the item before."""
        (slot.folder / "cache").mkdir()
        (slot.folder / "cache" / "x").write_text("warm")
        project.write("app.py", "two\n")
        project.write("new.py", "new\n")
        (project.root / "lib" / "util.py").unlink()
        base = project.commit("second")
        prepared, kept = project.prepare(slot, "b.md")
        assert (prepared.base, kept) == (base, [])
        assert project.head(slot.root) == base
        assert (slot.folder / "cache" / "x").read_text() == "warm"
        assert (slot.folder / "app.py").read_text() == "two\n"
        assert not (slot.folder / "lib").exists()
        assert project.refs() == {base_ref(1): base}

    def test_a_commit_that_has_not_landed(self, project: SlottedProject, slot: Slot) -> None:
        """The commits of an item are kept before another one gets the slot, and only once."""
        work = project.work(slot)
        _, kept = project.prepare(slot, "b.md")
        assert [(event.ref, event.filename) for event in kept] == [(kept_ref("a.md", 1), "a.md")]
        assert "commits" in kept[0].reason
        assert project.refs()[kept_ref("a.md", 1)] == work
        assert project.git("show", f"{kept_ref('a.md', 1)}:app.py") == "work\n"
        assert project.prepare(slot, "c.md")[1] == []

    def test_uncommitted_work(self, project: SlottedProject, slot: Slot) -> None:
        """Changed, new, removed and staged files are kept, but no ignored ones."""
        (slot.folder / "app.py").write_text("changed\n")
        (slot.folder / "new dir").mkdir()
        (slot.folder / "new dir" / "ü.py").write_text("new\n")
        (slot.folder / "lib" / "util.py").unlink()
        (slot.folder / ".env").write_text("secret")
        (slot.folder / "staged").write_text("staged\n")
        project.git("add", "staged", cwd=slot.root)
        _, kept = project.prepare(slot, "b.md")
        (ref,) = [event.ref for event in kept]
        assert "uncommitted" in kept[0].reason
        listed = project.git("ls-tree", "-r", "--name-only", "-z", ref).split("\0")
        assert sorted(filter(None, listed)) == [".gitignore", "app.py", "new dir/ü.py", "staged"]
        assert project.git("show", f"{ref}:app.py") == "changed\n"
        assert project.git("status", "--porcelain", cwd=slot.root) == ""

    def test_large_files(self, project: SlottedProject, slot: Slot) -> None:
        """The project has the objects of LFS that kept work names."""
        path = Path("lfs", "objects", "ab", "cd", "abcd")
        (slot.root / ".git" / path).parent.mkdir(parents=True)
        (slot.root / ".git" / path).write_bytes(b"large")
        (slot.folder / "pointer").write_text("oid sha256:abcd\n")
        project.prepare(slot, "b.md")
        assert (project.root / ".git" / path).read_bytes() == b"large"

    def test_what_an_agent_leaves(self, project: SlottedProject, slot: Slot) -> None:
        """Stashes and branches are kept too; unfinished merges and locks end."""
        for text in ("first\n", "second\n"):
            (slot.folder / "app.py").write_text(text)
            project.git("stash", cwd=slot.root)
        project.git("checkout", "--quiet", "-b", "side", cwd=slot.root)
        (slot.folder / "app.py").write_text("side\n")
        side = project.commit("side", slot.root)
        project.git("checkout", "--quiet", "--detach", "HEAD~1", cwd=slot.root)
        (slot.folder / "app.py").write_text("main\n")
        project.commit("main", slot.root)
        with pytest.raises(Exception, match="merge"):
            project.git("merge", "side", cwd=slot.root)
        (slot.root / ".git" / "index.lock").write_text("")
        _, kept = project.prepare(slot, "b.md")
        assert [event.ref for event in kept] == [kept_ref("a.md", n) for n in range(1, 5)]
        texts = {project.git("show", f"{event.ref}:app.py") for event in kept[1:]}
        assert texts == {"first\n", "second\n", "side\n"}
        assert "<<<<<<<" in project.git("show", f"{kept[0].ref}:app.py")
        assert side in project.refs().values()
        assert project.git("stash", "list", cwd=slot.root) == ""
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        assert project.git("branch", "--list", cwd=slot.root).strip().startswith("* (")

    def test_landed_work_is_not_kept(self, project: SlottedProject, slot: Slot) -> None:
        """Commits that a branch of the project holds need no ref of their own."""
        project.work(slot)
        project.git("fetch", "--quiet", str(slot.root), "HEAD")
        project.git("merge", "--quiet", "--ff-only", "FETCH_HEAD")
        assert project.prepare(slot, "b.md")[1] == []

    def test_what_others_have_landed(self, project: SlottedProject, slot: Slot) -> None:
        """An item that did the same as another one has nothing to keep."""
        (slot.folder / "new.py").write_text("same\n")
        project.commit("mine", slot.root)
        project.write("new.py", "same\n")
        project.git("update-ref", TRUNK, project.commit("theirs"))
        assert project.prepare(slot, "b.md")[1] == []
        (slot.folder / "new.py").write_text("more\n")
        project.commit("mine", slot.root)
        assert len(project.prepare(slot, "c.md")[1]) == 1

    @pytest.mark.parametrize("is_committed", [False, True])
    def test_a_repository_in_the_slot(
        self, project: SlottedProject, slot: Slot, is_committed: bool
    ) -> None:
        """A slot with a repository inside, which no commit can hold, is moved aside whole.

        One that was committed as a link is not left for the next item either.
        """
        inner = GitProject(slot.folder / "vendor" / "inner")
        inner.write("work.py", "mine\n")
        inner.git("add", "--all")
        inner.git("commit", "--quiet", "--message", "x")
        if is_committed:
            project.commit("with a link", slot.root)
        _, kept = project.prepare(slot, "b.md")
        place = slot.root.with_name("kept-slot-1-1")
        commits = [kept_ref("a.md", 1)] if is_committed else []
        assert [*commits, str(place)] == [event.ref for event in kept]
        reason = "vendor/ cannot be removed" if is_committed else "vendor/inner is a repository"
        assert reason in kept[-1].reason
        assert (place / "vendor" / "inner" / "work.py").read_text() == "mine\n"
        assert not (slot.folder / "vendor").exists()
        assert project.git("status", "--porcelain", cwd=slot.root) == ""

    @pytest.mark.parametrize("damage", ["git", "objects", "head", "file"])
    def test_a_broken_slot(self, project: SlottedProject, slot: Slot, damage: str) -> None:
        """A slot that git cannot read is moved aside with its files, and recreated."""
        (slot.folder / "mine.py").write_text("mine\n")
        git = slot.root / ".git"
        if damage == "head":
            (git / "HEAD").write_text("garbage")
        elif damage == "objects":
            project.commit("work", slot.root)
            for path in (git / "objects").rglob("??*"):
                if path.is_file() and path.parent.name != "info":
                    path.unlink()
        else:
            git.rename(slot.root / "moved")
            if damage == "file":
                git.write_text("gitdir: /nowhere")
        _, kept = project.prepare(slot, "b.md")
        assert [event.ref for event in kept] == [str(slot.root.with_name("kept-slot-1-1"))]
        assert (slot.root.with_name("kept-slot-1-1") / "mine.py").read_text() == "mine\n"
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        assert project.prepare(slot, "c.md")[1] == []

    def test_line_endings_that_always_look_changed(self, project: SlottedProject) -> None:
        """Files that differ right after a checkout are no work of an agent."""
        (project.root / "crlf.txt").write_bytes(b"a\r\nb\r\n")
        project.commit("crlf")
        project.write(".gitattributes", "*.txt text=auto eol=lf\n")
        project.git("add", ".gitattributes")
        project.git("commit", "--quiet", "-m", "attributes")
        slot = project.slot()
        project.prepare(slot)
        os.utime(slot.folder / "crlf.txt", (1, 1))
        assert project.prepare(slot, "b.md")[1] == []
        (slot.folder / "app.py").write_text("work\n")
        assert len(project.prepare(slot, "c.md")[1]) == 1


class TestResuming:
    def test_in_the_same_slot(self, project: SlottedProject) -> None:
        """An item goes on in its slot with all files, on the base that it began with."""
        slot = project.slot()
        base = project.head()
        project.prepare(slot)
        work = project.work(slot, "committed\n")
        (slot.folder / "new.py").write_text("new\n")
        project.commit("landed")
        prepared, kept = project.prepare(slot, resume=True)
        assert (prepared.base, kept) == (base, [])
        assert project.head(slot.root) == work
        assert (slot.folder / "new.py").read_text() == "new\n"
        assert project.refs() == {base_ref(1): base}

    @pytest.mark.parametrize("taken", [False, True])
    def test_in_another_slot(self, project: SlottedProject, taken: bool) -> None:
        """An item goes on elsewhere with commits and uncommitted files, however it was kept."""
        first, second = slots_of(project.root, None, 2)
        base = project.head()
        project.prepare(first)
        work = project.work(first, "committed\n")
        (first.folder / "app.py").write_text("changed\n")
        (first.folder / "new.py").write_text("new\n")
        if taken:
            project.prepare(first, "b.md")
        project.write("lib/util.py", "landed\n")
        project.commit("landed")
        prepared, _ = project.prepare(second, resume=True)
        assert prepared.base == base
        assert project.head(second.root) == work
        assert (second.folder / "app.py").read_text() == "changed\n"
        status = project.git("status", "--porcelain", cwd=second.root)
        assert status == " M app.py\n?? new.py\n"

    @pytest.mark.parametrize("step", ["known_refs", "leftovers"])
    def test_while_its_slot_is_prepared(
        self, project: SlottedProject, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        """An item has its work although its slot is given to another item at the same time."""
        first, second = slots_of(project.root, None, 2)
        base = project.head()
        project.prepare(first)
        work = project.work(first)
        original, others = getattr(preparing, step), [prepare_slot(first, base=base, item="b.md")]

        def overtaken(*given: Any) -> Flow[Any]:
            if others and step == "leftovers":
                yield from ask(others.pop())
            result = yield from original(*given)
            if others:
                yield from ask(others.pop())
            return result

        monkeypatch.setattr(preparing, step, overtaken)
        project.prepare(second, resume=True)
        assert (work, base) == (project.head(second.root), project.head(first.root))
        assert ["b.md", "a.md"] == [
            record.item for slot in (first, second) if (record := record_of(slot.root))
        ]
        assert work in project.refs().values()

    def test_in_the_latest_of_several_slots(self, project: SlottedProject) -> None:
        """Of several slots with an item's work, the one that was prepared last counts."""
        slots = slots_of(project.root, None, 3)
        for slot in (slots[1], slots[0]):
            project.prepare(slot)
            (slot.folder / "app.py").write_text(f"in {slot.number}\n")
        project.prepare(slots[2], resume=True)
        assert (slots[2].folder / "app.py").read_text() == "in 1\n"
        project.prepare(slots[1], resume=True)
        assert (slots[1].folder / "app.py").read_text() == "in 2\n"

    def test_from_its_candidate(self, project: SlottedProject) -> None:
        """An item that was sent back goes on from its candidate."""
        first, second = slots_of(project.root, None, 2)
        project.prepare(first)
        work = project.work(first)
        project.git("fetch", "-q", str(first.root), "+HEAD:refs/cuggino/candidates/a.md")
        project.prepare(first, "b.md")
        project.prepare(second, resume=True)
        assert project.head(second.root) == work

    def test_without_any_work(self, project: SlottedProject) -> None:
        """An item without work begins with the base."""
        slot = project.slot()
        prepared, _ = project.prepare(slot, resume=True)
        assert prepared.base == project.head() == project.head(slot.root)


class TestFiles:
    def test_specifications(self, project: SlottedProject) -> None:
        """The specifications of the project are in the slot, committed or not, and only those."""
        project.write(".specs/a.md", "committed\n")
        project.write(".specs/gone.md", "gone\n")
        project.commit("specs")
        project.write(".specs/a.md", "changed\n")
        (project.root / ".specs" / "gone.md").unlink()
        project.write(".specs/deep/b.md", "new\n").chmod(0o755)
        (project.root / ".specs" / "link.md").symlink_to("a.md")
        slot = project.slot()
        project.prepare(slot)
        specs = slot.folder / ".specs"
        assert (specs / "a.md").read_text() == "changed\n"
        assert not (specs / "gone.md").exists()
        assert os.access(specs / "deep" / "b.md", os.X_OK)
        assert (specs / "link.md").readlink() == Path("a.md")
        (specs / "of-an-agent.md").write_text("x")
        project.write(".specs/a.md", "again\n")
        assert project.prepare(slot, "b.md")[1] == []
        assert (specs / "a.md").read_text() == "again\n"
        assert not (specs / "of-an-agent.md").exists()

    def test_specifications_elsewhere(self, project: SlottedProject, tmp_path: Path) -> None:
        """Specifications behind a link are copied, and nothing is written through it."""
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared" / "s.md").write_text("shared\n")
        (project.root / ".specs").symlink_to("../shared")
        slot = project.slot()
        project.prepare(slot)
        assert (slot.folder / ".specs" / "s.md").read_text() == "shared\n"
        project.commit("link")
        project.prepare(slot, "b.md")
        assert [path.name for path in (tmp_path / "shared").iterdir()] == ["s.md"]

    @pytest.mark.parametrize("specs", [".", "..", "/nowhere", "none"])
    def test_no_folder_of_specifications(self, project: SlottedProject, specs: str) -> None:
        """A folder of specifications that is missing or everything is nothing to copy."""
        slot = project.slot()
        project.prepare(slot, specs=specs)
        (slot.folder / "app.py").write_text("work\n")
        _, kept = project.prepare(slot, "b.md", specs=specs)
        assert len(kept) == 1
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        assert (project.root / "app.py").read_text() == "one\n"

    def test_included_files(self, project: SlottedProject) -> None:
        """Ignored files that `.worktreeinclude` names are copied with their modes, no others."""
        project.write(".worktreeinclude", ".env\nconfig/*.key\nplain.txt\n")
        project.write(".gitignore", ".env\nconfig/\ncache/\n.cuggino/\n")
        project.commit("include")
        project.write(".env", "SECRET=1\n").chmod(0o600)
        project.write("config/a.key", "key\n")
        project.write("config/other", "other\n")
        project.write("cache/x", "x\n")
        project.write("plain.txt", "not ignored\n")
        slot = project.slot()
        project.prepare(slot)
        assert (slot.folder / ".env").read_text() == "SECRET=1\n"
        assert (slot.folder / ".env").stat().st_mode & 0o777 == 0o600
        assert (slot.folder / "config" / "a.key").exists()
        for name in ("config/other", "cache", "plain.txt"):
            assert not (slot.folder / name).exists()
        project.write(".env", "SECRET=2\n")
        assert project.prepare(slot, "b.md")[1] == []
        assert (slot.folder / ".env").read_text() == "SECRET=2\n"

    def test_nothing_to_include(self, project: SlottedProject) -> None:
        """Patterns that match no ignored file copy nothing."""
        project.write(".worktreeinclude", "nothing\nplain.txt\n")
        project.write("plain.txt", "not ignored\n")
        slot = project.slot()
        project.prepare(slot)
        assert not (slot.folder / "plain.txt").exists()


class TestFaults:
    def test_a_folder_in_the_way(self, project: SlottedProject) -> None:
        """A folder that is not a slot is never touched."""
        slot = project.slot()
        slot.root.mkdir(parents=True)
        (slot.root / "mine").write_text("mine")
        with pytest.raises(ConfigError, match="is not a slot"):
            run(prepare_slot(slot, base=project.head(), item="a.md"))
        assert (slot.root / "mine").read_text() == "mine"

    def test_a_slot_of_another_project(self, project: SlottedProject, tmp_path: Path) -> None:
        """Two projects cannot share a folder for slots."""
        other = SlottedProject(tmp_path / "other")
        project.write("app.py", "mine\n")
        project.commit("mine")
        (mine,) = slots_of(project.root, "../shared")
        (theirs,) = slots_of(other.root, "../shared")
        project.prepare(mine)
        with pytest.raises(ConfigError, match="a slot of another project"):
            run(prepare_slot(theirs, base=other.head(), item="a.md"))
        (project.root.rename(tmp_path / "moved"))
        _, kept = other.prepare(theirs)
        assert [event.ref for event in kept] == [str(tmp_path / "shared" / "kept-slot-1-1")]

    def test_a_project_that_was_moved(self, project: SlottedProject, tmp_path: Path) -> None:
        """A moved project finds its slots again, with the work in them."""
        (slot,) = slots_of(project.root, "../shared")
        project.prepare(slot)
        (slot.folder / "app.py").write_text("work\n")
        project.root = project.root.rename(tmp_path / "moved")
        (slot,) = slots_of(project.root, "../shared")
        project.prepare(slot, resume=True)
        assert (slot.folder / "app.py").read_text() == "work\n"
        _, kept = project.prepare(slot, "b.md")
        assert [event.ref for event in kept] == [kept_ref("a.md", 1)]

    def test_a_folder_that_cannot_be_made(self, project: SlottedProject) -> None:
        """The error names the folder that cannot be made, and how to choose another one."""
        (slot,) = slots_of(project.root, "/proc/none/slots")
        with pytest.raises(StorageError, match="/proc/none") as caught:
            run(prepare_slot(slot, base=project.head(), item="a.md"))
        assert "slotFolder" in (caught.value.hint or "")

    def test_an_unknown_base(self, project: SlottedProject) -> None:
        """A base that the project does not have is an error, and leaves no slot behind."""
        slot = project.slot()
        with pytest.raises(ProcessError):
            run(prepare_slot(slot, base="1" * 40, item="a.md"))
        assert not slot.root.exists()
        assert project.refs() == {}

    def test_a_killed_clone(self, project: SlottedProject) -> None:
        """Remains of a killed clone are removed."""
        slot = project.slot()
        new = slot.root.with_name("slot-1.new")
        new.mkdir(parents=True)
        (new / "part").write_text("x")
        project.prepare(slot)
        assert not new.exists()

    def test_the_users_branch_is_rewritten(self, project: SlottedProject) -> None:
        """The base of a slot outlives a rewritten branch and a garbage collection."""
        project.write("app.py", "two\n")
        base = project.commit("second")
        slot = project.slot()
        project.prepare(slot)
        project.git("reset", "--quiet", "--hard", "HEAD~1")
        project.git("reflog", "expire", "--expire=now", "--all")
        project.git("gc", "--quiet", "--prune=now")
        assert project.git("log", "-1", "--format=%H", cwd=slot.root).strip() == base
        project.work(slot)
        _, kept = project.prepare(slot, "b.md")
        assert project.git("show", f"{kept[0].ref}:app.py") == "work\n"
        assert project.git("fsck", "--connectivity-only").strip() == ""
