"""Lines that come at once, emitted together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuggino.processes import OpenInput, process_batches, reading
from tests.limits import LIMIT
from tests.processes.subscribers import Recorder, alive, children, descriptors, eventually, python

pytestmark = pytest.mark.usefixtures("enclosed")


def test_lines_that_come_at_once_can_come_together(tmp_path: Path) -> None:
    """Batches are the lines in their order, none empty: one batch for one write of the program."""
    code = "import os; os.write(1, b'a\\nb\\nc'); os.read(0, 1); os.write(1, b'd\\n\\ne')"
    argv = python(code)
    stream = process_batches(argv, cwd=tmp_path, env=dict(os.environ), stdin=b"x")
    recorder = Recorder(stream).wait()
    assert [b"a", b"b", b"cd", b"", b"e"] == [line for batch in recorder.items for line in batch]
    assert all(recorder.items)
    assert recorder.completed


PRINTS = """
import fcntl, os, sys, termios, time
def is_read():
    return not int.from_bytes(fcntl.ioctl(1, termios.FIONREAD, bytes(4)), sys.byteorder)
for line in (b"a", b"b"):
    os.write(1, line + b"\\n")
    while not is_read(): time.sleep(0.001)
for line in (b"c", b"d", b"e"):
    os.write(1, line + b"\\n")
assert not is_read()
"""
"""Prints two lines when the one before has been read, then three that it leaves in the pipe."""


def test_lines_that_follow_each_other_quickly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read together after a while, or at once when the program ends."""
    monkeypatch.setattr(reading, "GATHER", LIMIT * 10)
    stream = process_batches(python(PRINTS), cwd=tmp_path, env=dict(os.environ), stdin=b"")
    recorder = Recorder(stream).wait()
    assert recorder.items == [[b"a"], [b"b"], [b"c", b"d", b"e"]]
    assert recorder.completed


def test_disposal_between_two_batches_ends_the_process(tmp_path: Path) -> None:
    """Disposed when a batch has come, nothing more comes, and process and pipes are gone."""
    before = descriptors()
    code = "import os, time; os.write(1, b'a\\nb\\n'); time.sleep(600)"
    recorder = Recorder(
        process_batches(python(code), cwd=tmp_path, env=dict(os.environ), stdin=b"")
    )
    recorder.wait_first()
    (child,) = children()
    recorder.subscription.dispose()
    assert [[b"a", b"b"]] == recorder.items
    assert not alive(child)
    assert eventually(lambda: descriptors() <= before)


LISTENS = "import sys\nfor line in sys.stdin: print(line.rstrip()[-9:], len(line), flush=True)"


def spoken_to(code: str, stdin: OpenInput, folder: Path) -> Recorder:
    return Recorder(process_batches(python(code), cwd=folder, env=dict(os.environ), stdin=stdin))


def test_input_that_stays_open(tmp_path: Path) -> None:
    """Input added before and during the run reaches the process in order, until the end."""
    before = descriptors()
    stdin = OpenInput()
    stdin.add(b"first\n")
    recorder = spoken_to(LISTENS, stdin, tmp_path)
    assert recorder.wait_first() == [b"first 6"]
    stdin.add(b"second\n")
    stdin.end()
    stdin.add(b"too late\n")
    recorder.wait()
    assert [b"first 6", b"second 7"] == [line for batch in recorder.items for line in batch]
    assert recorder.completed
    assert eventually(lambda: descriptors() <= before)


def test_more_input_than_a_pipe_holds(tmp_path: Path) -> None:
    """Megabytes are written as the process reads; the end comes after all of it."""
    stdin = OpenInput()
    stdin.add(b"x" * 5_000_000 + b" one\n")
    recorder = spoken_to(LISTENS, stdin, tmp_path)
    recorder.wait_first()
    stdin.add(b"y" * 3_000_000 + b" two\n")
    stdin.end()
    recorder.wait()
    expected = [b"xxxxx one 5000005", b"yyyyy two 3000005"]
    assert expected == [line for batch in recorder.items for line in batch]


@pytest.mark.parametrize("code", ["", "import os; os.close(0); os.write(1, b'closed\\n')"])
def test_a_process_that_reads_no_input(tmp_path: Path, code: str) -> None:
    """Input that the process does not read is dropped, and nothing waits for it."""
    before = descriptors()
    stdin = OpenInput()
    stdin.add(b"x" * 1_000_000)
    recorder = spoken_to(code, stdin, tmp_path)
    recorder.wait()
    assert recorder.completed
    stdin.add(b"more")
    stdin.close()
    assert eventually(lambda: descriptors() <= before)


def test_disposal_with_input_left(tmp_path: Path) -> None:
    """A process that is ended leaves no descriptor, however much input is left."""
    before = descriptors()
    stdin = OpenInput()
    stdin.add(b"x" * 1_000_000)
    recorder = spoken_to("import time; print(flush=True); time.sleep(600)", stdin, tmp_path)
    recorder.wait_first()
    (child,) = children()
    recorder.subscription.dispose()
    stdin.close()
    assert not alive(child)
    assert eventually(lambda: descriptors() <= before)
