"""Programs on the lane of their subscription: several on one, and slow subscribers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, strategies as st
from reactivex.scheduler import EventLoopScheduler

from cuggino.operators import LoopScheduler
from cuggino.processes import interrupt_processes, process_lines, process_output, reading
from cuggino.processes.reading import LineSplitter
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.processes.enclosures import plain_only
from tests.processes.subscribers import (
    Recorder,
    alive,
    children,
    descriptors,
    eventually,
    exists,
    python,
    wait_for,
)

pytestmark = pytest.mark.usefixtures("enclosed")


@pytest.fixture
def lane() -> Iterator[LoopScheduler]:
    with no_leaks():
        lane = LoopScheduler()
        yield lane
        lane.close()


def on(lane: LoopScheduler, action: Callable[[], object]) -> None:
    """Run an action on the lane, and wait for its end."""
    done = threading.Event()

    def run(*_: object) -> None:
        try:
            action()
        finally:
            done.set()

    lane.schedule(run)
    wait_for(done)


def test_programs_are_read_on_the_lane_itself(lane: LoopScheduler) -> None:
    """All programs of a lane share its thread, and there is no other."""
    before = set(threading.enumerate())
    recorders = [
        Recorder(process_lines(["sh", "-c", f"echo {n}; exec sleep 600"]), scheduler=lane)
        for n in range(5)
    ]
    assert [b"%d" % n for n in range(5)] == [recorder.wait_first() for recorder in recorders]
    threads = set.union(*(recorder.threads for recorder in recorders))
    assert ["cuggino-loop"] == [thread.name for thread in threads]
    assert threads == set(threading.enumerate()) - before
    for recorder in recorders:
        recorder.subscription.dispose()


def test_a_flood_leaves_turns_to_others(lane: LoopScheduler) -> None:
    """Beside two programs that print without end, a third's few lines and a timer come through."""
    floods = [Recorder(process_lines(["yes", str(n)]), scheduler=lane) for n in range(2)]
    for flood in floods:
        flood.wait_first()
    timer = threading.Event()
    lane.schedule_relative(0.01, lambda *_: timer.set())
    few = Recorder(process_lines(["sh", "-c", "echo a; sleep 0.1; echo b"]), scheduler=lane)
    assert [b"a", b"b"] == few.wait().items
    wait_for(timer)
    counts = [len(flood.items) for flood in floods]
    assert eventually(lambda: all(len(f.items) > n for f, n in zip(floods, counts, strict=True))), (
        "one starves the other"
    )
    for flood in floods:
        flood.subscription.dispose()


def test_disposal_on_the_lane_while_others_are_read(lane: LoopScheduler) -> None:
    """The disposal of one program on the lane returns with its tree gone; the others continue."""
    first = Recorder(process_lines(["sh", "-c", "echo; exec sleep 600"]), scheduler=lane)
    first.wait_first()
    (gone,) = children()
    flood = Recorder(process_lines(["yes"]), scheduler=lane)
    flood.wait_first()
    left: list[set[int]] = []

    def dispose() -> None:
        first.subscription.dispose()
        left.append(children())

    on(lane, dispose)
    assert [False] == [gone in pids for pids in left]
    count = len(flood.items)
    assert eventually(lambda: len(flood.items) > count)
    flood.subscription.dispose()


def test_disposal_by_another_thread_while_the_lane_is_blocked(lane: LoopScheduler) -> None:
    """It needs no turn of the lane; what is scheduled meanwhile runs afterwards."""
    recorder = Recorder(process_lines(["sh", "-c", "echo $$; exec sleep 600"]), scheduler=lane)
    pid = int(recorder.wait_first())
    blocked, release = threading.Event(), threading.Event()

    def block(*_: object) -> None:
        blocked.set()
        wait_for(release)

    lane.schedule(block)
    wait_for(blocked)
    recorder.subscription.dispose()
    assert not exists(pid)
    release.set()
    on(lane, lambda: None)
    assert (None, False) == (recorder.error, recorder.completed)


def test_a_disposed_lane_terminates_its_programs() -> None:
    """Programs that nobody has disposed of end with their lane, also those that print nothing."""
    before = descriptors()
    with no_leaks():
        lane = LoopScheduler()
        recorders = [
            Recorder(process_lines(["sh", "-c", "echo $$; exec sleep 600"]), scheduler=lane)
            for _ in range(2)
        ]
        for recorder in recorders:
            recorder.wait_first()
        lane.close()
        assert set() == children()
        for recorder in recorders:
            recorder.subscription.dispose()
    assert descriptors() <= before


def test_a_program_is_not_started_on_a_lane_that_has_ended() -> None:
    """The error is the stream's, and nothing is left."""
    with no_leaks():
        lane = LoopScheduler()
        lane.close()
        recorder = Recorder(process_lines(["sleep", "600"]), scheduler=lane).wait()
    assert recorder.error is not None
    assert set() == children()


STUBBORN = "trap '' INT TERM; echo $$; while :; do sleep 600; done"


def test_interrupted_programs_end_together_on_a_blocked_lane(
    lane: LoopScheduler, tmp_path: Path
) -> None:
    """Disposed one after the other, each takes the steps of all: none waits for its turn."""
    argv = python(
        "import signal, sys, time, pathlib\n"
        "def leave(*_):\n"
        "    pathlib.Path(sys.argv[1]).touch()\n"
        "    while len(list(pathlib.Path.cwd().glob('asked*'))) < 3: time.sleep(0.01)\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, leave)\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print(flush=True)\n"
        "time.sleep(600)"
    )
    recorders = [
        Recorder(
            process_lines([*argv, f"asked{n}"], cwd=tmp_path, grace=0.5 if n else LIMIT),
            scheduler=lane,
        )
        for n in range(1, 4)
    ]
    for recorder in recorders:
        recorder.wait_first()

    def dispose() -> None:
        interrupt_processes(tmp_path)
        for recorder in recorders:
            recorder.subscription.dispose()

    on(lane, dispose)
    assert 3 == len(list(tmp_path.glob("asked*")))
    assert set() == children()


def test_interrupted_programs_end_without_disposal(lane: LoopScheduler, tmp_path: Path) -> None:
    """The lane takes the steps itself: from SIGINT to SIGKILL, while timers run."""
    recorder = Recorder(
        process_lines(["sh", "-c", STUBBORN], cwd=tmp_path, grace=0.2), scheduler=lane
    )
    pid = int(recorder.wait_first())
    interrupt_processes(tmp_path)
    on(lane, lambda: None)
    assert alive(pid), "it ignores SIGINT, and the lane does not wait for it"
    assert eventually(lambda: not exists(pid))
    assert (None, False) == (recorder.error, recorder.completed)
    recorder.subscription.dispose()


@plain_only
def test_left_overs_do_not_stop_the_lane(lane: LoopScheduler) -> None:
    """While processes left behind get their grace, other programs of the lane are read."""
    script = "(trap '' TERM; exec sleep 600) >/dev/null 2>&1 & echo $!; sleep 0.2"
    during: list[bool] = []
    left = Recorder(process_lines(["sh", "-c", script], sweep=True), scheduler=lane)
    job = int(left.wait_first())
    ticking = "while :; do echo; sleep 0.02; done"
    other = Recorder(
        process_lines(["sh", "-c", ticking]),
        on_next=lambda _: during.append(left.ended.is_set()),
        scheduler=lane,
    )
    left.wait()
    assert not alive(job)
    assert during.count(False) > 3
    other.subscription.dispose()


@pytest.mark.real_agent
def test_many_runs_on_one_lane_leave_nothing(lane: LoopScheduler) -> None:
    """Programs that end, fail, are disposed and are missing leave no thread and no descriptor."""
    on(lane, lambda: None)
    before, threads = descriptors(), set(threading.enumerate())
    for number in range(10):
        script = f"echo {number}; exit {number % 2}"
        Recorder(process_lines(["sh", "-c", script]), scheduler=lane).wait()
        Recorder(process_lines(["/missing"]), scheduler=lane).wait()
        running = Recorder(process_lines(["sh", "-c", "echo; exec sleep 600"]), scheduler=lane)
        running.wait_first()
        running.subscription.dispose()
    assert descriptors() <= before
    assert threads == set(threading.enumerate())
    assert set() == children()


def test_a_program_of_another_scheduler_has_a_lane_of_its_own() -> None:
    """It is read on a private thread named after it, which has ended after the program."""
    scheduler, go_on = EventLoopScheduler(), threading.Event()
    script = "echo a; echo b; read -r line; exit 3"
    stream = process_lines(["sh", "-c", script])
    with no_leaks():
        seen: list[Any] = []
        recorder = Recorder(stream, on_next=lambda _: wait_for(go_on), scheduler=scheduler)
        recorder.wait_first()
        seen += [thread.name for thread in threading.enumerate() if thread.name == "cuggino-sh"]
        go_on.set()
        recorder.wait()
        assert eventually(lambda: "cuggino-sh" not in [t.name for t in threading.enumerate()])
        scheduler.dispose()
    assert len(seen) <= 1
    assert [b"a", b"b"] == recorder.items


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_copy_reads_its_own_programs(lane: LoopScheduler) -> None:
    """A copy runs programs on its lane; the original's program stays with the original."""
    recorder = Recorder(process_lines(["sh", "-c", "echo $$; read x; echo more"]), scheduler=lane)
    recorder.wait()
    ours = Recorder(process_lines(["sh", "-c", "echo; exec sleep 600"]), scheduler=lane)
    ours.wait_first()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            copy = Recorder(process_output(["echo", "copy"], cwd="/", env={}), scheduler=lane)
            code = 0 if copy.wait().items == [b"copy\n"] else 2
            lane.close()
        finally:
            os._exit(code)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert 1 == len(children())
    ours.subscription.dispose()
    assert set() == children()


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
    lines, size, peak = _read(flood, pause=0.02, every=2000)
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
for number in range(40):
    while any(fcntl.ioctl(1, termios.FIONREAD, bytes(4))): time.sleep(0.0001)
    os.write(1, b"x" * (size - 2) + b"\\n\\n")
    os.write(log, b"x" * size)
"""
    log.touch()
    release, scheduler = threading.Event(), make()
    stream = process_lines([*python(code), log, str(size)])
    recorder = Recorder(stream, on_next=lambda _: wait_for(release), scheduler=scheduler)
    recorder.wait_first()
    assert not eventually(lambda: log.stat().st_size > 10 * size, limit=0.2)
    release.set()
    assert len(recorder.wait().items) == 2 * 40
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
    pauses = iter([3 * reading.DRAIN, reading.DRAIN])
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
