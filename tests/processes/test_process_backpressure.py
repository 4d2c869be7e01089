"""A subscriber of `process_lines` may be slow: memory stays flat and nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hypothesis import given, strategies as st
from reactivex.scheduler import EventLoopScheduler

from cuggino.processes import process_lines, reading
from cuggino.processes.reading import LineSplitter
from tests.limits import LIMIT
from tests.processes.subscribers import Recorder, alive, eventually, python, wait_for

pytestmark = pytest.mark.usefixtures("enclosed")

MB = 1024 * 1024


def _rss() -> int:
    return psutil.Process().memory_info().rss


def _read(argv: list[str], pause: float = 0.0, every: int = 1) -> tuple[int, int, int]:
    """Lines, bytes and the growth of memory while all of the output is read."""
    lines = size = peak = 0
    before = _rss()
    ended = threading.Event()

    def take(line: bytes) -> None:
        nonlocal lines, size, peak
        lines += 1
        size += len(line)
        if lines % 500 == 0:
            peak = max(peak, _rss() - before)
        if pause and lines % every == 0:
            time.sleep(pause)

    process_lines(argv).subscribe(take, on_completed=ended.set)
    assert ended.wait(LIMIT)
    return lines, size, peak


def test_a_flood_of_200_000_lines_needs_no_memory() -> None:
    """80 MB of lines pass with a few MB of memory."""
    flood = python("import sys\nfor _ in range(200_000): sys.stdout.write('x' * 399 + '\\n')")
    _read(flood)
    lines, size, peak = _read(flood)
    assert (lines, size) == (200_000, 200_000 * 399)
    assert peak < 16 * MB


def test_a_slow_subscriber_loses_nothing_and_needs_no_memory() -> None:
    """A subscriber ten times slower than the process gets all of 40 MB in constant memory."""
    flood = python("import sys\nfor _ in range(40_000): sys.stdout.write('x' * 999 + '\\n')")
    lines, size, peak = _read(flood, pause=0.02, every=500)
    assert (lines, size) == (40_000, 40_000 * 999)
    assert peak < 16 * MB


@pytest.mark.parametrize("make", [lambda: None, EventLoopScheduler], ids=["own", "another"])
@pytest.mark.parametrize("size", [2**16, 2**10])
def test_a_blocked_subscriber_stops_the_process(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    make: Callable[[], EventLoopScheduler | None],
) -> None:
    """While `on_next` does not return, the process gets no further than its pipe allows.

    This holds for lines that are read alone, and for short ones that are read after a while.
    """
    monkeypatch.setattr(reading, "GATHER", 1e-3)
    log = tmp_path / "log"
    code = """
import fcntl, os, sys, termios, time
size = int(sys.argv[2])
log = os.open(sys.argv[1], os.O_WRONLY)
for number in range(20 * 2**16 // size):
    while any(fcntl.ioctl(1, termios.FIONREAD, bytes(4))): time.sleep(0.0001)
    os.write(1, b"x" * (size - 2) + b"\\n\\n")
    os.write(log, b"x" * size)
"""
    log.touch()
    release, scheduler = threading.Event(), make()
    stream = process_lines([*python(code), log, str(size)])
    recorder = Recorder(stream, on_next=lambda _: wait_for(release), scheduler=scheduler)
    recorder.wait_first()
    assert not eventually(lambda: log.stat().st_size > 10 * size, limit=0.5)
    release.set()
    assert len(recorder.wait().items) == 2 * 20 * 2**16 // size
    if scheduler is not None:
        scheduler.dispose()


def test_a_slow_subscriber_gets_all_of_a_process_that_has_long_ended() -> None:
    """Output in the pipe at the exit is read, however late, while others hold it open."""
    code = """
import os, sys, time
grandchild = os.fork()
if grandchild == 0:
    os.setsid()
    time.sleep(600)
for letter, size in ("x", 65_535), ("y", 65_535), ("z", 65_000):
    sys.stdout.write(letter * size + "\\n")
print(grandchild)
sys.stdout.flush()
"""
    pauses = iter([1.5, 0.2])
    recorder = Recorder(
        process_lines(python(code)), on_next=lambda _: time.sleep(next(pauses, 0.0))
    ).wait()
    assert [len(line) for line in recorder.items[:3]] == [65_535, 65_535, 65_000]
    assert not alive(int(recorder.items[3]))


@given(st.lists(st.binary(max_size=9) | st.sampled_from([b"\n", b"a\nb\n", b"\r\n"])))
def test_splitting_does_not_depend_on_the_chunks(chunks: list[bytes]) -> None:
    """However the output is cut into chunks, the lines are those of the whole."""
    splitter = LineSplitter(1000)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)] + splitter.rest()
    *whole, last = b"".join(chunks).split(b"\n")
    assert whole + ([last] if last else []) == lines
    assert not splitter.overflow


@given(st.lists(st.text("ab\n", max_size=9)), st.integers(0, 5))
def test_the_limit_does_not_depend_on_the_chunks(chunks: list[str], limit: int) -> None:
    """All lines before the first overlong one come, and overflow is exactly its presence."""
    splitter = LineSplitter(limit)
    lines: list[bytes] = []
    for chunk in chunks:
        lines += splitter.feed(chunk.encode())
        if splitter.overflow:
            break
    whole = "".join(chunks).encode().split(b"\n")
    overlong = next((n for n, line in enumerate(whole) if len(line) > limit), None)
    assert (overlong is not None) == splitter.overflow
    assert whole[: len(whole) - 1 if overlong is None else overlong] == lines
