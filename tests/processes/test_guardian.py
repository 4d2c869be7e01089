"""Children of a Python process die with it, however it dies."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from cuggino.processes import guardian, guardian_client, process_lines, process_tree
from cuggino.processes.guardian_client import GuardianClient
from tests.limits import LIMIT
from tests.processes.enclosures import NAMESPACE, ids_of, needs_namespaces, outside
from tests.processes.subscribers import Recorder, alive, eventually

PARENT = """
import json, signal, sys, threading
from cuggino.sandbox import Enclosure
from cuggino.processes import process_lines

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup

def say(line):
    print(line.decode(), flush=True)

child, sweep, enclosure = sys.argv[1:]
stream = process_lines(
    [sys.executable, "-I", "-S", "-c", child],
    sweep=sweep == "sweep",
    enclosure=Enclosure(**json.loads(enclosure)) if enclosure else None,
)
subscription = stream.subscribe(say, lambda error: say(repr(error).encode()))
sys.stdin.readline() or threading.Event().wait()
"""

CHILD = """
import os, signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.write(write, b"%d" % os.getpid())
    time.sleep(600)
print(os.getpid(), int(os.read(read, 20)), flush=True)
time.sleep(600)
"""
"""Stays until it is ended, has a child in its own session, prints both ids."""

STUBBORN = CHILD.replace("SIG_DFL", "SIG_IGN")
"""The same, and ignores SIGINT, so that it takes seconds to end."""

MANNERS = ("sweep", "no sweep", "namespace")


@pytest.fixture(params=MANNERS)
def parent(request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A Python process that listens to a child, and the ids of child and grandchild."""
    match request.param:
        case "namespace":
            needs_namespaces()
            fields = {**dataclasses.asdict(NAMESPACE), "env": dict(NAMESPACE.env)}
            with ids_of(NAMESPACE), _parent(CHILD, "sweep", json.dumps(fields)) as started:
                yield started
        case "no sweep":
            with _parent(STUBBORN, request.param, "") as started:
                yield started
        case sweep:
            with _parent(CHILD, sweep, "") as started:
                yield started


@contextmanager
def _parent(*given: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-X", "dev", "-c", PARENT, *given],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        try:
            assert [alive(pid) for pid in pids] == [True, True]
            yield process, pids
        finally:
            process.kill()
            for pid in pids:
                if (found := outside(pid)) is not None:
                    with suppress(ProcessLookupError):
                        os.kill(found, signal.SIGKILL)


def _guardians(process: subprocess.Popen[str]) -> list[int]:
    return [
        child.pid
        for child in psutil.Process(process.pid).children()
        if any(word.endswith("guardian.py") for word in child.cmdline())
    ]


def _runs(pid: int) -> bool:
    """`alive` for a process in no enclosure."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize(
    ("parent", "sign"),
    [
        *((manner, signal.SIGKILL) for manner in MANNERS),
        *(("sweep", sign) for sign in (signal.SIGTERM, signal.SIGHUP)),  # unhandled, as sudden
    ],
    indirect=["parent"],
)
def test_children_die_with_a_killed_parent(
    parent: tuple[subprocess.Popen[str], list[int]], sign: signal.Signals
) -> None:
    """After `kill -9` nothing of the tree, nor the guardian, is left within 10 seconds.

    A namespace is ended by the kernel; the guardian is for one that has not been set up yet.
    """
    process, pids = parent
    guardians = _guardians(process)
    assert 1 == len(guardians)
    process.send_signal(sign)
    assert -sign == process.wait(LIMIT)
    assert eventually(lambda: not any(alive(pid) for pid in pids))
    assert eventually(lambda: not any(_runs(guardian) for guardian in guardians))


def test_an_interpreter_that_exits_ends_its_children(
    parent: tuple[subprocess.Popen[str], list[int]],
) -> None:
    """A normal exit without disposal ends the tree first, in silence."""
    process, pids = parent
    guardians = _guardians(process)
    _, errors = process.communicate("\n", timeout=LIMIT)
    assert (process.returncode, errors) == (0, "")
    assert [alive(pid) for pid in pids] == [False, False]
    assert eventually(lambda: not any(_runs(guardian) for guardian in guardians))


def test_a_killed_guardian_is_replaced() -> None:
    """The next child brings a new guardian, which knows the groups of the old one."""
    code = f"""
import os, signal, sys, psutil
from cuggino.processes import process_lines
from tests.processes.subscribers import Recorder
child = [sys.executable, "-I", "-S", "-c", {CHILD!r}]
first = Recorder(process_lines(child, sweep=False))
print(first.wait_first().decode(), flush=True)
(guardian,) = (c for c in psutil.Process().children() if "guardian.py" in " ".join(c.cmdline()))
guardian.kill()
guardian.wait()
second = Recorder(process_lines(child))
print(second.wait_first().decode(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT,
        cwd=Path(__file__).parents[2],
    )
    pids = [int(word) for word in result.stdout.split()]
    assert len(pids) == 4
    assert eventually(lambda: not any(alive(pid) for pid in pids))


def test_a_forked_copy_does_not_keep_the_guardian_waiting() -> None:
    """A copy made by fork holds no pipe to the guardian: the original's end is noticed."""
    code = f"""
import os, signal, sys, time
from cuggino.processes import process_lines
from tests.processes.subscribers import Recorder
recorder = Recorder(process_lines([sys.executable, "-I", "-S", "-c", {CHILD!r}]))
recorder.wait_first()
copy = os.fork()
if copy == 0:
    os.close(1)
    time.sleep(600)
print(copy, recorder.items[0].decode(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT,
        cwd=Path(__file__).parents[2],
    )
    copy, *pids = (int(word) for word in result.stdout.split())
    try:
        assert eventually(lambda: not any(alive(pid) for pid in pids))
        assert alive(copy)
    finally:
        os.kill(copy, signal.SIGKILL)


def test_a_forked_copy_can_run_processes_of_its_own() -> None:
    """A copy made by fork starts children, and a guardian, as if it were new."""
    code = """
import os
from cuggino.processes import process_lines
assert process_lines(["echo", "1"]).run() == b"1"
copy = os.fork()
if copy == 0:
    import sys
    sys.exit(0 if process_lines(["echo", "2"]).run() == b"2" else 1)
print(os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]))
"""
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=LIMIT
    )
    assert (result.stdout, result.stderr) == ("0\n", "")


def test_a_child_that_uses_this_library_is_ended_with_its_children() -> None:
    """An inner process that ends its own children has the time to do so."""
    recorder = Recorder(process_lines([sys.executable, "-c", PARENT, CHILD, "sweep", ""]))
    pids = [int(word) for word in recorder.wait_first().split()]
    recorder.subscription.dispose()
    assert [alive(pid) for pid in pids] == [False, False]


def test_a_cookie_continues_the_one_of_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search for the prefix of an outer cookie finds the inner children too."""
    monkeypatch.setenv("CUGGINO_CHILD", "outer.1/")
    client = GuardianClient()
    assert client.cookie().startswith("outer.1/")
    client.close()


def test_a_guardian_goes_home_when_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """`close` returns with the guardian gone."""
    monkeypatch.setattr(guardian_client, "_LEAVING", LIMIT)
    client = GuardianClient()
    assert client.cookie() != client.cookie()
    guardian = client._process
    assert guardian is not None
    client.close()
    assert guardian.returncode == 0


@pytest.mark.parametrize(
    ("lines", "groups"),
    [
        ("", ""),
        ("+ 5\n+ 7\n- 5\n", "7\n"),
        ("+ 12\n+ 3\n+ 123\n- 3\n- 4\n- 1", "12\n123\n"),
        ("+ 5\nquit\n", None),
    ],
    ids=["none", "added and removed", "the last cut short", "quit"],
)
def test_the_remaining_groups(lines: str, groups: str | None) -> None:
    """The end of the input leaves the groups that were not removed; `quit` leaves nothing to do."""
    program = ["/usr/bin/printf", "%s\\n", "guardian.py"]
    done = subprocess.run(
        ["/bin/sh", "-c", guardian_client._WAIT, *program],
        input=lines,
        env={"groups": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    said = "" if groups is None else f"guardian.py\n{groups}"
    assert (0, said, "") == (done.returncode, done.stdout, done.stderr)


def test_what_is_terminated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only groups that remain are terminated, by their id or the cookie."""
    ended: list[Any] = []

    class Tree:
        def __init__(self, groups: set[int], cookie: str) -> None:
            self.what = (groups, cookie)

        def end(self, ladder: process_tree.Ladder) -> None:
            ended.append((*self.what, [sign for sign, _ in ladder]))

    ignored: list[int] = []
    monkeypatch.setattr(process_tree, "ProcessTree", Tree)
    monkeypatch.setattr(signal, "signal", lambda sign, _how: ignored.append(sign))
    monkeypatch.setattr(sys, "path", [*sys.path])
    guardian.main("1-a.", ["/packages"], {7})
    assert [({7}, "1-a.", [signal.SIGINT, signal.SIGTERM])] == ended
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} == set(ignored)


class _Guardian:
    """A guardian process that only records its input."""

    def __init__(self, *_: object, **__: object) -> None:
        self.returncode: int | None = None
        self.told: list[bytes] = []
        self.stdin = SimpleNamespace(write=self.told.append, close=lambda: self.told.append(b"."))

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float) -> None:
        self.returncode = 0


@pytest.fixture
def guardians(monkeypatch: pytest.MonkeyPatch) -> list[_Guardian]:
    """The guardians that are started."""
    started: list[_Guardian] = []

    def start(*_: object, **__: object) -> _Guardian:
        started.append(_Guardian())
        return started[-1]

    monkeypatch.setattr(
        guardian_client,
        "subprocess",
        SimpleNamespace(Popen=start, PIPE=-1, DEVNULL=-3, TimeoutExpired=subprocess.TimeoutExpired),
    )
    return started


def test_a_new_guardian_is_told_the_living_groups(guardians: list[_Guardian]) -> None:
    """Each cookie makes sure that there is a guardian; `quit` is for one without groups."""
    client = GuardianClient()
    client.cookie()
    client.add(5)
    client.add(7)
    client.remove(5)
    client.cookie()
    guardians[0].returncode = -9
    client.cookie()
    client.close()
    client.close()
    first, second = guardians
    assert [b"+ 5\n", b"+ 7\n", b"- 5\n", b"."] == first.told
    assert [b"+ 7\n", b"."] == second.told


def test_without_an_interpreter_there_is_no_guardian(
    guardians: list[_Guardian], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedded interpreter gets its cookies and guards nothing."""
    monkeypatch.setattr(sys, "executable", "")
    client = GuardianClient()
    assert client.cookie() != client.cookie()
    client.add(5)
    client.close()
    assert [] == guardians
