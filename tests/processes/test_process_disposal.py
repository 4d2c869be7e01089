"""Disposal of `process_lines`: the whole tree ends, wherever and whenever it is asked for."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest
from reactivex import from_iterable, operators as ops
from reactivex.scheduler import EventLoopScheduler

from cuggino.operators import merge_at_most, on_loop
from cuggino.processes import interrupt_processes, process_lines
from cuggino.processes.process_tree import COOKIE, ProcessTree, _environment, _psutil_environment
from tests.limits import LIMIT
from tests.processes.enclosures import outside, plain_only
from tests.processes.subscribers import (
    Recorder,
    alive,
    children,
    eventually,
    exists,
    python,
    wait_for,
)

pytestmark = pytest.mark.usefixtures("enclosed")

TREE = """
import os, subprocess, sys, time
pids = [os.getpid()]
for setsid in (False, True, True):
    read, write = os.pipe()
    middle = os.fork()
    if middle == 0:
        if setsid:
            os.setsid()
        if os.fork() == 0:
            os.write(write, b"%d\\n" % os.getpid())
            time.sleep(600)
        os._exit(0)
    os.waitpid(middle, 0)
    pids.append(int(os.read(read, 20)))
print(*pids, flush=True)
time.sleep(600)
"""
"""Prints the ids of itself and of three orphans, two of them in sessions of their own."""


def _pids(recorder: Recorder) -> list[int]:
    return [int(word) for word in recorder.wait_first().split()]


@pytest.mark.parametrize("sweep", [True, False])
def test_the_process_and_its_group_are_gone_after_disposal(sweep: bool) -> None:
    """When `dispose` returns, leader and group have ended and the leader is reaped."""
    stream = process_lines(["sh", "-c", "sleep 600 & echo $$ $!; wait"], sweep=sweep)
    recorder = Recorder(stream)
    leader, job = _pids(recorder)
    recorder.subscription.dispose()
    assert not exists(leader)
    assert not alive(job)
    assert (recorder.error, recorder.completed) == (None, False)


def test_orphans_in_sessions_of_their_own_are_gone_after_disposal() -> None:
    """Grandchildren that left the session and lost their parent are ended all the same."""
    recorder = Recorder(process_lines(python(TREE)))
    pids = _pids(recorder)
    assert [alive(pid) for pid in pids] == [True] * 4
    recorder.subscription.dispose()
    assert [alive(pid) for pid in pids] == [False] * 4


def test_without_a_cookie_descendants_are_gone_after_disposal() -> None:
    """`sweep=False` still ends the children that called setsid and kept their parent."""
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    print(os.getppid(), os.getpid(), flush=True)
time.sleep(600)
"""
    recorder = Recorder(process_lines(python(code), sweep=False))
    pids = _pids(recorder)
    recorder.subscription.dispose()
    assert [alive(pid) for pid in pids] == [False, False]


def test_disposal_asks_with_sigint_first(tmp_path: Path) -> None:
    """A process that ends on SIGINT can put its house in order and sees no other signal."""
    code = """
import signal, sys, time
def leave(number, frame):
    open(sys.argv[1], "a").write(signal.Signals(number).name + " ")
    if number == signal.SIGINT:
        time.sleep(0.3)
        open(sys.argv[1], "a").write("done")
        sys.exit(0)
signal.signal(signal.SIGINT, leave)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
time.sleep(600)
"""
    log = tmp_path / "log"
    recorder = Recorder(process_lines([*python(code), log]))
    recorder.wait_first()
    recorder.subscription.dispose()
    assert log.read_text() == "SIGINT done"


LINGERS = """
import pathlib, signal, sys, time
folder, name, others = pathlib.Path.cwd(), sys.argv[1], sys.argv[2]
def leave(number, frame):
    (folder / f"{name}.asked").touch()
    while len(list(folder.glob("*.asked"))) < int(others):
        time.sleep(0.01)
    (folder / f"{name}.left").touch()
    sys.exit(0)
signal.signal(signal.SIGINT, leave)
print(name, flush=True)
time.sleep(600)
"""
"""Leaves on SIGINT, as soon as all others have been asked to."""


def test_processes_that_linger_end_at_the_same_time(tmp_path: Path) -> None:
    """All are asked before any is waited for; one by one, the first would wait for the last."""
    folder = tmp_path / "slots"
    folder.mkdir()
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    bystander = Recorder(process_lines(python(code), cwd=tmp_path))
    (elsewhere,) = _pids(bystander)
    names = ["1", "2", "3", "4"]
    lingering = [
        process_lines([*python(LINGERS), name, "4"], cwd=folder, grace=LIMIT) for name in names
    ]
    merged = from_iterable(lingering).pipe(
        merge_at_most(4, on_release=lambda: interrupt_processes(folder))
    )
    recorder = Recorder(on_loop(merged))
    assert eventually(lambda: len(recorder.items) == 4)
    recorder.subscription.dispose()
    assert sorted(f"{name}.left" for name in names) == sorted(
        path.name for path in folder.glob("*.left")
    )
    assert alive(elsewhere), "it works in another folder"
    bystander.subscription.dispose()
    assert set() == children()


def test_a_process_that_ignores_sigint_and_sigterm_is_killed() -> None:
    """After `grace` for SIGINT and `grace` for SIGTERM comes SIGKILL."""
    recorder = Recorder(
        process_lines(["sh", "-c", "trap '' INT TERM; echo $$; sleep 600; sleep 600"], grace=0.2)
    )
    (pid,) = _pids(recorder)
    started = time.monotonic()
    recorder.subscription.dispose()
    assert 0.4 <= time.monotonic() - started
    assert not exists(pid)
    assert set() == children()


def test_the_pipes_are_read_while_the_process_is_being_ended(tmp_path: Path) -> None:
    """A SIGINT handler that prints more than a pipe holds is not blocked by it."""
    code = """
import os, signal, sys, time
def leave(number, frame):
    os.write(1, b"x" * 1_000_000)
    os.write(2, b"x" * 1_000_000)
    open(sys.argv[1], "w").write("done")
    os._exit(0)
signal.signal(signal.SIGINT, leave)
print("ready", flush=True)
time.sleep(600)
"""
    log = tmp_path / "log"
    recorder = Recorder(process_lines([*python(code), log]))
    recorder.wait_first()
    recorder.subscription.dispose()
    assert log.read_text() == "done"


def test_disposal_from_within_on_next() -> None:
    """`take(1)` disposes on the scheduler's thread, in the middle of a chunk."""
    stream = process_lines(["sh", "-c", "echo $$; echo more; exec sleep 600"])
    recorder = Recorder(stream.pipe(ops.take(1))).wait()
    assert recorder.completed
    assert eventually(lambda: not exists(int(recorder.items[0])))
    assert len(recorder.items) == 1


def test_disposal_within_on_next_returns_with_the_tree_gone() -> None:
    """Also on the scheduler's own thread `dispose` returns only when all has ended."""
    seen: list[bool] = []
    subscribed = threading.Event()

    def leave(line: bytes) -> None:
        subscribed.wait()
        recorder.subscription.dispose()
        seen.append(exists(int(line)))

    recorder = Recorder(
        process_lines(["sh", "-c", "echo $$; echo x; exec sleep 600"]), on_next=leave
    )
    subscribed.set()
    assert eventually(lambda: bool(seen))
    assert seen == [False]
    assert len(recorder.items) == 1


def test_disposal_while_the_subscriber_is_busy_elsewhere() -> None:
    """Another thread's `dispose` does not wait for the subscriber, and no line follows it."""
    release = threading.Event()
    stream = process_lines(["sh", "-c", "echo $$; echo x; exec sleep 600"])
    recorder = Recorder(stream, on_next=lambda _: wait_for(release))
    (pid,) = _pids(recorder)
    recorder.subscription.dispose()
    assert not exists(pid)
    release.set()
    assert not eventually(lambda: len(recorder.items) > 1, limit=0.2)


def test_disposal_from_many_threads_at_once() -> None:
    """Of several concurrent calls the first one waits, as RxPY has it, and none does harm."""
    recorder = Recorder(process_lines(["sh", "-c", "echo $$; exec sleep 600"]))
    (pid,) = _pids(recorder)
    threads = [threading.Thread(target=recorder.subscription.dispose) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.subscription.dispose()
    assert not exists(pid)


def test_disposal_while_starting() -> None:
    """Disposal right after the subscription finds nothing or ends what has begun."""
    before = children()
    for _ in range(20):
        Recorder(process_lines(["sleep", "600"])).subscription.dispose()
    assert before == children()


def test_disposal_while_the_output_floods() -> None:
    """A process that prints without end is ended in the midst of it."""
    recorder = Recorder(process_lines(["yes"]))
    recorder.wait_first()
    recorder.subscription.dispose()
    assert set() == children()


def test_disposal_after_the_end_does_nothing() -> None:
    """A stream that has completed can be disposed."""
    recorder = Recorder(process_lines(["true"])).wait()
    recorder.subscription.dispose()
    assert (recorder.completed, recorder.error) == (True, None)


def test_a_closed_scheduler_ends_the_process() -> None:
    """If the scheduler is closed, the process is terminated."""
    lane = EventLoopScheduler()
    recorder = Recorder(process_lines(["sh", "-c", "echo $$; sleep 0.3; yes"]), scheduler=lane)
    (pid,) = _pids(recorder)
    lane.dispose()
    assert eventually(lambda: not exists(pid))


def test_cancelling_an_asyncio_task_ends_the_process() -> None:
    """A cancelled `await` disposes."""

    async def main() -> int:
        pids: list[int] = []

        def note(line: bytes) -> None:
            pids.append(int(line))

        stream = process_lines(["sh", "-c", "echo $$; exec sleep 600"]).pipe(ops.do_action(note))

        async def last() -> bytes:
            return await stream

        task = asyncio.create_task(last())
        while not pids:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pids[0]

    pid = asyncio.run(main())
    assert eventually(lambda: not exists(pid))


@plain_only
def test_strangers_with_a_similar_cookie_stay() -> None:
    """The cookie of one child is not taken for the beginning of another's."""
    first = Recorder(process_lines(["sh", "-c", "echo $CUGGINO_CHILD; exec sleep 600"]))
    cookie = first.wait_first().decode()
    others = [
        Recorder(process_lines(["sh", "-c", "echo $$ $CUGGINO_CHILD; exec sleep 600"]))
        for _ in range(10)
    ]
    pids = [int(other.wait_first().split()[0]) for other in others]
    first.subscription.dispose()
    try:
        assert cookie.endswith("/")
        assert [alive(pid) for pid in pids] == [True] * 10
    finally:
        for other in others:
            other.subscription.dispose()
    assert [alive(pid) for pid in pids] == [False] * 10


def test_a_stopped_process_is_ended_too() -> None:
    """A process stopped by SIGSTOP ends with the ladder."""
    recorder = Recorder(process_lines(["sh", "-c", "echo $$; exec sleep 600"], grace=0.2))
    (pid,) = _pids(recorder)
    process = outside(pid)
    assert process is not None
    os.kill(process, signal.SIGSTOP)
    recorder.subscription.dispose()
    assert not exists(pid)


@plain_only
def test_a_process_of_another_user_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may not be signalled is not waited for."""
    cookie = f"{os.getpid()}-untouchable."

    def denied(_process: psutil.Process, _sign: int) -> None:
        raise psutil.AccessDenied

    command = python("print(flush=True); input()")
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, COOKIE: cookie},
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        tree = ProcessTree([], cookie)
        assert [process.pid] == [member.pid for member in tree.members()]
        pauses: list[float] = []
        with monkeypatch.context() as patched:
            patched.setattr(psutil.Process, "send_signal", denied)
            tree.end([(signal.SIGTERM, 0)], pauses.append)
        assert ([], set()) == (pauses, tree.members())
        assert process.poll() is None
        for environment in (_psutil_environment, _environment):
            assert f"\0{COOKIE}={cookie}".encode() in environment(process.pid)
        process.communicate(b"\n")
    assert b"" == _psutil_environment(process.pid)
