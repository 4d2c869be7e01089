"""Candidates are published into the user's repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cuggino import run
from cuggino.errors import ProcessError
from cuggino.events import WatchCandidate
from cuggino.stages.slots import (
    Slot,
    candidate_ref,
    kept_ref,
    publish_candidate,
)
from tests.stages.slots.conftest import SlottedProject


def publish(slot: Slot, base: str, item: str = "a.md", attempt: int = 1) -> tuple[Any, list[str]]:
    """Publish a candidate; return it, and the refs of what was kept before."""
    events: list[Any] = []
    run(publish_candidate(slot, item=item, base=base, attempt=attempt), events.append)
    return events[-1], [event.ref for event in events[:-1]]


class TestPublishing:
    def test_a_candidate(self, project: SlottedProject) -> None:
        """The current commit of the slot is in the project, under the ref of the item."""
        slot, base = project.slot(), project.head()
        project.prepare(slot)
        (slot.folder / "app.py").write_text("work\n")
        work = project.commit("work", slot.root)
        (slot.folder / "app.py").write_text("uncommitted\n")
        made, kept = publish(slot, base)
        assert made == WatchCandidate(filename="a.md", slot=1, commit=work, base=base, attempt=1)
        assert kept == []
        assert project.refs()[candidate_ref("a.md")] == work
        assert project.git("show", f"{work}:app.py") == "work\n"
        assert project.git("status", "--porcelain") == ""
        assert not (project.root / ".git" / "FETCH_HEAD").exists()
        assert publish(slot, base) == (made, [])

    def test_no_work(self, project: SlottedProject) -> None:
        """An item without a commit has its base as the candidate."""
        slot, base = project.slot(), project.head()
        project.prepare(slot)
        assert publish(slot, base)[0].commit == base

    def test_a_later_candidate(self, project: SlottedProject) -> None:
        """A candidate replaces the one that it contains, and one that it does not is kept."""
        slot, base = project.slot(), project.head()
        project.prepare(slot)
        project.commit("one", slot.root)
        publish(slot, base)
        two = project.commit("two", slot.root)
        assert publish(slot, base, attempt=2)[1] == []
        project.git("reset", "--quiet", "--hard", base, cwd=slot.root)
        three = project.commit("three", slot.root)
        made, kept = publish(slot, base, attempt=3)
        assert (made.commit, kept) == (three, [kept_ref("a.md", 1)])
        assert project.refs()[kept_ref("a.md", 1)] == two
        assert project.refs()[candidate_ref("a.md")] == three

    def test_settings_of_the_agent(self, project: SlottedProject) -> None:
        """Settings made by the agent are gone before git reads the slot."""
        slot, base = project.slot(), project.head()
        project.prepare(slot)
        project.git("config", "core.fsmonitor", "false", cwd=slot.root)
        publish(slot, base)
        assert "fsmonitor" not in (slot.root / ".git" / "config").read_text()

    def test_on_a_branch_of_the_agent(self, project: SlottedProject) -> None:
        """The checked-out commit counts, also on a branch that the agent made."""
        slot, base = project.slot(), project.head()
        project.prepare(slot)
        project.git("checkout", "--quiet", "-b", "feature", cwd=slot.root)
        work = project.commit("work", slot.root)
        assert publish(slot, base)[0].commit == work
        assert project.git("branch", "--list", "feature") == ""

    def test_large_files(self, project: SlottedProject) -> None:
        """Objects of LFS, which git does not fetch, are in the project too."""
        slot, base = project.slot(), project.head()
        project.prepare(slot)
        path = Path("lfs", "objects", "ab", "cd", "abcd")
        (slot.root / ".git" / path).parent.mkdir(parents=True)
        (slot.root / ".git" / path).write_bytes(b"large")
        publish(slot, base)
        publish(slot, base)
        assert (project.root / ".git" / path).read_bytes() == b"large"

    def test_a_slot_that_is_not_prepared(self, project: SlottedProject) -> None:
        """A slot that has no work has no candidate."""
        with pytest.raises(ProcessError, match="is not prepared"):
            publish(project.slot(), project.head())

    def test_hooks_of_the_user_do_not_run(self, project: SlottedProject) -> None:
        """Refs of cuggino are no business of the project's hooks."""
        slot, base = project.slot(), project.head()
        project.prepare(slot)
        project.hook("reference-transaction", "exit 1")
        project.hook("post-checkout", "touch ../ran")
        project.commit("work", slot.root)
        publish(slot, base)
        project.prepare(slot, "b.md")
        assert candidate_ref("a.md") in project.refs()


def test_repositories_in_the_slot(project: SlottedProject, tmp_path: Path) -> None:
    """One that the work has made cannot land; one that the project has, too, is no work."""
    SlottedProject(project.root / ".specs")
    slot, base = project.slot(), project.head()
    project.prepare(slot)
    project.git("commit", "--quiet", "--allow-empty", "-m", "work", cwd=slot.root)
    SlottedProject(slot.folder / "vendored")
    with pytest.raises(ProcessError, match=r": vendored$"):
        publish(slot, base)
    shutil.rmtree(slot.folder / "vendored")
    publish(slot, base)
    assert candidate_ref("a.md") in project.refs()


class TestSubmodules:
    @pytest.fixture
    def project(self, project: SlottedProject, tmp_path: Path) -> SlottedProject:
        module = SlottedProject(tmp_path / "module")
        allowed = ("-c", "protocol.file.allow=always")
        project.git(*allowed, "submodule", "--quiet", "add", str(module.root), "libs/mod")
        project.commit("with a submodule")
        return project

    def test_are_checked_out(self, project: SlottedProject) -> None:
        """A slot has the submodules of the project, from the project's own copies."""
        slot = project.slot()
        project.prepare(slot)
        assert (slot.folder / "libs" / "mod" / "app.py").read_text() == "one\n"
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        with pytest.raises(subprocess.CalledProcessError):
            project.git("push", "origin", "HEAD:evil", cwd=slot.folder / "libs" / "mod")
        assert project.prepare(slot, "b.md")[1] == []

    def test_new_commits_in_them_do_not_land(self, project: SlottedProject) -> None:
        """A candidate cannot name a commit that only the slot has, and nothing is lost."""
        slot, base = project.slot(), project.head()
        project.prepare(slot)
        module = slot.folder / "libs" / "mod"
        project.git("config", "user.name", "T", cwd=module)
        project.git("config", "user.email", "t@example.org", cwd=module)
        (module / "app.py").write_text("work\n")
        project.commit("in the module", module)
        project.commit("around it", slot.root)
        with pytest.raises(ProcessError, match="submodule libs/mod") as caught:
            publish(slot, base)
        assert caught.value.hint
        assert candidate_ref("a.md") not in project.refs()

    def test_changes_in_them(self, project: SlottedProject) -> None:
        """Uncommitted changes in a submodule are moved aside with the slot."""
        slot = project.slot()
        project.prepare(slot)
        (slot.folder / "libs" / "mod" / "app.py").write_text("work\n")
        _, kept = project.prepare(slot, "b.md")
        (place,) = [Path(event.ref) for event in kept]
        assert (place / "libs" / "mod" / "app.py").read_text() == "work\n"
        assert (slot.folder / "libs" / "mod" / "app.py").read_text() == "one\n"
