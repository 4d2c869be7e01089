"""The `.cuggino` folder: its files, its ignore file, and its lock; projects that are known."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

import pytest

from cuggino.errors import ConfigError, StorageError, WorkspaceLocked
from cuggino.storage import (
    LockOwner,
    Workspace,
    announce_page,
    known_projects,
    read_focus,
    read_text_file,
    remember_project,
    served_page,
)
from cuggino.storage.focus import BIGGEST
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.vectors import rows


class TestFolders:
    def test_they_are_created(self, tmp_path: Path) -> None:
        """Opening creates the original's folders and two more, repeatedly without an error."""
        (row,) = (row for row in rows("cuggino_config") if row["op"] == "folders")
        for _ in range(2):
            Workspace(tmp_path).open()
        made = [".cuggino", *(p.relative_to(tmp_path).as_posix() for p in tmp_path.glob("*/[!.]*"))]
        more = [".cuggino/archive", ".cuggino/parked"]
        assert sorted([*row["expected"], *more]) == sorted(made)

    def test_an_unopened_workspace(self, tmp_path: Path) -> None:
        """A workspace that was never opened does not exist on disk."""
        Workspace(tmp_path)
        assert [] == list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("place", "deed"),
        [
            (".cuggino", lambda w: w.open()),
            (".cuggino", lambda w: w.lock().__enter__()),
            (".cuggino", lambda w: w.write_spec_issue("x")),
            (".cuggino/wip", lambda w: w.open()),
            (".cuggino/spec-issues", lambda w: w.write_spec_issue("x")),
            (".cuggino/tbd", lambda w: w.write_tbd_item("x")),
        ],
    )
    def test_a_file_in_place_of_a_folder(
        self, tmp_path: Path, place: str, deed: Callable[[Workspace], object]
    ) -> None:
        """The error names the operation and the path."""
        file = tmp_path / place
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine")
        with pytest.raises(StorageError) as caught:
            deed(Workspace(tmp_path))
        assert str(file) in caught.value.message
        assert "mine" == file.read_text()


class TestSession:
    def test_its_files_are_removed_at_the_end(self, tmp_path: Path) -> None:
        """However a session ends, its files are removed, and no others."""
        workspace = Workspace(tmp_path)
        workspace.open()
        other = workspace.wip / "left-over.md"
        other.write_text("of a killed run")
        with pytest.raises(ZeroDivisionError), workspace.session() as session:
            for file in session.files:
                file.parent.mkdir(exist_ok=True)
                file.write_text("x")
            raise ZeroDivisionError
        assert [other] == list(workspace.wip.iterdir())


class TestItems:
    def test_spec_issues_are_ordered_in_time(self, tmp_path: Path) -> None:
        """Each issue is a separate file whose name sorts by time."""
        workspace = Workspace(tmp_path)
        names = [workspace.write_spec_issue(f"issue {n}") for n in range(50)]
        assert sorted(set(names)) == names
        assert all(UUID(re.sub(r"\.md$", "", name)).version == 7 for name in names)
        assert [f"issue {n}" for n in range(50)] == [
            (workspace.spec_issues / name).read_text() for name in names
        ]
        assert sorted(names) == sorted(file.name for file in workspace.spec_issues.iterdir())

    def test_findings_have_a_separate_folder(self, tmp_path: Path) -> None:
        """A finding of the audit is stored verbatim in `tbd`."""
        workspace = Workspace(tmp_path)
        name = workspace.write_tbd_item("späße\r\n")
        assert "späße\r\n".encode() == (workspace.tbd / name).read_bytes()


class TestFocus:
    def test_a_text_is_used_verbatim(self, tmp_path: Path) -> None:
        """A focus without a leading `@` is passed to the agent."""
        for text in ("add a page", " padded ", "mail a@b.c", "two\nlines"):
            assert text == read_focus(text, tmp_path)

    def test_a_file_is_read(self, tmp_path: Path) -> None:
        """`@path` becomes the path and the content of the file, relative to the project."""
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep/page.md").write_text("\n# Page\n\nblue\n")
        expected = "The file `deep/page.md`, with this content:\n\n# Page\n\nblue"
        assert expected == read_focus("@deep/page.md", tmp_path)
        absolute = tmp_path / "deep/page.md"
        assert f"`{absolute}`" in read_focus(f"@{absolute}", tmp_path / "deep")

    @pytest.mark.parametrize(
        ("focus", "words"),
        [
            ("", "the focus is empty"),
            (" \n", "the focus is empty"),
            ("@missing.md", "--focus @missing.md: .* cannot be read: No such file or directory"),
            ("@", "--focus @: .* cannot be read: Is a directory"),
            ("@blank.md", "--focus @blank.md: .* is empty"),
        ],
    )
    def test_invalid_focus(self, tmp_path: Path, focus: str, words: str) -> None:
        """A blank focus, a missing file and a blank one are errors with a hint, and code 2."""
        (tmp_path / "blank.md").write_text(" \n")
        with pytest.raises(ConfigError, match=words) as caught:
            read_focus(focus, tmp_path)
        assert caught.value.hint
        assert 2 == caught.value.code

    def test_a_file_of_another_option(self, tmp_path: Path) -> None:
        """The error of another option's file names that option."""
        with pytest.raises(ConfigError, match=r"^--review: .*gone\.md cannot be read"):
            read_text_file(tmp_path / "gone.md", what="--review")

    def test_an_oversized_file(self, tmp_path: Path) -> None:
        """A file too large for any model is rejected unread; one that just fits is passed whole."""
        page = tmp_path / "page.md"
        page.write_text("è" * BIGGEST)
        assert BIGGEST == len(read_text_file(page, what="--focus"))
        page.write_text("è" * (BIGGEST + 1))
        with pytest.raises(ConfigError, match="too large"):
            read_focus("@page.md", tmp_path)


def test_session_files_behind_a_link_are_no_leftovers(tmp_path: Path) -> None:
    """Leftovers are removed, but not in a folder that a link leads to."""
    other, here = Workspace(tmp_path / "other"), Workspace(tmp_path / "here")
    with other.session() as session:
        session.keep = True
    here.folder.mkdir(parents=True)
    here.wip.symlink_to(other.wip)
    assert ([session.id], []) == (other.sessions(), here.sessions())


def test_a_desk_keeps_work_in_its_folder_and_all_else_at_home(tmp_path: Path) -> None:
    """Two desks are held at once, beside their home; what they store is found at home."""
    home = Workspace(tmp_path / "home")
    home.open()
    first, second = (home.desk(tmp_path / name) for name in ("1", "2"))
    with home.lock(), first.session() as one, second.session() as two:
        assert tmp_path / "1" / ".cuggino" / "wip" == one.session_file.parent
        assert tmp_path / "2" / ".cuggino" / "wip" == two.session_file.parent
        first.remember_setup("make")
        first.write_spec_issue("# Unclear")
        second.write_tbd_item("# Odd")
    assert all(ws.knows_setup("make") for ws in (first, second, home))
    assert ["Unclear", "Odd"] == [issue.title for issue in home.issues()]
    assert (home.journal, home.memory, home.prompts) == (first.journal, first.memory, first.prompts)
    assert not (tmp_path / "1" / ".cuggino" / "tbd").exists()


def test_run_files_are_ignored(tmp_path: Path) -> None:
    """Git ignores the files of runs on this machine, but not those a person works with."""
    workspace = Workspace(tmp_path)
    with workspace.session() as session:
        workspace.write_spec_issue("unclear")
        workspace.backlog.joinpath("item.md").write_text("do it")
        for name in ("journal/run.jsonl", "locks/status.lock", "agent.sha256"):
            file = workspace.folder / name
            file.parent.mkdir(exist_ok=True)
            file.touch()
        assert session.session_file.exists()
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        told = subprocess.run(
            ["git", "status", "--porcelain", "-uall"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
    names = [Path(line[3:]) for line in told.stdout.splitlines()]
    assert {".gitignore", "backlog", "spec-issues"} == {name.parts[1] for name in names}


def test_an_existing_gitignore_is_kept(tmp_path: Path) -> None:
    """An existing file is never changed."""
    workspace = Workspace(tmp_path)
    ignore = workspace.folder / ".gitignore"
    workspace.folder.mkdir()
    ignore.write_text("*\n")
    workspace.open()
    assert "*\n" == ignore.read_text()
    ignore.unlink()
    workspace.open()
    before = ignore.read_text()
    workspace.open()
    assert before == ignore.read_text()
    assert "/journal/" in before


def test_a_gitignore_that_cannot_be_written(tmp_path: Path) -> None:
    """The workspace error names the operation."""
    (tmp_path / ".cuggino" / "..gitignore.tmp").mkdir(parents=True)
    with pytest.raises(StorageError, match="gitignore") as refused:
        Workspace(tmp_path).open()
    assert "ignore run files" == refused.value.operation


HOLDER = """
import sys, time
from pathlib import Path
from cuggino.storage import Workspace
with Workspace(Path(sys.argv[1])).session() as session:
    print("held", flush=True)
    sys.stdin.readline()
"""
SINCE = datetime(2026, 3, 1, 22, 30, tzinfo=UTC)


def holder(root: Path) -> subprocess.Popen[bytes]:
    """Another process that holds the workspace until it is stopped."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert b"held\n" == process.stdout.readline()
    return process


def refusal(workspace: Workspace) -> WorkspaceLocked:
    """Return the error of a second attempt to lock the workspace."""
    with pytest.raises(WorkspaceLocked) as caught, workspace.lock():
        pass
    return caught.value


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """The error names folder, process, command and start; after SIGKILL the workspace is free."""
    before = datetime.now(UTC).replace(microsecond=0)
    with no_leaks(), holder(tmp_path) as process:
        refused = refusal(Workspace(tmp_path))
        assert process.pid == refused.pid
        assert "cuggino run" == refused.command
        assert refused.since is not None
        assert before <= refused.since <= datetime.now(UTC)
        assert f"is in use by process {process.pid} (cuggino run, since 2" in refused.message
        process.kill()
        process.wait(LIMIT)
    left = Workspace(tmp_path).owner()
    assert left is not None
    assert process.pid == left.pid
    with Workspace(tmp_path).session() as session, Workspace(tmp_path / "b").lock():
        assert session.session_file.exists()
        assert os.getpid() == refusal(Workspace(tmp_path)).pid
    assert not (tmp_path / ".cuggino/lock.json").exists()


def test_the_owner_file(tmp_path: Path) -> None:
    """The owner's file and the error have process ID, start in UTC and command."""
    east = SINCE.astimezone(timezone(timedelta(hours=2)))
    with Workspace(tmp_path).lock(command="cuggino watch", since=east):
        expected = {
            "pid": os.getpid(),
            "since": "2026-03-01T22:30:00+00:00",
            "command": "cuggino watch",
        }
        assert expected == json.loads((tmp_path / ".cuggino/lock.json").read_text())
        owner = LockOwner(pid=os.getpid(), since=SINCE, command="cuggino watch")
        assert owner == Workspace(tmp_path).owner()
        assert 2 == refusal(Workspace(tmp_path)).code
        assert refusal(Workspace(tmp_path)).message.endswith(
            f"process {os.getpid()} (cuggino watch, since 2026-03-01 22:30:00 UTC)"
        )
    assert Workspace(tmp_path).owner() is None


def test_a_second_run_in_this_process_is_refused(tmp_path: Path) -> None:
    """Two runs of one process cannot share a workspace."""
    with Workspace(tmp_path).lock():
        for _ in range(2):
            assert os.getpid() == refusal(Workspace(tmp_path)).pid
    with Workspace(tmp_path).lock():
        pass


class TestRemovedLock:
    """A lock whose file is removed while it is held, as by `git clean`."""

    @pytest.mark.parametrize("names", [["lock"], ["lock.json"], ["lock", "lock.json"]])
    def test_it_is_taken_again(self, tmp_path: Path, names: list[str]) -> None:
        """Others are refused again, and learn who the owner is."""
        workspace = Workspace(tmp_path)
        with no_leaks(), workspace.lock(command="cuggino watch", since=SINCE):
            workspace.keep_lock()
            for name in names:
                (workspace.folder / name).unlink()
            workspace.keep_lock()
            assert "cuggino watch" == refusal(Workspace(tmp_path)).command
            assert workspace.owner() == workspace.holder()
        assert workspace.owner() is None
        workspace.keep_lock()
        assert workspace.holder() is None

    def test_a_project_that_is_moved_can_come_back(self, tmp_path: Path) -> None:
        """Its place stays empty, and its lock comes back with it."""
        place, away = tmp_path / "project", tmp_path / "away"
        place.mkdir()
        workspace = Workspace(place)
        with workspace.lock(command="cuggino watch"):
            place.rename(away)
            workspace.keep_lock()
            assert not place.exists()
            away.rename(place)
            workspace.keep_lock()
            assert "cuggino watch" == refusal(Workspace(place)).command

    def test_another_owner_keeps_it(self, tmp_path: Path) -> None:
        """The first owner is refused, and leaves the files of the second one as they are."""
        first, second = Workspace(tmp_path), Workspace(tmp_path)
        with second_lock(first, second), pytest.raises(WorkspaceLocked):
            first.keep_lock()


@contextmanager
def second_lock(first: Workspace, second: Workspace) -> Iterator[None]:
    """Hold the first, remove its lock, and hold the second within the block and after it."""
    with ExitStack() as stack:
        with first.lock(command="first"):
            (first.folder / "lock").unlink()
            stack.enter_context(second.lock(command="second"))
            yield
        owner = second.owner()
        assert owner is not None
        assert "second" == owner.command
        assert "second" == refusal(first).command


def test_sessions_within_a_lock(tmp_path: Path) -> None:
    """The owner of a lock may open sessions in it, one after another; it stays locked."""
    workspace = Workspace(tmp_path)
    with workspace.lock(command="cuggino watch", since=SINCE):
        for _ in range(2):
            with workspace.session() as session:
                assert session.session_file.exists()
                assert "cuggino watch" == refusal(Workspace(tmp_path)).command
            assert not session.session_file.exists()
            assert "cuggino watch" == refusal(Workspace(tmp_path)).command
    with Workspace(tmp_path).session():
        pass


@pytest.mark.parametrize("outer", [True, False])
def test_one_session_at_a_time(tmp_path: Path, outer: bool) -> None:
    """A second session, or a second lock, is refused to the owner as well."""
    workspace = Workspace(tmp_path)
    if outer:
        lock = workspace.lock()
        lock.__enter__()
    with workspace.session() as first:
        with pytest.raises(WorkspaceLocked), workspace.session():
            pass
        refusal(workspace)
        assert [first.session_file] == list(workspace.wip.iterdir())
    if outer:
        refusal(workspace)
        lock.__exit__(None, None, None)
    with workspace.lock(), workspace.session():
        pass


def test_it_is_freed_by_an_exception(tmp_path: Path) -> None:
    """Any exception in the block frees the workspace and removes the owner."""
    with pytest.raises(ZeroDivisionError), Workspace(tmp_path).lock():
        raise ZeroDivisionError
    assert not (tmp_path / ".cuggino/lock.json").exists()
    with Workspace(tmp_path).lock():
        pass


@pytest.mark.parametrize(
    "text",
    ["", "no json", "12", "[]", "{}", '{"pid": "1"}', '{"pid": true, "since": 3, "command": []}'],
)
def test_an_unreadable_owner(tmp_path: Path, text: str) -> None:
    """With an unreadable owner file the error leaves out the owner."""
    with Workspace(tmp_path).lock():
        (tmp_path / ".cuggino/lock.json").write_text(text)
        refused = refusal(Workspace(tmp_path))
    assert (None, None, None) == (refused.pid, refused.since, refused.command)
    assert refused.message.endswith(".cuggino is in use by another process")


def _project(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_the_latest_run_comes_first(tmp_path: Path) -> None:
    """Projects are listed once each, by their latest run; one that is gone is left out."""
    state = tmp_path / "state"
    one, two, gone = (_project(tmp_path, name) for name in ("one", "zwei ü", "gone"))
    for second, folder in enumerate((one, two, gone, one)):
        remember_project(folder, state=state)
        latest = max((state / "projects").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        os.utime(latest, (second, second))
    gone.rmdir()
    assert [one, two] == known_projects(state=state)


def test_projects_of_served_pages_are_known(tmp_path: Path) -> None:
    """A project on a live page follows those that had a run, while the page is served."""
    state, one, two = tmp_path / "state", _project(tmp_path, "one"), _project(tmp_path, "two")
    remember_project(two, state=state)
    with announce_page("url", [one, two], state=state):
        assert [two, one] == known_projects(state=state)
    assert [two] == known_projects(state=state)


def test_only_the_user_can_read_them(tmp_path: Path) -> None:
    """Files are private, also the link of a page, and what is no path of a project is left out."""
    state = tmp_path / "state"
    with announce_page(URL, [tmp_path], state=state):
        (file,) = state.rglob("*.json")
        assert 0o600 == stat.S_IMODE(file.stat().st_mode)
        assert 0o700 == stat.S_IMODE(file.parent.stat().st_mode)
    remember_project(tmp_path, state=state)
    (file,) = (state / "projects").iterdir()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    file.write_bytes(b"\xff\x00")
    file.with_name("relative").write_text("..")
    assert [] == known_projects(state=state)


def test_nothing_is_known_without_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a home folder, and where none can be written, a run goes on without it.

    A page whose link cannot be written there is an error that names the folder.
    """
    file = tmp_path / "state"
    file.touch()
    remember_project(tmp_path, state=file)
    assert [] == known_projects(state=file)
    with pytest.raises(StorageError, match="state"), announce_page(URL, [tmp_path], state=file):
        pass
    assert served_page(tmp_path, state=file) is None
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    remember_project(tmp_path)
    assert [] == known_projects()
    with announce_page(URL, [tmp_path]):
        assert served_page(tmp_path) is None


URL = "http://127.0.0.1:8470/secret/?t=token"


def test_page_is_found_while_it_is_served(tmp_path: Path) -> None:
    """Other programs of the user find the link of a project, until the server ends."""
    shop, blog = (_project(tmp_path, name) for name in ("shop", "blog"))
    state = tmp_path / "state"
    assert served_page(shop, state=state) is None
    with announce_page(URL, [shop, blog], state=state):
        assert served_page(shop, state=state) == served_page(blog, state=state) == URL
        assert served_page(tmp_path, state=state) is None
    assert served_page(shop, state=state) is None
    assert [] == list(state.rglob("*.json"))


def test_file_of_a_killed_server_counts_for_nothing(tmp_path: Path) -> None:
    """The lock ends with the process; the next look removes the file."""
    program = (
        "import os, sys, pathlib; from cuggino.storage import announce_page\n"
        "with announce_page(sys.argv[1], [pathlib.Path(sys.argv[2])],"
        " state=pathlib.Path(sys.argv[2])): os.kill(os.getpid(), 9)"
    )
    ran = subprocess.run([sys.executable, "-c", program, URL, str(tmp_path)], check=False)
    assert -9 == ran.returncode
    assert 1 == len(list(tmp_path.rglob("*.json")))
    assert served_page(tmp_path, state=tmp_path) is None
    assert [] == list(tmp_path.rglob("*.json"))


def test_two_servers_of_one_process(tmp_path: Path) -> None:
    """Each has its own file."""
    one, two = (_project(tmp_path, name) for name in ("one", "two"))
    state = tmp_path / "state"
    with announce_page("1", [one], state=state):
        with announce_page("2", [two], state=state):
            assert ("1", "2") == (served_page(one, state=state), served_page(two, state=state))
        assert "1" == served_page(one, state=state)
