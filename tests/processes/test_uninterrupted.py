"""Commands that are not interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable

from cuggino import run
from cuggino.errors import ProcessFailed
from cuggino.processes import process_output
from cuggino.testing import VirtualClock
from tests.limits import LIMIT
from tests.processes.subscribers import eventually


def uninterrupted(script: str, folder: Path, **options: Any) -> Observable[bytes]:
    words = ["sh", "-c", script]
    return process_output(words, cwd=folder, env=os.environ, uninterrupted=True, **options)


def test_output_and_exit_code(tmp_path: Path) -> None:
    """Both streams are one text, in order, which is emitted before the error."""
    script = "echo one; echo two >&2; pwd; exit 3"
    printed: list[bytes] = []
    stream = uninterrupted(script, tmp_path, merge_stderr=True)
    with pytest.raises(ProcessFailed, match="exited with code 3"):
        run(stream, printed.append)
    assert [f"one\ntwo\n{tmp_path}\n".encode()] == printed
    with pytest.raises(ProcessFailed) as killed:
        run(uninterrupted("kill -9 $$", tmp_path))
    assert -9 == killed.value.child_exit_code


def test_disposal_waits(tmp_path: Path) -> None:
    """A disposed command runs to its end, and nothing more is emitted."""
    script = "touch begun; while [ ! -e go ]; do sleep 0.01; done; touch done"
    emitted: list[bytes] = []
    clock = VirtualClock()  # it may end just before it is disposed of
    started = uninterrupted(script, tmp_path, grace=LIMIT).subscribe(
        emitted.append, scheduler=clock
    )
    eventually((tmp_path / "begun").exists)
    disposing = threading.Thread(target=started.dispose)
    disposing.start()
    (tmp_path / "go").touch()
    disposing.join(LIMIT)
    assert not disposing.is_alive()
    assert (tmp_path / "done").exists()
    clock.advance_to(clock.at(1))
    assert [] == emitted


@pytest.mark.parametrize("seconds", [0.0, 0.1])
def test_disposal_does_not_wait_indefinitely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """A hanging command is killed with its process tree, even if `Popen` has not returned yet."""

    class Slow(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            threading.Event().wait(seconds)

    monkeypatch.setattr("cuggino.processes.command.subprocess.Popen", Slow)
    script = "touch begun; sleep 1000 & wait"
    started = uninterrupted(script, tmp_path, grace=0.01).subscribe()
    eventually((tmp_path / "begun").exists)
    started.dispose()


def test_it_outlives_this_process(tmp_path: Path) -> None:
    """A killed Python process does not interrupt it."""
    script = f"""
import os, signal
from pathlib import Path
from cuggino.processes import process_output
words = ["sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.01; done; touch done"]
folder = Path({str(tmp_path)!r})
process_output(words, cwd=folder, env=os.environ, uninterrupted=True).subscribe()
while not (folder / "begun").exists(): pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", script], timeout=LIMIT, check=False)
    assert -9 == ran.returncode
    (tmp_path / "go").touch()
    eventually((tmp_path / "done").exists)
