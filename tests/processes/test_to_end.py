"""Commands that are not interrupted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from cuggino import run
from cuggino.errors import SpawnFailed
from cuggino.operators import LoopScheduler
from cuggino.processes import Ended, process_to_end
from cuggino.testing import VirtualClock
from tests.limits import LIMIT
from tests.processes.subscribers import eventually


def test_output_and_exit_code(tmp_path: Path) -> None:
    """Both streams are one text, in order; no exit code is an error."""
    script = "echo one; echo two >&2; pwd; exit 3"
    ended = run(process_to_end(["sh", "-c", script], cwd=tmp_path, env=os.environ))
    assert Ended(3, f"one\ntwo\n{tmp_path}\n".encode()) == ended
    killed = run(process_to_end(["sh", "-c", "kill -9 $$"], cwd=tmp_path, env={}))
    assert Ended(-9, b"") == killed


def test_a_program_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed, match="cannot start nowhere"):
        run(process_to_end(["nowhere"], cwd=tmp_path, env=os.environ))


def test_everything_happens_on_the_scheduler(tmp_path: Path) -> None:
    """The end is emitted on the scheduler of the subscription."""
    lane = LoopScheduler()
    threads: list[str] = []
    done = threading.Event()
    process_to_end(["true"], cwd=tmp_path, env=os.environ).subscribe(
        lambda _: threads.append(threading.current_thread().name),
        on_completed=done.set,
        scheduler=lane,
    )
    assert done.wait(LIMIT)
    lane.close()
    assert ["cuggino-loop"] == threads


def test_disposal_waits(tmp_path: Path) -> None:
    """A disposed command runs to its end, and nothing more is emitted."""
    script = "touch begun; while [ ! -e go ]; do sleep 0.01; done; touch done"
    emitted: list[Ended] = []
    clock = VirtualClock()  # it may end just before it is disposed of
    started = process_to_end(["sh", "-c", script], cwd=tmp_path, env=os.environ).subscribe(
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

    monkeypatch.setattr("cuggino.processes.to_end.subprocess.Popen", Slow)
    script = "touch begun; sleep 1000 & wait"
    started = process_to_end(
        ["sh", "-c", script], cwd=tmp_path, env=os.environ, patience=0.01
    ).subscribe()
    eventually((tmp_path / "begun").exists)
    started.dispose()


def test_it_outlives_this_process(tmp_path: Path) -> None:
    """A killed Python process does not interrupt it."""
    script = f"""
import os, signal
from pathlib import Path
from cuggino.processes import process_to_end
words = ["sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.01; done; touch done"]
folder = Path({str(tmp_path)!r})
process_to_end(words, cwd=folder, env=os.environ).subscribe()
while not (folder / "begun").exists(): pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", script], timeout=LIMIT, check=False)
    assert -9 == ran.returncode
    (tmp_path / "go").touch()
    eventually((tmp_path / "done").exists)
