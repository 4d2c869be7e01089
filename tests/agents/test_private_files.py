"""Temporary files of sessions: private, and gone with their session or soon after a kill."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from cuggino.agents.base import private_files
from cuggino.agents.base.private_files import private_file, private_folder

MAKING = """
import sys
from contextlib import ExitStack
from cuggino.agents.base.private_files import private_file, private_folder
stack = ExitStack()
private_file("prompt", stack)
(private_folder(stack) / "inside").touch()
print("made", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files, and a process that has looked at none yet."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    private_files._remove_abandoned.cache_clear()
    return tmp_path


def age(folder: Path) -> None:
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))


def test_removed_with_the_session(temporary: Path) -> None:
    """Only the user can read them, and they go with the stack."""
    with ExitStack() as stack:
        made = (private_file("ä", stack), private_folder(stack))
        assert [0o600, 0o700] == [stat.S_IMODE(path.stat().st_mode) for path in made]
        assert "ä" == made[0].read_text(encoding="utf-8")
    assert [] == list(temporary.iterdir())


def test_removed_after_a_kill(temporary: Path) -> None:
    """Those of a killed process are removed by the next; those of a running one are not."""
    with subprocess.Popen(
        [sys.executable, "-c", MAKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert b"made\n" == other.stdout.readline()
        age(temporary)
        with ExitStack() as stack:
            private_file("", stack)
        assert 2 == len(list(temporary.iterdir()))
        other.send_signal(signal.SIGKILL)
        other.wait()
    private_files._remove_abandoned.cache_clear()
    with ExitStack() as stack:
        mine = private_file("", stack)
        assert [mine] == list(temporary.iterdir())


def test_new_and_foreign_ones_stay(temporary: Path) -> None:
    """New files may not be locked yet, so they stay; other names are ignored."""
    (temporary / f"{private_files.PREFIX}new.md").touch()
    (temporary / "cuggino-other.md").touch()
    os.utime(temporary / "cuggino-other.md", (1e9, 1e9))
    with ExitStack() as stack:
        private_file("", stack)
    assert 2 == len(list(temporary.iterdir()))
