"""The tree of a child, what it leaves behind, short questions, and uninterrupted commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex import Observable

from cuggino import run
from cuggino.errors import NoAnswer, ProcessFailed, SpawnFailed
from cuggino.processes import Said, orphans, process_output, process_tree, run_bounded
from cuggino.processes.orphans import guardians_of, orphans_gone
from cuggino.processes.process_tree import COOKIE, Birth, ProcessTree, _candidates, fork_count
from cuggino.testing import Marbles, VirtualClock, no_leaks
from tests.limits import LIMIT
from tests.processes.subscribers import alive, eventually

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
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
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


class Guardians:
    """The guardians of each process, as the test has them."""

    def __init__(self) -> None:
        self.left: dict[int, int] = {}
        """How often they are still seen."""

    def __call__(self, pid: int) -> Iterator[str]:
        if self.left.get(pid, 0):
            self.left[pid] -= 1
            yield "at work"


@pytest.fixture
def guardians(monkeypatch: pytest.MonkeyPatch) -> Guardians:
    """Guardians that are seen in place of those of the machine."""
    made = Guardians()
    monkeypatch.setattr(orphans, "guardians_of", made)
    return made


@pytest.mark.parametrize(
    ("seen", "when"),
    [(0, 0.0), (1, 0.1), (3, 0.3), (300, 30.0)],
    ids=["none", "one", "some", "all"],
)
def test_it_is_told_as_soon_as_they_are_gone(guardians: Guardians, seen: int, when: float) -> None:
    """It looks every tenth of a second, and for half a minute."""
    guardians.left[7] = seen
    told = Marbles().record(orphans_gone(7), until=60)
    assert [(when, "next", True), (when, "completed", None)] == told


def test_it_gives_up(guardians: Guardians) -> None:
    """A guardian still running at the limit is reported."""
    guardians.left[7] = 1000
    told = Marbles().record(orphans_gone(7, limit=2.0), until=60)
    assert [(2.0, "next", False), (2.0, "completed", None)] == told


def test_a_process_is_no_orphan_of_itself(guardians: Guardians) -> None:
    """A run that begins in the same process waits for nothing."""
    guardians.left[os.getpid()] = 1000
    told = Marbles().record(orphans_gone(os.getpid()), until=60)
    assert [(0.0, "next", True), (0.0, "completed", None)] == told


def test_guardians_are_known_by_their_words(tmp_path: Path) -> None:
    """Of all programs it is those that run the guardian with the id of that process."""
    program = tmp_path / "guardian.py"
    program.write_text("print(flush=True); input()")
    words = [sys.executable, str(program), "/anywhere/4194305-abc", "/anywhere/4194306-4194307-x"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [process.pid] == [found.pid for found in guardians_of(4194305)]
        assert [] == [*guardians_of(4194306)]
        assert [] == [*guardians_of(419430)]
        process.communicate(b"\n")
    assert [] == [*guardians_of(4194305)]


def uninterrupted(script: str, folder: Path, **options: Any) -> Observable[bytes]:
    words = ["sh", "-c", script]
    return process_output(words, cwd=folder, env=os.environ, uninterrupted=True, **options)


def test_output_and_exit_code(tmp_path: Path) -> None:
    """Both streams are one text, in order, which is emitted before the error."""
    script = "echo one; echo two >&2; pwd; exit 3"
    printed: list[bytes] = []
    stream = uninterrupted(script, tmp_path, merge_stderr=True)
    with pytest.raises(ProcessFailed, match="exited with code 3"):
        run(stream, printed.append)
    assert [f"one\ntwo\n{tmp_path}\n".encode()] == printed
    with pytest.raises(ProcessFailed) as killed:
        run(uninterrupted("kill -9 $$", tmp_path))
    assert -9 == killed.value.child_exit_code


def test_disposal_waits(tmp_path: Path) -> None:
    """A disposed command runs to its end, and nothing more is emitted."""
    script = "touch begun; while [ ! -e go ]; do sleep 0.01; done; touch done"
    emitted: list[bytes] = []
    clock = VirtualClock()  # it may end just before it is disposed of
    started = uninterrupted(script, tmp_path, grace=LIMIT).subscribe(
        emitted.append, scheduler=clock
    )
    eventually((tmp_path / "begun").exists)
    disposing = threading.Thread(target=started.dispose)
    disposing.start()
    (tmp_path / "go").touch()
    disposing.join(LIMIT)
    assert not disposing.is_alive()
    assert (tmp_path / "done").exists()
    clock.advance_to(clock.at(1))
    assert [] == emitted


@pytest.mark.parametrize("seconds", [0.0, 0.1])
def test_disposal_does_not_wait_indefinitely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """A hanging command is killed with its process tree, even if `Popen` has not returned yet."""

    class Slow(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            threading.Event().wait(seconds)

    monkeypatch.setattr("cuggino.processes.command.subprocess.Popen", Slow)
    script = "touch begun; sleep 1000 & wait"
    started = uninterrupted(script, tmp_path, grace=0.01).subscribe()
    eventually((tmp_path / "begun").exists)
    started.dispose()


def test_it_outlives_this_process(tmp_path: Path) -> None:
    """A killed Python process does not interrupt it."""
    script = f"""
import os, signal
from pathlib import Path
from cuggino.processes import process_output
words = ["sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.01; done; touch done"]
folder = Path({str(tmp_path)!r})
process_output(words, cwd=folder, env=os.environ, uninterrupted=True).subscribe()
while not (folder / "begun").exists(): pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", script], timeout=LIMIT, check=False)
    assert -9 == ran.returncode
    (tmp_path / "go").touch()
    eventually((tmp_path / "done").exists)
