"""Candidates are published into the user's repository; refs, pushes, and the location of slots."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cuggino import errors, run
from cuggino.errors import ConfigError, ProcessError
from cuggino.events import WatchCandidate
from cuggino.git import Said, slot_home
from cuggino.stages.slots import (
    TRUNK,
    Slot,
    base_ref,
    candidate_ref,
    item_of,
    kept_ref,
    publish_candidate,
    slots_of,
)
from cuggino.stages.slots.pushing import _error
from tests.stages.slots.conftest import SlottedProject


def publish(slot: Slot, base: str, item: str = "a.md", attempt: int = 1) -> tuple[Any, list[str]]:
    """Publish a candidate; return it, and the refs of what was kept before."""
    events: list[Any] = []
    run(publish_candidate(slot, item=item, base=base, attempt=attempt), events.append)
    return events[-1], [event.ref for event in events[:-1]]


class TestPublishing:
    def test_a_candidate(self, project: SlottedProject, slot: Slot) -> None:
        """The current commit of the slot is in the project, under the ref of the item."""
        base = project.head()
        work = project.work(slot)
        (slot.folder / "app.py").write_text("uncommitted\n")
        made, kept = publish(slot, base)
        assert made == WatchCandidate(filename="a.md", slot=1, commit=work, base=base, attempt=1)
        assert kept == []
        assert project.refs()[candidate_ref("a.md")] == work
        assert project.git("show", f"{work}:app.py") == "work\n"
        assert project.git("status", "--porcelain") == ""
        assert not (project.root / ".git" / "FETCH_HEAD").exists()
        assert publish(slot, base) == (made, [])

    def test_no_work(self, project: SlottedProject, slot: Slot) -> None:
        """An item without a commit has its base as the candidate."""
        base = project.head()
        assert publish(slot, base)[0].commit == base

    def test_a_later_candidate(self, project: SlottedProject, slot: Slot) -> None:
        """A candidate replaces the one that it contains, and one that it does not is kept."""
        base = project.head()
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

    def test_settings_of_the_agent(self, project: SlottedProject, slot: Slot) -> None:
        """Settings made by the agent are gone before git reads the slot."""
        base = project.head()
        project.git("config", "core.fsmonitor", "false", cwd=slot.root)
        publish(slot, base)
        assert "fsmonitor" not in (slot.root / ".git" / "config").read_text()

    def test_on_a_branch_of_the_agent(self, project: SlottedProject, slot: Slot) -> None:
        """The checked-out commit counts, also on a branch that the agent made."""
        base = project.head()
        project.git("checkout", "--quiet", "-b", "feature", cwd=slot.root)
        work = project.commit("work", slot.root)
        assert publish(slot, base)[0].commit == work
        assert project.git("branch", "--list", "feature") == ""

    def test_large_files(self, project: SlottedProject, slot: Slot) -> None:
        """Objects of LFS, which git does not fetch, are in the project too."""
        base = project.head()
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

    def test_hooks_of_the_user_do_not_run(self, project: SlottedProject, slot: Slot) -> None:
        """Refs of cuggino are no business of the project's hooks."""
        base = project.head()
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

    def test_are_checked_out(self, project: SlottedProject, slot: Slot) -> None:
        """A slot has the submodules of the project, from the project's own copies."""
        assert (slot.folder / "libs" / "mod" / "app.py").read_text() == "one\n"
        assert project.git("status", "--porcelain", cwd=slot.root) == ""
        with pytest.raises(subprocess.CalledProcessError):
            project.git("push", "origin", "HEAD:evil", cwd=slot.folder / "libs" / "mod")
        assert project.prepare(slot, "b.md")[1] == []

    def test_new_commits_in_them_do_not_land(self, project: SlottedProject, slot: Slot) -> None:
        """A candidate cannot name a commit that only the slot has, and nothing is lost."""
        base = project.head()
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

    def test_changes_in_them(self, project: SlottedProject, slot: Slot) -> None:
        """Uncommitted changes in a submodule are moved aside with the slot."""
        (slot.folder / "libs" / "mod" / "app.py").write_text("work\n")
        _, kept = project.prepare(slot, "b.md")
        (place,) = [Path(event.ref) for event in kept]
        assert (place / "libs" / "mod" / "app.py").read_text() == "work\n"
        assert (slot.folder / "libs" / "mod" / "app.py").read_text() == "one\n"


# -- git's messages about a remote, as errors that are waited for or not


_SSH = "fatal: Could not read from remote repository."


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            errors.ForgeUnreachable,
            "fatal: unable to access 'https://x/': Could not resolve host: x",
        ),
        (errors.ForgeUnreachable, "fatal: unable to access 'https://x/': returned error: 502"),
        (errors.ForgeUnreachable, f"ssh: connect to host x port 22: Connection refused\n{_SSH}"),
        (errors.ForgeUnreachable, "error: RPC failed; curl 56 GnuTLS recv error (-54)"),
        (errors.ForgeLoginMissing, "fatal: could not read Username for 'https://x': disabled"),
        (errors.ForgeLoginMissing, f"git@x: Permission denied (publickey).\n{_SSH}"),
        (errors.ForgeLoginMissing, "fatal: Authentication failed for 'https://x/o/r.git/'"),
        (
            errors.ForgeLoginMissing,
            "remote: Permission to o/r.git denied to me.\nreturned error: 403",
        ),
        (errors.ForgeLoginMissing, "ERROR: This repository was archived so it is read-only."),
        (errors.ForgeRefused, "remote: Repository not found.\nfatal: repository 'x' not found"),
        (errors.ForgeRefused, "ERROR: The project you were looking for could not be found"),
        (errors.ForgeRefused, "fatal: couldn't find remote ref refs/heads/main"),
        (errors.ForgeRefused, f"fatal: 'up' does not appear to be a git repository\n{_SSH}"),
        (errors.ProcessFailed, "error: unable to write file: No space left on device"),
    ],
)
def test_failures(kind: type[errors.CugginoError], text: str) -> None:
    """Outages and missing logins are waited for, by everything; a missing target is refused."""
    error = _error(Said(128, b"", text), "push cuggino/page to origin")
    assert kind is type(error)


def test_a_password_in_an_address_is_not_repeated() -> None:
    said = Said(128, b"", "fatal: unable to access 'https://me:hunter2@x/': Could not resolve host")
    assert "hunter2" not in str(_error(said, "fetch main from origin"))


# -- refs of items


NAMES = [
    "010-login.md",
    "a b.md",
    ".hidden",
    "..",
    "a..b",
    "a...b.",
    "x.lock",
    "x.lock.lock",
    "a.lockb",
    "-flag.md",
    "@",
    "@{1}",
    "HEAD",
    "~a^b:c?d*e[f\\g",
    "tab\tnewline\n",
    "größe.md",
    "%41.md",
    "A.md",
    "a/b.md",
    "x" * 255,
    "x" * 254 + "y",
    "ü" * 127,
    "ü" * 126 + "u",
    "\udcff.md",
]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_ref(name: str) -> None:
    """Any file name becomes a ref that git accepts and whose files fit into a file system."""
    for ref in (candidate_ref(name), kept_ref(name, 12)):
        subprocess.run(["git", "check-ref-format", ref], check=True, timeout=60)
        assert ref.count("/") == (3 if ref == candidate_ref(name) else 4)
        assert all(len(part) <= 200 for part in ref.split("/"))
        if len(name) < 100 and "\udcff" not in name:
            assert item_of(ref) == name


def test_names_do_not_collide() -> None:
    """Different items have different refs."""
    assert len({candidate_ref(name) for name in NAMES}) == len(NAMES)


def test_a_plain_name_stays_readable() -> None:
    """Usual names are unchanged in the ref."""
    assert candidate_ref("010-login.md") == "refs/cuggino/candidates/010-login.md"
    assert kept_ref("010-login.md", 2) == "refs/cuggino/kept/010-login.md/2"
    assert base_ref(3) == "refs/cuggino/bases/3"
    assert item_of(TRUNK) == ""


# -- the location of slots


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "My Shop" / ".git").mkdir(parents=True)
    return tmp_path / "My Shop"


def test_slots_are_beside_the_project(shop: Path, tmp_path: Path) -> None:
    """By default slots are in a folder beside the project, and none is created yet."""
    slots = slots_of(shop, None, 3)
    assert [slot.number for slot in slots] == [1, 2, 3]
    assert slots[1].folder == tmp_path / "My Shop.cuggino-slots" / "slot-2" == slots[1].root
    assert slots[1].project == shop
    assert not slots[0].root.parent.exists()


def test_a_project_in_a_folder_of_its_repository(shop: Path, tmp_path: Path) -> None:
    """The slots of a subproject are beside the repository, with names of their own."""
    within = shop / "packages" / "web"
    within.mkdir(parents=True)
    (slot,) = slots_of(within)
    assert slot.root == tmp_path / "My Shop-packages-web.cuggino-slots" / "slot-1"
    assert slot.folder == slot.root / "packages" / "web"


def test_a_folder_of_its_own(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder may be relative to the project, absolute, or below the home folder."""
    (tmp_path / "me").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert slot_home(shop, "../slots") == tmp_path / "slots"
    assert slot_home(shop, str(tmp_path / "x" / "y")) == tmp_path / "x" / "y"
    assert slot_home(shop, "~/slots") == tmp_path / "me" / "slots"


@pytest.mark.parametrize("folder", [".", "slots", ".cuggino/slots", "../My Shop/a", "../link/a"])
def test_a_folder_inside_the_project(shop: Path, tmp_path: Path, folder: str) -> None:
    """Slots inside of the project are refused, also behind a link, with exit code 2."""
    (tmp_path / "link").symlink_to(shop)
    with pytest.raises(ConfigError, match="inside the project") as caught:
        slots_of(shop, folder, 2)
    assert caught.value.code == 2
    assert "slotFolder" in (caught.value.hint or "")


def test_a_file_in_place_of_the_folder(shop: Path, tmp_path: Path) -> None:
    """A file cannot be the folder of slots."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="is not a folder"):
        slots_of(shop, "../file", 2)


def test_a_folder_that_is_not_writable(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder where nothing can be made is refused before anything starts."""
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path / "locked")
    with pytest.raises(ConfigError, match=r"locked is not writable") as caught:
        slots_of(shop, "../locked/deep/slots", 2)
    assert "slotFolder" in (caught.value.hint or "")
    assert slot_home(shop, "../locked") == tmp_path / "locked"


def test_the_environment_of_slots(shop: Path, tmp_path: Path) -> None:
    """Ports and names of containers differ by slot, and by project, and are stable."""
    first, second = slots_of(shop, None, 2)
    assert first.env == slots_of(shop, None, 2)[0].env
    assert (first.env["CUGGINO_SLOT"], first.env["PORT"]) == ("1", "20100")
    assert (second.env["CUGGINO_SLOT"], second.env["PORT"]) == ("2", "20200")
    assert first.env["COMPOSE_PROJECT_NAME"].startswith("my-shop-")
    (tmp_path / "other" / "My Shop" / ".git").mkdir(parents=True)
    (other,) = slots_of(tmp_path / "other" / "My Shop")
    names = {slot.env["COMPOSE_PROJECT_NAME"] for slot in (first, second, other)}
    assert len(names) == 3
