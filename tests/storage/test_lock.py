"""The lock of a workspace: one writer, and the error for the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from cuggino.errors import WorkspaceLocked
from cuggino.storage import LockOwner, Workspace
from cuggino.testing import no_leaks
from tests.limits import LIMIT

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
    """The error names the folder and the owner's process ID, command and start."""
    before = datetime.now(UTC).replace(microsecond=0)
    with no_leaks(), holder(tmp_path) as process:
        refused = refusal(Workspace(tmp_path))
        assert process.pid == refused.pid
        assert "cuggino run" == refused.command
        assert refused.since is not None
        assert before <= refused.since <= datetime.now(UTC)
        assert f"is in use by process {process.pid} (cuggino run, since 2" in refused.message
        process.communicate(b"\n", timeout=LIMIT)
    with Workspace(tmp_path).lock():
        pass


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


def test_the_killed_owner_frees_it(tmp_path: Path) -> None:
    """After SIGKILL of its owner the workspace is free, and its owner's file is overwritten."""
    with holder(tmp_path) as process:
        process.kill()
        process.wait(LIMIT)
    left = Workspace(tmp_path).owner()
    assert left is not None
    assert process.pid == left.pid
    with Workspace(tmp_path).session() as session:
        assert session.session_file.exists()
        assert os.getpid() == refusal(Workspace(tmp_path)).pid
    assert not (tmp_path / ".cuggino/lock.json").exists()


def test_a_second_run_in_this_process_is_refused(tmp_path: Path) -> None:
    """Two runs of one process cannot share a workspace."""
    with Workspace(tmp_path).lock():
        for _ in range(2):
            assert os.getpid() == refusal(Workspace(tmp_path)).pid
    with Workspace(tmp_path).lock():
        pass


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


def test_other_folders_are_unaffected(tmp_path: Path) -> None:
    """A lock applies to its folder only."""
    with Workspace(tmp_path / "a").lock(), Workspace(tmp_path / "b").lock():
        assert (tmp_path / "b/.cuggino").is_dir()


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
