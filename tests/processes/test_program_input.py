"""`OpenInput`: a child process that gets more input while it runs."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cuggino.errors import ProcessFailed, SpawnFailed
from cuggino.operators import LoopScheduler
from cuggino.processes import OpenInput, process_lines
from tests.processes.subscribers import Recorder, alive, descriptors, eventually, python

pytestmark = [pytest.mark.usefixtures("enclosed"), pytest.mark.usefixtures("nothing_is_left")]

ECHO = "import sys\nfor line in sys.stdin: print('heard', line, end='', flush=True)"


def spoken_to(code: str, stdin: OpenInput, folder: Path) -> Recorder:
    return Recorder(process_lines(python(code), cwd=folder, env=os.environ, stdin=stdin))


def test_question_and_answer(tmp_path: Path) -> None:
    """Input added while the process runs reaches it, and ends when the input is closed."""
    stdin = OpenInput()
    recorder = spoken_to(ECHO, stdin, tmp_path)
    for count, word in enumerate([b"one\n", b"two\n"], 1):
        stdin.add(word)
        assert eventually(lambda count=count: len(recorder.items) == count)  # type: ignore[misc]
    stdin.close()
    recorder.wait()
    assert ([b"heard one", b"heard two"], True) == (recorder.items, recorder.completed)


def test_an_input_that_is_closed_before(tmp_path: Path) -> None:
    """A process that starts when its input is closed has none."""
    stdin = OpenInput()
    stdin.close()
    stdin.close()
    recorder = spoken_to("import sys\nprint([sys.stdin.read()])", stdin, tmp_path).wait()
    assert [b"['']"] == recorder.items
    stdin.add(b"late")


@pytest.mark.parametrize("size", [3, 1_000_000], ids=["fits into the pipe", "does not fit"])
def test_an_input_that_has_ended_before(tmp_path: Path, size: int) -> None:
    """A process that starts later gets everything that was added before the end."""
    before = descriptors()
    stdin = OpenInput()
    stdin.add(b"x" * size)
    stdin.end()
    stdin.add(b"late")
    recorder = spoken_to("import sys\nprint(len(sys.stdin.read()))", stdin, tmp_path).wait()
    assert [b"%d" % size] == recorder.items
    stdin.close()
    assert eventually(lambda: descriptors() <= before)


def test_an_ending_of_its_own(tmp_path: Path) -> None:
    """A failing process is reported as by `process_lines`, its input open or not."""
    stdin = OpenInput()
    recorder = spoken_to("import sys\nsys.exit('no\\nway')", stdin, tmp_path).wait()
    assert isinstance(recorder.error, ProcessFailed)
    assert (1, "no\nway\n") == (recorder.error.child_exit_code, recorder.error.stderr_tail)
    stdin.close()


def test_disposal(tmp_path: Path) -> None:
    """Disposal ends the whole tree, including other sessions, while the input is open."""
    stdin = OpenInput()
    code = "import os, time\nif os.fork() == 0: os.setsid()\nprint(os.getpid(), flush=True)\n"
    recorder = spoken_to(f"{code}time.sleep(600)", stdin, tmp_path)
    assert eventually(lambda: len(recorder.items) == 2)
    recorder.subscription.dispose()
    assert [False, False] == [alive(int(pid)) for pid in recorder.items]
    stdin.close()


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """A program that cannot be started is an error, and no descriptor is left."""
    before = descriptors()
    stdin = OpenInput()
    stream = process_lines([str(tmp_path / "nothing")], cwd=tmp_path, env={}, stdin=stdin)
    assert isinstance(Recorder(stream).wait().error, SpawnFailed)
    stdin.close()
    assert eventually(lambda: descriptors() <= before)


def test_a_process_that_listens_no_longer() -> None:
    """Its input is closed instead of being waited for in every turn of the lane."""
    stdin, lane = OpenInput(), LoopScheduler()
    stdin.take().close()
    stdin.write_on(lane)
    before = descriptors()
    stdin.add(b"late")
    assert descriptors() < before
    stdin.close()
    lane.close()


def test_closing_while_it_starts(tmp_path: Path) -> None:
    """Whoever closes the input while the process starts, each end is closed once."""
    before = descriptors()
    for _ in range(200):
        stdin = OpenInput()
        taken: list[bytes] = []

        def take(stdin: OpenInput = stdin, taken: list[bytes] = taken) -> None:
            with stdin.take() as source:
                taken.append(source.read())

        other = threading.Thread(target=take)
        other.start()
        stdin.close()
        other.join()
        assert [b""] == taken
    assert eventually(lambda: descriptors() <= before)
