"""Programs in an enclosure and in a terminal: how they start, and how they end."""

from __future__ import annotations

import errno
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest
from reactivex import Observable

from cuggino.errors import ProcessFailed, SpawnFailed
from cuggino.processes import (
    GUARDIAN,
    OpenInput,
    process_batches,
    process_lines,
    process_output,
    run_in_terminal,
)
from cuggino.processes.namespace import StatusPipe
from cuggino.processes.process_tree import ProcessTree
from cuggino.sandbox import Enclosure
from cuggino.testing import no_leaks
from tests.limits import LIMIT
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
    recorder = Recorder(process_lines(["sh", "-c", "echo; exec sleep 600"], enclosure=namespace))
    recorder.wait_first()
    (monitor,) = children()
    os.kill(monitor, signal.SIGSTOP)
    recorder.subscription.dispose()
    assert set() == children()
    assert not marked()


def test_a_monitor_that_is_killed_ends_its_namespace(namespace: Enclosure) -> None:
    """The error has the signal that killed the monitor, as no program ended first."""
    recorder = Recorder(process_lines(["sh", "-c", "echo; exec sleep 600"], enclosure=namespace))
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


SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpid())
    if not os.WIFSTOPPED(status):
        break
    print("stopped", flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, job)
    os.killpg(job, signal.SIGCONT)
print("ended", os.waitstatus_to_exitcode(status), flush=True)
"""
"""A shell with one job in the foreground, which any line continues when it has stopped."""

JOB = """
import json, os, signal, sys
from pathlib import Path
from cuggino.sandbox import Enclosure
from cuggino.processes import run_in_terminal

def leave(*_):
    sys.exit(9)

signal.signal(signal.SIGTERM, leave)
program, enclosure = sys.argv[1:]
print("code", run_in_terminal(
    [sys.executable, "-I", "-S", "-c", program],
    cwd=Path.cwd(),
    env=os.environ,
    enclosure=Enclosure(**json.loads(enclosure)) if enclosure else None,
), flush=True)
"""

PROGRAM = """
import os, select, signal, subprocess, sys
def note(number, frame):
    os.write(1, b"got SIGINT\\n")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
signal.signal(signal.SIGINT, note)
def leave(number, frame):
    os.write(1, b"asked to leave\\n")
    sys.exit(3)
signal.signal(signal.SIGTERM, leave)
if os.getppid() == 1:  # in a namespace, which ends it
    subprocess.Popen(["sleep", "600"], start_new_session=True)
interrupts, wakeup = os.pipe()  # so that a signal just before it waits wakes it, too
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
print("ready", sys.stdin.isatty(), flush=True)
while True:
    if interrupts in select.select([0, interrupts], [], [])[0]:
        os.read(interrupts, 1)
    elif line := os.read(0, 4096).strip():
        print("heard", line.decode(), flush=True)
    else:
        break
sys.exit(5)
"""


class _Terminal:
    """The other side of a terminal."""

    def __init__(self, master: int, shell: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.shell = shell
        self.text = ""

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> None:
        """Wait until the screen shows the text, after what was waited for before."""
        deadline = time.monotonic() + LIMIT
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self._master], [], [], 0.1)[0]:
                self.text += os.read(self._master, 4096).decode()
        self.text = self.text.partition(text)[2]

    def job(self) -> int:
        """Return the id of the job."""
        (pid,) = Path(f"/proc/{self.shell.pid}/task/{self.shell.pid}/children").read_text().split()
        return int(pid)

    def program(self) -> psutil.Process:
        """Return the program itself, behind its monitor."""
        (found,) = (
            process
            for process in psutil.Process(self.job()).children(recursive=True)
            if process.name() != "bwrap" and process.cmdline()[-1:] == [PROGRAM]
        )
        return found


@contextmanager
def _session(terminal_enclosure: Enclosure | None) -> Iterator[_Terminal]:
    fields = (
        "" if terminal_enclosure is None else json.dumps(asdict(terminal_enclosure), default=dict)
    )
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SHELL, "-c", JOB, PROGRAM, fields],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    ) as shell:
        os.close(slave)
        try:
            yield _Terminal(master, shell)
        finally:
            shell.kill()
            os.close(master)


@pytest.fixture(params=[None, LAUNCHER, NAMESPACE], ids=["plain", "launcher", "namespace"])
def terminal_enclosure(request: pytest.FixtureRequest) -> Enclosure | None:
    """No enclosure, and one of each kind."""
    found: Enclosure | None = request.param
    if found is not None and found.namespace:
        needs_namespaces()
    return found


def test_an_interrupt_is_the_programs(terminal_enclosure: Enclosure | None) -> None:
    """Ctrl-C reaches the program and ends neither it nor its monitor."""
    with _session(terminal_enclosure) as terminal:
        terminal.wait_for("ready True")
        terminal.type("\x03")
        terminal.wait_for("got SIGINT")
        terminal.type("hello\n")
        terminal.wait_for("heard hello")
        terminal.type("\n")
        terminal.wait_for("code 5")
        terminal.wait_for("ended 0")


def test_the_shell_stops_and_continues_it(terminal_enclosure: Enclosure | None) -> None:
    """Ctrl-Z gives the terminal back to the shell, which lets program and cuggino go on."""
    with _session(terminal_enclosure) as terminal:
        terminal.wait_for("ready True")
        terminal.type("\x1a")
        terminal.wait_for("stopped")
        assert eventually(lambda: terminal.program().status() == psutil.STATUS_STOPPED)
        terminal.type("fg\n")
        terminal.type("again\n")
        terminal.wait_for("heard again")
        terminal.type("\n")
        terminal.wait_for("code 5")


def test_a_terminated_session_asks_its_program_to_leave(
    terminal_enclosure: Enclosure | None,
) -> None:
    """SIGTERM for cuggino reaches the program; in a namespace nothing else is left then."""
    with _session(terminal_enclosure) as terminal:
        terminal.wait_for("ready True")
        os.kill(terminal.job(), signal.SIGTERM)
        terminal.wait_for("asked to leave")
        terminal.wait_for("ended 9")
        if terminal_enclosure is not None and terminal_enclosure.namespace:
            assert not marked()


def test_a_killed_session_leaves_nothing() -> None:
    """The kernel ends a namespace when cuggino is killed."""
    needs_namespaces()
    with _session(NAMESPACE) as terminal:
        terminal.wait_for("ready True")
        assert marked()
        os.kill(terminal.job(), signal.SIGKILL)
        terminal.wait_for("ended -9")
        assert eventually(lambda: not marked())


@pytest.mark.parametrize("code", ["sys.exit(4)", "os.kill(os.getpid(), 9)"])
def test_the_exit_code(terminal_enclosure: Enclosure | None, tmp_path: Path, code: str) -> None:
    """The exit code is the program's, negative for a signal; nothing is left open."""
    argv = python(f"import os, sys\nassert os.getcwd() == {str(tmp_path)!r}\n{code}")
    with no_leaks():
        ended = run_in_terminal(argv, cwd=tmp_path, env=os.environ, enclosure=terminal_enclosure)
    assert ended == (4 if "exit" in code else -9)


def test_a_program_that_is_missing(terminal_enclosure: Enclosure | None, tmp_path: Path) -> None:
    """A missing program is an error, not an exit code."""
    with no_leaks(), pytest.raises(FileNotFoundError):
        run_in_terminal(["./missing"], cwd=tmp_path, env=os.environ, enclosure=terminal_enclosure)


def test_an_enclosure_of_a_terminal_that_cannot_be_made(tmp_path: Path) -> None:
    """An enclosure that fails is an error, and nothing is left."""
    needs_namespaces()
    failing = hiding("--bind", tmp_path / "missing", "/mnt")
    with no_leaks(), pytest.raises(SpawnFailed, match="sandbox could not be set up"):
        run_in_terminal(["true"], cwd=tmp_path, env=os.environ, enclosure=failing)
    assert set() == children()
