"""The lines and the end of `process_lines`, alone and together."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import tempfile
import threading
import time
from pathlib import Path

import pytest
from reactivex import operators as ops
from reactivex.scheduler import EventLoopScheduler, NewThreadScheduler

from cuggino.errors import LineTooLong, ProcessFailed, SpawnFailed, StorageError
from cuggino.processes import OpenInput, process_batches, process_lines, reading
from cuggino.testing import VirtualClock, no_leaks
from tests.limits import LIMIT
from tests.processes.enclosures import plain_only
from tests.processes.subscribers import Recorder, alive, children, descriptors, eventually, python

pytestmark = pytest.mark.usefixtures("enclosed")


def test_nothing_starts_before_a_subscription(tmp_path: Path) -> None:
    """The stream is cold: each subscription, and nothing else, runs the program once."""
    log = tmp_path / "log"
    stream = process_lines(["sh", "-c", f"echo run >> {log}; echo x"])
    assert not log.exists()
    for _ in range(2):
        assert Recorder(stream).wait().items == [b"x"]
    assert log.read_text() == "run\nrun\n"


def test_lines_come_in_order_without_their_newline() -> None:
    """Lines lose their newline and nothing else, and an unterminated last line comes too."""
    recorder = Recorder(process_lines(["printf", r"one\n\n two \r\n\nlast"])).wait()
    assert recorder.items == [b"one", b"", b" two \r", b"", b"last"]
    assert recorder.completed


def test_keep_ends_tells_whether_the_last_line_was_ended() -> None:
    """With `keep_ends` the items joined are the output, byte for byte."""
    for output in (b"one\n\ntwo", b"one\n\ntwo\n"):
        stream = process_lines(["cat"], stdin=output, keep_ends=True)
        assert output == b"".join(Recorder(stream).wait().items)


def test_keep_ends_gives_lines_that_arrive_together_as_one() -> None:
    """Output in many short lines costs no more than in few; each item is made of whole lines."""
    output = b"a\n" * 100_000 + b"end"
    items = Recorder(process_lines(["cat"], stdin=output, keep_ends=True)).wait().items
    assert output == b"".join(items)
    assert all(item.endswith(b"\n") for item in items[:-1])
    assert len(items) < 1000


@pytest.mark.parametrize("before", [b"", b"a\n", b"a\nb", b"a\n" * 5000])
def test_keep_ends_with_a_line_without_end(before: bytes) -> None:
    """A line above the limit is an error, wherever it begins; lines before it arrive."""
    output = before + b"x" * 300_000 + b"\nend\n"
    stream = process_lines(["cat"], stdin=output, keep_ends=True, max_line=200_000)
    recorder = Recorder(stream).wait()
    assert isinstance(recorder.error, LineTooLong)
    assert before.startswith(b"".join(recorder.items))
    whole = process_lines(["cat"], stdin=output, keep_ends=True, max_line=310_000)
    assert output == b"".join(Recorder(whole).wait().items)


def test_no_output_is_no_line() -> None:
    """A program that prints nothing completes without a line."""
    recorder = Recorder(process_lines(["true"])).wait()
    assert (recorder.items, recorder.completed, recorder.error) == ([], True, None)


def test_invalid_utf8_passes_untouched() -> None:
    """Bytes that are no UTF-8 arrive as they were printed."""
    code = r"import os; os.write(1, b'\xff\xfe\x00\x80\n\xc3\n')"
    assert Recorder(process_lines(python(code))).wait().items == [b"\xff\xfe\x00\x80", b"\xc3"]


def test_a_line_of_20_mb_arrives_whole() -> None:
    """A line of 20 MB is one item."""
    code = "import sys; sys.stdout.write('x' * 20_000_000 + '\\nend\\n')"
    recorder = Recorder(process_lines(python(code))).wait()
    assert [len(line) for line in recorder.items] == [20_000_000, 3]


def test_a_line_at_the_limit_arrives_and_one_above_is_an_error() -> None:
    """`max_line` itself is allowed; one byte more ends the tree with LineTooLong."""
    stream = process_lines(
        ["sh", "-c", "echo 1; echo 12345; echo 123456; exec sleep 600"], max_line=5
    )
    recorder = Recorder(stream).wait()
    assert recorder.items == [b"1", b"12345"]
    assert isinstance(recorder.error, LineTooLong)
    assert recorder.error.limit == 5
    assert set() == children()


def test_a_line_that_never_ends_is_cut_at_the_limit() -> None:
    """An endless line of more than 64 MiB is an error as soon as it is above the limit."""
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
    recorder = Recorder(process_lines(python(code))).wait()
    assert isinstance(recorder.error, LineTooLong)
    assert recorder.error.limit == 64 * 1024 * 1024
    assert set() == children()


def test_the_exit_code_and_the_tail_of_stderr_are_in_the_error() -> None:
    """Another exit code than 0 is ProcessFailed, after all lines."""
    recorder = Recorder(process_lines(["sh", "-c", "echo out; echo broken >&2; exit 7"])).wait()
    assert recorder.items == [b"out"]
    assert isinstance(recorder.error, ProcessFailed)
    assert (recorder.error.argv0, recorder.error.child_exit_code, recorder.error.stderr_tail) == (
        "sh",
        7,
        "broken\n",
    )


def test_a_signal_is_a_negative_exit_code() -> None:
    """A process that a signal ended fails with the negative signal number."""
    recorder = Recorder(process_lines(["sh", "-c", "kill -9 $$"])).wait()
    assert isinstance(recorder.error, ProcessFailed)
    assert recorder.error.child_exit_code == -9


@pytest.mark.parametrize(("limit", "expected"), [(65536, 65536), (10, 10), (0, 0)])
def test_only_the_tail_of_stderr_is_kept(limit: int, expected: int) -> None:
    """Standard error is read at any size, its last `tail` bytes are kept."""
    code = "import sys; sys.stderr.write('a' * 3_000_000 + 'z' * 5); sys.exit(1)"
    recorder = Recorder(process_lines(python(code), tail=limit)).wait()
    assert isinstance(recorder.error, ProcessFailed)
    assert expected == len(recorder.error.stderr_tail)
    assert "zzzzz"[:expected] == recorder.error.stderr_tail[-5:]


def test_merge_stderr_reads_both_in_order() -> None:
    """With `merge_stderr` standard error is part of the output, in the order of writing."""
    stream = process_lines(["sh", "-c", "echo a; echo b >&2; echo c"], merge_stderr=True)
    assert Recorder(stream).wait().items == [b"a", b"b", b"c"]


@pytest.mark.parametrize("data", ["grüß\n", "grüß\n".encode()])
def test_stdin_is_text_or_bytes(data: str | bytes) -> None:
    """Text is given to the process as UTF-8, bytes as they are."""
    assert ["grüß".encode()] == Recorder(process_lines(["cat"], stdin=data)).wait().items


def test_without_stdin_the_input_is_empty() -> None:
    """A program that reads its input without there being any does not wait."""
    assert Recorder(process_lines(["cat"])).wait().items == []


@pytest.mark.real_agent
def test_5_mb_pass_through_cat() -> None:
    """Input and output of 5 MB do not block each other."""
    data = b"".join(b"%07d\n" % number for number in range(655_360))
    recorder = Recorder(process_lines(["cat"], stdin=data)).wait()
    assert data == b"".join(line + b"\n" for line in recorder.items)


def test_input_that_nobody_reads_blocks_nobody() -> None:
    """A program may end without reading its input."""
    assert Recorder(process_lines(["true"], stdin=b"x" * 5_000_000)).wait().completed


def test_cwd_and_env_are_the_childs(tmp_path: Path) -> None:
    """The process runs in `cwd` with `env` as its whole environment, the cookie added."""
    stream = process_lines(["/bin/sh", "-c", "pwd; env"], cwd=tmp_path, env={"ONLY": "this"})
    folder, *variables = Recorder(stream).wait().items
    names = {line.partition(b"=")[0] for line in variables}
    assert os.fsencode(tmp_path.resolve()) == folder
    assert b"ONLY" in names
    assert b"CUGGINO_CHILD" in names
    assert b"PATH_OF_NOBODY" not in names and b"HOME" not in names


def test_without_sweep_there_is_no_cookie() -> None:
    """`sweep=False` leaves the environment as it is given."""
    stream = process_lines(["/bin/sh", "-c", "env"], env={"ONLY": "this"}, sweep=False)
    names = {line.partition(b"=")[0] for line in Recorder(stream).wait().items}
    assert b"CUGGINO_CHILD" not in names


@plain_only
def test_the_child_leads_its_own_session() -> None:
    """The process is the leader of a new session and a new group."""
    code = "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))"
    assert Recorder(process_lines(python(code))).wait().items == [b"True"]


def test_a_missing_program_cannot_be_started() -> None:
    """A program that is not there is SpawnFailed with its name."""
    recorder = Recorder(process_lines(["no-such-program-here"])).wait()
    assert isinstance(recorder.error, SpawnFailed)
    assert (recorder.error.argv0, recorder.error.errno) == ("no-such-program-here", errno.ENOENT)


def test_a_file_that_is_not_executable_cannot_be_started(tmp_path: Path) -> None:
    """A file without the executable bit is SpawnFailed."""
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    recorder = Recorder(process_lines([program])).wait()
    assert isinstance(recorder.error, SpawnFailed)
    assert recorder.error.errno == errno.EACCES


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A working directory that is not there is SpawnFailed, and the message names it."""
    recorder = Recorder(process_lines(["true"], cwd=tmp_path / "gone")).wait()
    assert isinstance(recorder.error, SpawnFailed)
    assert str(tmp_path / "gone") in recorder.error.message


def test_a_missing_folder_for_temporary_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a place for its input a program is not started, and the message names the place."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    recorder = Recorder(process_lines(["cat"], stdin="text")).wait()
    assert isinstance(recorder.error, StorageError)
    assert f"{tmp_path / 'gone'} (TMPDIR)" in str(recorder.error.hint)


@pytest.mark.parametrize("argv", [["echo", "a\0b"], ["echo", "x" * 3_000_000]])
def test_arguments_that_no_system_takes_are_spawn_errors(argv: list[str]) -> None:
    """A NUL in an argument, or too long an argument, is SpawnFailed."""
    assert isinstance(Recorder(process_lines(argv)).wait().error, SpawnFailed)


def test_an_empty_command_line_is_a_mistake() -> None:
    """An empty `argv` is refused where it is written."""
    with pytest.raises(ValueError, match="argv is empty"):
        process_lines([])


def test_a_command_line_in_one_text_is_a_mistake() -> None:
    """Its characters would be taken for the arguments."""
    with pytest.raises(TypeError, match=r"a list of arguments, not 'echo hi': see shlex\.split"):
        process_lines("echo hi")


def test_output_may_end_long_before_the_process() -> None:
    """Completion waits for the exit code, also when the output has ended before."""
    recorder = Recorder(process_lines(["sh", "-c", "echo x; exec >&- 2>&-; sleep 0.2; exit 3"]))
    recorder.wait()
    assert recorder.items == [b"x"]
    assert isinstance(recorder.error, ProcessFailed)
    assert recorder.error.child_exit_code == 3


SETSID_SLEEP = """
import os, time
told, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
    os.write(tell, b".")
    time.sleep(600)
os.read(told, 1)
"""


def test_a_grandchild_that_holds_the_pipe_is_waited_for_shortly() -> None:
    """After the exit others may hold the pipe for a while; then they are ended."""
    recorder = Recorder(process_lines(python(SETSID_SLEEP))).wait()
    assert recorder.completed
    assert not alive(int(recorder.items[0]))


@plain_only
def test_without_sweep_a_daemon_stays() -> None:
    """With `sweep=False` a normal exit leaves what the process has started alone."""
    recorder = Recorder(process_lines(python(SETSID_SLEEP), sweep=False)).wait()
    daemon = int(recorder.items[0])
    try:
        assert recorder.completed
        assert alive(daemon)
    finally:
        os.kill(daemon, 9)


@plain_only
def test_output_within_the_second_after_the_exit_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output of a background job shortly after the exit still arrives."""
    monkeypatch.setattr(reading, "DRAIN", LIMIT)  # a second may be short on a busy machine
    recorder = Recorder(process_lines(["sh", "-c", "(sleep 0.3; echo late) & echo x"])).wait()
    assert recorder.items == [b"x", b"late"]


def test_left_overs_are_ended_before_completion() -> None:
    """With `sweep` a normal exit leaves nothing, not even what ignores SIGTERM."""
    script = "(trap '' TERM; exec sleep 600) >/dev/null 2>&1 & echo $!; sleep 0.2"
    recorder = Recorder(process_lines(["sh", "-c", script])).wait()
    assert recorder.completed
    assert not alive(int(recorder.items[0]))


def test_an_exception_of_the_subscriber_ends_the_tree_and_comes_back() -> None:
    """An exception of `on_next` reaches `on_error` after every process is gone."""
    mistake = RuntimeError("subscriber")

    def fail(_: bytes) -> None:
        raise mistake

    recorder = Recorder(process_lines(["sh", "-c", "echo $$; exec sleep 600"]), on_next=fail).wait()
    assert recorder.error is mistake
    assert not alive(int(recorder.items[0]))
    assert set() == children()


def test_an_exit_in_the_subscriber_ends_the_tree_and_passes() -> None:
    """`sys.exit` in `on_next` passes through the scheduler after every process is gone."""
    clock = VirtualClock()

    def leave(_: bytes) -> None:
        raise SystemExit(3)

    stream = process_lines(["sh", "-c", "echo $$; exec sleep 600"])
    recorder = Recorder(stream, on_next=leave, scheduler=clock)
    with pytest.raises(SystemExit):
        clock.advance_to(clock.at(1))
    assert not alive(int(recorder.items[0]))
    assert (None, False) == (recorder.error, recorder.completed)


def test_disposal_before_the_end_is_delivered() -> None:
    """The end of a process that the scheduler still has to deliver is dropped."""
    clock = VirtualClock()
    recorder = Recorder(process_lines(["true"]), scheduler=clock)
    assert eventually(lambda: clock.pending > 0)
    recorder.subscription.dispose()
    clock.advance_to(clock.at(1))
    assert (None, False) == (recorder.error, recorder.completed)


@pytest.mark.parametrize(
    "place",
    ["reading.Reading.start", "reading.LineSplitter.feed", "process_run.ladder"],
    ids=["start", "read", "end"],
)
def test_a_defect_is_the_streams_error(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """An unexpected exception while reading is reported, and no process is left."""
    defect = ZeroDivisionError("defect")

    def fail(*_: object, **_options: object) -> None:
        raise defect

    monkeypatch.setattr(f"cuggino.processes.{place}", fail)
    script = "echo x; exec sleep 600" if place != "process_run.ladder" else "exit 0"
    with no_leaks():
        recorder = Recorder(process_lines(["sh", "-c", script])).wait()
    assert recorder.error is defect
    assert set() == children()


def test_a_thread_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the stream's, and no pipe is left open."""
    start = threading.Thread.start

    def no_threads_left(thread: threading.Thread) -> None:
        if thread.name == "cuggino-true":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", no_threads_left)
    with no_leaks():
        recorder = Recorder(process_lines(["true"])).wait()
    assert "can't start new thread" == str(recorder.error)


def test_input_that_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room for the input the process is not started."""

    class Full(io.BytesIO):
        def write(self, _data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    kept = Full()
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: kept)
    error = Recorder(process_lines(["cat"], stdin="text")).wait().error
    assert isinstance(error, StorageError)
    assert "No space left on device" in str(error)
    assert kept.closed


@plain_only
def test_a_process_that_other_code_has_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pidfd, a process that is not there any more has ended."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    recorder = Recorder(process_lines(["sh", "-c", "echo $$; exec >&- 2>&-; sleep 0.5"]))
    os.waitpid(int(recorder.wait_first()), 0)
    assert recorder.wait().completed


def test_without_a_pidfd_the_exit_is_noticed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pidfd (macOS) every end is found by polling."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    failed = Recorder(process_lines(["sh", "-c", "echo x; exec >&- 2>&-; sleep 0.2; exit 3"]))
    assert isinstance(failed.wait().error, ProcessFailed)
    held = Recorder(process_lines(python(SETSID_SLEEP))).wait()
    assert held.completed
    ended = Recorder(process_lines(["sh", "-c", "echo $$; exec sleep 600"]))
    pid = int(ended.wait_first())
    ended.subscription.dispose()
    assert not alive(pid)


def test_nothing_leaks_in_100_runs() -> None:
    """100 runs leave no descriptor, no thread, no child and no zombie behind."""
    Recorder(process_lines(["true"])).wait()
    assert eventually(lambda: _own_threads() == 1)
    before = descriptors()
    for number in range(100):
        Recorder(process_lines(["sh", "-c", f"echo {number}; exit {number % 2}"])).wait()
    assert eventually(lambda: _own_threads() == 1), threading.enumerate()
    assert eventually(lambda: descriptors() <= before)
    assert set() == children()


def _own_threads() -> int:
    """Threads of this test: the main thread and those of subscriptions, not those that are kept."""
    return sum(
        thread is threading.main_thread() or "cuggino" in thread.name or "run" in thread.name
        for thread in threading.enumerate()
        if thread.name != "cuggino-loop"
    )


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
    """They are read together after a while, or at once when the program ends; the first is alone.

    The pause is longer than the machine has been up.
    """
    uptime = time.monotonic()
    monkeypatch.setattr(reading, "GATHER", uptime + LIMIT * 10)
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


def test_all_is_told_on_the_scheduler_of_the_subscription() -> None:
    """Every line comes on the thread of the scheduler that was given, which stays open."""
    lane = EventLoopScheduler()
    recorder = Recorder(process_lines(["seq", "1000"]), scheduler=lane).wait()
    again = Recorder(process_lines(["seq", "1000"]), scheduler=lane).wait()
    try:
        assert len(recorder.items) == 1000
        assert len(recorder.threads | again.threads) == 1
    finally:
        lane.dispose()


def test_a_scheduler_of_many_threads_does_not_mix_lines_up() -> None:
    """A scheduler that is not serial is replaced by a private thread."""
    recorder = Recorder(process_lines(["seq", "20000"]), scheduler=NewThreadScheduler()).wait()
    assert [b"%d" % number for number in range(1, 20001)] == recorder.items
    assert len(recorder.threads) == 1


def test_blocking_run_gives_the_last_line() -> None:
    """`Observable.run()` works as for any other stream."""
    assert process_lines(["seq", "3"]).run() == b"3"


def test_await_gives_the_list_on_the_event_loop() -> None:
    """`await` in an asyncio program gets its result without another timer waking the loop."""

    async def main() -> list[bytes]:
        return await asyncio.wait_for(process_lines(["seq", "3"]).pipe(ops.to_list()), 10)

    assert asyncio.run(main()) == [b"1", b"2", b"3"]
