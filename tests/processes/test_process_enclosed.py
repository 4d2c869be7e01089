"""Programs in an enclosure: how they start, how they end, and who ends them."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest
from reactivex import Observable

from cuggino.errors import ProcessFailed, SpawnFailed
from cuggino.processes import GUARDIAN, OpenInput, process_batches, process_lines, process_output
from cuggino.processes.namespace import StatusPipe
from cuggino.processes.process_tree import ProcessTree
from cuggino.sandbox import Enclosure
from cuggino.testing import no_leaks
from tests.processes.enclosures import LAUNCHER, MARK, NAMESPACE, hiding, marked, needs_namespaces
from tests.processes.subscribers import Recorder, alive, children, descriptors, eventually, python


@pytest.fixture(params=[NAMESPACE, LAUNCHER], ids=["namespace", "launcher"])
def enclosure(request: pytest.FixtureRequest) -> Enclosure:
    """An enclosure of each kind."""
    found: Enclosure = request.param
    if found.namespace:
        needs_namespaces()
    return found


@pytest.fixture
def namespace() -> Enclosure:
    needs_namespaces()
    return NAMESPACE


def test_every_way_to_run_a_program_takes_an_enclosure(
    enclosure: Enclosure, tmp_path: Path
) -> None:
    """Lines, output, batches and conversations run in the enclosure, with its variables."""
    argv = ["/bin/sh", "-c", f"echo ${MARK}"]
    places: dict[str, Any] = {"cwd": tmp_path, "env": {"PATH": os.environ["PATH"]}}
    stdin = OpenInput()
    streams: list[Observable[Any]] = [
        process_lines(argv, enclosure=enclosure, **places),
        process_output(argv, enclosure=enclosure, **places),
        process_batches(argv, stdin=b"", enclosure=enclosure, **places),
        process_lines(argv, stdin=stdin, enclosure=enclosure, **places),
    ]
    mark = enclosure.env[MARK].encode()
    said = [Recorder(stream).wait().items for stream in streams]
    stdin.close()
    assert [[mark], [mark + b"\n"], [[mark]], [mark]] == said


@pytest.mark.parametrize(("name", "code"), [("missing", errno.ENOENT), ("text", errno.EACCES)])
def test_a_program_that_cannot_be_started(
    enclosure: Enclosure, tmp_path: Path, name: str, code: int
) -> None:
    """The error is that of a program in no enclosure: found on the environment's own path."""
    (tmp_path / "text").write_text("no program")
    before = descriptors()
    for argv, path in (([f"./{name}"], "/nowhere"), ([name], str(tmp_path))):
        env = {"PATH": path}
        plain = Recorder(process_lines(argv, cwd=tmp_path, env=env)).wait().error
        recorder = Recorder(process_lines(argv, cwd=tmp_path, env=env, enclosure=enclosure)).wait()
        assert isinstance(recorder.error, SpawnFailed)
        assert str(plain) == str(recorder.error)
        assert code == recorder.error.errno
    assert eventually(lambda: descriptors() <= before)


@pytest.mark.usefixtures("namespace")
@pytest.mark.parametrize("merge_stderr", [True, False])
def test_a_program_that_the_enclosure_hides(tmp_path: Path, merge_stderr: bool) -> None:
    """A program that is missing inside fails to start; it has no exit code."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    hidden = hiding("--tmpfs", tmp_path)
    stream = process_lines([program], merge_stderr=merge_stderr, enclosure=hidden)
    assert isinstance(Recorder(stream).wait().error, SpawnFailed)
    shown = Recorder(process_lines([program], enclosure=NAMESPACE)).wait()
    assert isinstance(shown.error, ProcessFailed)


@pytest.mark.usefixtures("namespace")
def test_a_folder_that_the_enclosure_hides(tmp_path: Path) -> None:
    """A program never runs in another folder than the one it is given."""
    folder = tmp_path / "folder"
    folder.mkdir()
    stream = process_lines(["pwd"], cwd=folder, enclosure=hiding("--tmpfs", tmp_path))
    recorder = Recorder(stream).wait()
    assert [] == recorder.items
    assert isinstance(recorder.error, SpawnFailed)
    assert str(folder) in str(recorder.error)


@pytest.mark.usefixtures("namespace")
def test_an_enclosure_that_cannot_be_made(tmp_path: Path) -> None:
    """The reason is in the error, and nothing is left."""
    with no_leaks():
        missing = tmp_path / "missing"
        stream = process_lines(["true"], enclosure=hiding("--bind", missing, missing))
        error = Recorder(stream).wait().error
    assert isinstance(error, SpawnFailed)
    assert str(missing) in str(error)
    assert set() == children()


def test_an_exit_code_is_the_programs(enclosure: Enclosure) -> None:
    """Codes and signals are those of the program, not of its wrapper."""
    for end, code in (("exit 7", 7), ("exit 1", 1), ("kill -9 $$", -9), ("kill -15 $$", -15)):
        error = Recorder(process_lines(["sh", "-c", end], enclosure=enclosure)).wait().error
        assert isinstance(error, ProcessFailed)
        assert code == error.child_exit_code


MANY = """
import os, time
for _ in range(200):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
print(os.getpid(), flush=True)
time.sleep(600 if {stays} else 0)
"""


@pytest.mark.parametrize("stays", [True, False])
def test_a_namespace_ends_as_a_whole(namespace: Enclosure, stays: bool) -> None:
    """Of 200 processes in separate sessions none is left, and no search was needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProcessTree, "members", _not_needed)
        patch.setattr(GUARDIAN, "add", _not_needed)
        code = MANY.format(stays=stays)
        recorder = Recorder(process_lines(python(code), enclosure=namespace))
        recorder.wait_first()
        if stays:
            recorder.subscription.dispose()
        else:
            assert recorder.wait().completed
    assert not marked()


def _not_needed(*_: object) -> NoReturn:
    raise AssertionError("searched for processes, or told a guardian")


def test_a_daemon_ends_with_a_namespace(namespace: Enclosure) -> None:
    """Nothing outlives the program, even with `sweep=False`."""
    script = "setsid sleep 600 >/dev/null 2>&1 & echo started"
    recorder = Recorder(process_lines(["sh", "-c", script], sweep=False, enclosure=namespace))
    assert recorder.wait().completed
    assert not marked()


def test_a_launcher_is_searched_for_like_any_program() -> None:
    """Without a namespace, orphans in sessions of their own are found by their cookie."""
    code = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
time.sleep(600)
"""
    recorder = Recorder(process_lines(python(code), enclosure=LAUNCHER))
    orphan = int(recorder.wait_first())
    assert alive(orphan)
    recorder.subscription.dispose()
    assert not alive(orphan)


def test_a_namespace_without_pidfds_is_searched(
    namespace: Enclosure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel without pidfds cannot tell a namespace's init from its id: the search does it."""
    monkeypatch.delattr(os, "pidfd_open")
    script = "setsid sleep 600 & env; exec sleep 600"
    recorder = Recorder(process_lines(["sh", "-c", script], enclosure=namespace))
    assert eventually(lambda: any(b"CUGGINO_CHILD=" in line for line in recorder.items))
    recorder.subscription.dispose()
    assert not marked()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_a_program_that_left_its_group(
    namespace: Enclosure, tmp_path: Path, sign: signal.Signals
) -> None:
    """SIGINT comes first, then SIGTERM, to the program's own process wherever it went."""
    code = f"""
import os, signal, sys, time
def leave(number, frame):
    open(sys.argv[1], "w").write("asked")
    sys.exit(0)
os.setsid()
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal({int(sign)}, leave)
print("ready", flush=True)
time.sleep(600)
"""
    log = tmp_path / "log"
    recorder = Recorder(process_lines([*python(code), log], grace=0.5, enclosure=namespace))
    recorder.wait_first()
    recorder.subscription.dispose()
    assert log.read_text() == "asked"


def test_a_program_that_signals_its_group_spares_its_monitor(namespace: Enclosure) -> None:
    """The monitor is in another group, so that the program's exit code is still reported."""
    script = "trap '' INT; kill -INT 0; echo here; exit 4"
    recorder = Recorder(process_lines(["sh", "-c", script], enclosure=namespace)).wait()
    assert [b"here"] == recorder.items
    assert isinstance(recorder.error, ProcessFailed)
    assert recorder.error.child_exit_code == 4


def test_a_program_outlives_the_thread_that_subscribed(namespace: Enclosure) -> None:
    """The kernel ends a namespace with the thread that started it: the reader's own."""
    recorders: list[Recorder] = []
    stream = process_lines(["sh", "-c", "echo up; sleep 0.3; echo still"], enclosure=namespace)
    thread = threading.Thread(target=lambda: recorders.append(Recorder(stream)))
    thread.start()
    thread.join()
    assert [b"up", b"still"] == recorders[0].wait().items


def test_a_server_inside_is_reachable(namespace: Enclosure) -> None:
    """The network is shared: a port that is opened inside can be connected to."""
    code = """
import socket
import subprocess
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
server.accept()[0].sendall(b"hello")
"""
    argv = [*python(code)]
    recorder = Recorder(process_lines(argv, enclosure=namespace))
    with socket.create_connection(("127.0.0.1", int(recorder.wait_first()))) as connection:
        assert b"hello" == connection.recv(16)
    assert recorder.wait().completed


def test_a_stopped_monitor_is_ended(namespace: Enclosure) -> None:
    """A monitor that does not run cannot hold up the end."""
    recorder = Recorder(process_lines(["sh", "-c", "echo; sleep 600"], enclosure=namespace))
    recorder.wait_first()
    (monitor,) = children()
    os.kill(monitor, signal.SIGSTOP)
    recorder.subscription.dispose()
    assert set() == children()
    assert not marked()


def test_a_monitor_that_is_killed_ends_its_namespace(namespace: Enclosure) -> None:
    """The error has the signal that killed the monitor, as no program ended first."""
    recorder = Recorder(process_lines(["sh", "-c", "echo; sleep 600"], enclosure=namespace))
    recorder.wait_first()
    (monitor,) = children()
    os.kill(monitor, signal.SIGKILL)
    error = recorder.wait().error
    assert isinstance(error, ProcessFailed)
    assert error.child_exit_code == -9
    assert not marked()


@pytest.mark.parametrize("opened", [0, 1])
def test_a_namespace_that_cannot_be_watched_is_ended(
    namespace: Enclosure, monkeypatch: pytest.MonkeyPatch, opened: int
) -> None:
    """Without descriptors for the monitor or the init the error is the stream's."""
    opens = os.pidfd_open
    pids: set[int] = set()

    def fail(pid: int) -> int:
        if pid != os.getpid():
            pids.add(pid)
            if len(pids) > opened:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return opens(pid)

    monkeypatch.setattr(os, "pidfd_open", fail)
    for _ in range(10):  # at whatever moment of its start
        pids.clear()
        recorder = Recorder(process_lines(["sleep", "600"], enclosure=namespace)).wait()
        assert isinstance(recorder.error, OSError)
    assert set() == children()
    assert not marked()


def test_a_fork_does_not_hide_a_failed_start() -> None:
    """A copy of this process that holds the pipe of the reports open is not waited for."""
    status = StatusPipe()
    copy = os.dup(status.write_end)
    with subprocess.Popen(["true"]) as monitor:
        assert status.init(monitor.pid) is None
        assert status.exit_code() is None
    status.close()
    os.close(copy)
