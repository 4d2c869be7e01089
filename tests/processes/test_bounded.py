"""`run_bounded`: short questions."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from cuggino.errors import NoAnswer, ProcessFailed, SpawnFailed
from cuggino.processes import Said, run_bounded
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.processes.subscribers import alive, eventually


def shell(script: str, folder: Path, *, seconds: float = LIMIT, stdin: bytes | None = None) -> Said:
    with no_leaks():
        return run_bounded(["sh", "-c", script], seconds=seconds, cwd=folder, stdin=stdin)


def test_what_it_printed(tmp_path: Path) -> None:
    """The output and the errors come apart, with the exit code; it has no terminal."""
    said = shell("cat; pwd; echo no >&2; exit 3", tmp_path, stdin=b"given ")
    assert Said(3, f"given {tmp_path}\n".encode(), "no\n") == said
    assert Said(-signal.SIGTERM, b"") == shell("kill $$", tmp_path)


def test_an_answer_that_has_to_succeed() -> None:
    """The error has the last words of either pipe."""
    said = Said(1, b"on the output\n")
    with pytest.raises(ProcessFailed, match=r"git exited with code 1: on the output$"):
        said.checked("git")
    with pytest.raises(ProcessFailed, match=r"git exited with code 1: on standard error$"):
        said._replace(errors="on standard error").checked("git")
    good = Said(0, b"yes\n")
    assert good.checked("git") is good


def test_a_program_that_is_late(tmp_path: Path) -> None:
    """It is killed with its group."""
    with pytest.raises(NoAnswer, match=r"sh did not answer within 0\.2 s"):
        shell("sleep 600 & echo $! >pid; wait", tmp_path, seconds=0.2)
    assert eventually(lambda: not alive(int((tmp_path / "pid").read_text())))


def test_what_it_leaves_behind(tmp_path: Path) -> None:
    """A program that has answered is not waited for, nor killed with what it left running."""
    said = shell("sleep 600 & echo $!", tmp_path)
    left = int(said.text)
    assert alive(left)
    os.kill(left, signal.SIGKILL)


def test_a_missing_program_or_folder(tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed, match="cannot start nowhere"):
        run_bounded(["nowhere"], seconds=LIMIT)
    with pytest.raises(SpawnFailed, match=f"No such file or directory: {tmp_path}/gone"):
        run_bounded(["true"], seconds=LIMIT, cwd=tmp_path / "gone")


def test_an_interruption(tmp_path: Path) -> None:
    """Ctrl-C ends the program, too."""

    def interrupt() -> None:
        assert eventually((tmp_path / "begun").exists)
        os.kill(os.getpid(), signal.SIGINT)

    person = threading.Thread(target=interrupt)
    person.start()
    with pytest.raises(KeyboardInterrupt):
        shell("echo $$ >begun; exec sleep 600", tmp_path)
    person.join()
    assert eventually(lambda: not alive(int((tmp_path / "begun").read_text())))
