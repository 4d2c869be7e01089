"""Processes that are inspected when the tree of a child is searched."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cuggino.processes import process_tree
from cuggino.processes.process_tree import COOKIE, Birth, ProcessTree, _candidates, fork_count

linux = pytest.mark.skipif(sys.platform != "linux", reason="ids and forks are read from /proc")

MARK = f"process-tree-test-{os.getpid()}."  # another worker may run these tests as well


@pytest.fixture
def marked() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside the groups, found by its cookie alone."""
    with subprocess.Popen(
        ["cat"],
        env={**os.environ, COOKIE: f"{MARK}1/"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            process.stdout.readline()  # while a program is being loaded its environment is empty
            yield process
        finally:
            process.kill()


def found(birth: Birth | None) -> set[int]:
    return {process.pid for process in ProcessTree([], MARK, birth=birth).members()}


@linux
def test_only_younger_processes(marked: subprocess.Popen[bytes]) -> None:
    """The environment of a process that is older than the tree is not read."""
    before = fork_count() - 1
    assert {marked.pid} == found(Birth(marked.pid, before))
    younger = marked.pid
    while younger <= marked.pid:  # unless ids start over just now
        before = fork_count()
        with subprocess.Popen(["true"]) as process:
            younger = process.pid
    assert set() == found(Birth(younger, before))


@linux
def test_all_are_listed_only_after_many(
    marked: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a search depends on how many have started since, not on how many there are."""
    monkeypatch.setattr(psutil, "pids", lambda: [1, marked.pid])
    birth = Birth(marked.pid, fork_count() - 1)
    few = list(_candidates(birth))
    assert marked.pid == few[0]
    assert len(few) <= process_tree._FEW
    monkeypatch.setattr(process_tree, "_FEW", 0)
    assert [marked.pid] == list(_candidates(birth))
    assert [1, marked.pid] == list(_candidates(None))


@linux
def test_a_program_that_is_being_loaded() -> None:
    """A process is found at once, though its environment is empty while its program is loaded."""
    for _ in range(40):
        before = fork_count()
        with subprocess.Popen(
            ["sleep", "60"], env={COOKIE: f"{MARK}1/"}, start_new_session=True
        ) as process:
            try:
                assert {process.pid} == found(Birth(process.pid, before))
            finally:
                process.kill()


@linux
def test_a_program_that_has_just_been_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment counts, although it was still empty a moment ago."""
    reads = iter([b"\0", b"\0A=1\0"])
    monkeypatch.setattr(process_tree, "_read_environment", lambda _pid: next(reads))
    monkeypatch.setattr(process_tree, "_is_being_loaded", lambda _pid: False)
    assert b"\0A=1" == process_tree._proc_environment(1).rstrip(b"\0")


@linux
def test_a_program_without_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for: only a program that is being loaded gets one."""
    with subprocess.Popen(["/bin/cat"], env={}, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        while process_tree._is_being_loaded(process.pid):
            pass
        monkeypatch.delattr(time, "sleep")
        assert process_tree._environment(process.pid) == b""
        process.stdin.close()


@linux
@pytest.mark.parametrize("few", [1000, 0], ids=["by id", "listed"])
def test_descendants_without_the_cookie(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """A grandchild in another session belongs to the tree, also without a cookie."""
    monkeypatch.setattr(process_tree, "_FEW", few)
    forks = fork_count()
    script = "setsid sh -c 'setsid sleep 60 & echo $!; wait' & wait"
    with subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        tree = ProcessTree([process.pid], f"{MARK}2/", birth=Birth(process.pid, forks))
        assert {process.pid, grandchild} < {member.pid for member in tree.members()}
        tree.end(())
        assert not tree.members()


@linux
def test_a_process_is_found_once() -> None:
    """Its threads have ids too; when it has ended it is not found any more."""
    program = "import threading as t; t.Thread(target=input).start(); print(flush=True); input()"
    before = fork_count()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, COOKIE: f"{MARK}1/"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        birth = Birth(process.pid, before)
        assert process.stdout is not None
        process.stdout.readline()
        assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 2
        assert {process.pid} == found(birth)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert set() == found(birth)


@linux
@pytest.mark.parametrize("forks", [10_000_000, -1, 0])
def test_ids_that_started_over(
    marked: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, forks: int
) -> None:
    """Every process is inspected if ids may have started over, or if that is unknown."""
    monkeypatch.setattr(process_tree, "fork_count", lambda: forks)
    assert {marked.pid} == found(Birth(marked.pid + 1, 0))


@linux
def test_the_latest_id_is_lower(marked: subprocess.Popen[bytes]) -> None:
    """An id above the latest one was handed out before ids started over."""
    highest = int(Path("/proc/sys/kernel/pid_max").read_text())
    assert {marked.pid} == found(Birth(highest - 1, fork_count() - 1))
