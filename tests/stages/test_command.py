"""The setup and check commands: in virtual time with drawn shells, and with the real one."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex import Observable, from_iterable, operators as ops

from cuggino import run
from cuggino.errors import LineTooLong, ProcessFailed, SpawnFailed, StorageError
from cuggino.events import CheckCommandOutput, SetupCommandOutput
from cuggino.processes import KeptProcesses
from cuggino.stages import Shell, command_stage, keeping_shell, shell_lines, shell_with
from cuggino.testing import Marbles, no_leaks

Output = CheckCommandOutput | SetupCommandOutput


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "output.txt"


def stage(
    shell: Shell | Observable[bytes],
    file: Path,
    *,
    kind: Any = CheckCommandOutput,
    command: str = "make check",
    timeout: float | None = None,
) -> Observable[Any]:
    if isinstance(shell, Observable):
        stream = shell

        def shell(_command: str, _cwd: Path) -> Observable[bytes]:
            return stream

    return command_stage(
        kind, command, shell=shell, cwd=file.parent, iteration=3, output_file=file, timeout=timeout
    )


def output(file: Path, text: str, code: int, *, truncated: bool = False) -> CheckCommandOutput:
    return CheckCommandOutput(
        iteration=3, output=text, exit_code=code, file_path=str(file), truncated=truncated
    )


class TestInVirtualTime:
    def test_one_event_at_the_end(self, file: Path) -> None:
        """The output comes as one event when the command has ended, with exit code 0."""
        t = Marbles(a=b"one\n", b=b"two\n", X=output(file, "one\ntwo\n", 0))
        shell = t.cold("-a-b-|")
        t.check(stage(shell, file), "-----(X|)")
        t.check_subscriptions(shell, "^----!")
        assert b"one\ntwo\n" == file.read_bytes()

    def test_a_failure_is_told_by_the_event(self, file: Path) -> None:
        """A nonzero exit code is not an error of the stream; a signal is a negative one."""
        for code in (1, 2, 255, -9):
            t = Marbles(
                a=b"bad\n", X=output(file, "bad\n", code), error=ProcessFailed("sh", code, "")
            )
            t.check(stage(t.cold("a--#"), file), "---(X|)")

    def test_the_time_limit_ends_the_command(self, file: Path) -> None:
        """At the limit the command is released first, then reported with code 124 and output."""
        t = Marbles(a=b"one\n", X=output(file, "one\n", 124))
        order: list[str] = []
        shell = t.cold("a--a--------")
        t.events["X"] = output(file, "one\none\n", 124)
        released = shell.pipe(ops.finally_action(lambda: order.append("released")))
        stream = stage(released, file, timeout=5).pipe(
            ops.do_action(lambda _: order.append("told"))
        )
        t.check(stream, "-----(X|)")
        assert ["released", "told"] == order
        t.check_subscriptions(shell, "^----!")

    def test_a_command_within_its_limit_is_left_alone(self, file: Path) -> None:
        """A command that ends before its limit has its own code, and no timer is left."""
        t = Marbles(a=b"ok\n", X=output(file, "ok\n", 0))
        t.check(stage(t.cold("a---|"), file, timeout=5), "----(X|)")

    def test_disposal_ends_the_command_and_closes_the_file(self, file: Path) -> None:
        """Disposed while it runs, nothing is emitted and the file holds what was printed."""
        t = Marbles(a=b"one\n")
        shell = t.cold("a-------")
        with no_leaks():
            t.check(stage(shell, file), "", dispose_at=3)
        t.check_subscriptions(shell, "^--!")
        assert b"one\n" == file.read_bytes()

    def test_each_run_begins_a_new_file(self, file: Path) -> None:
        """The file holds the output of the latest run alone."""
        file.write_text("of an earlier run, and longer")
        t = Marbles(a=b"new\n", X=output(file, "new\n", 0))
        t.check(stage(t.cold("(a|)"), file), "(X|)")
        assert b"new\n" == file.read_bytes()

    def test_the_shell_gets_command_and_folder(self, file: Path) -> None:
        """The command line goes to the shell as it is, with the project's folder."""
        asked: list[tuple[str, Path]] = []

        def shell(command: str, cwd: Path) -> Observable[bytes]:
            asked.append((command, cwd))
            return from_iterable([])

        Marbles().record(stage(shell, file, command="a && b | c"))
        assert [("a && b | c", file.parent)] == asked

    @pytest.mark.parametrize(
        ("kind", "failure", "expected", "code"),
        [
            (CheckCommandOutput, None, "Check command completed successfully with no output.", 0),
            (SetupCommandOutput, None, "Setup command completed successfully with no output.", 0),
            (
                CheckCommandOutput,
                ProcessFailed("sh", 7, ""),
                "Check command failed with exit code 7.",
                7,
            ),
            (
                SetupCommandOutput,
                ProcessFailed("sh", 7, ""),
                "Setup command failed with exit code 7.",
                7,
            ),
            (
                CheckCommandOutput,
                SpawnFailed("/bin/sh", OSError(2, "No such file")),
                "Check command failed: cannot start /bin/sh: No such file",
                127,
            ),
            (
                CheckCommandOutput,
                LineTooLong("sh", 64 * 1024 * 1024),
                "Check command failed: sh printed a line longer than 64 MiB",
                126,
            ),
        ],
    )
    @pytest.mark.parametrize("blank", [b"", b" \n\t\n"])
    def test_a_blank_output_has_a_sentence(
        self,
        file: Path,
        kind: Any,
        failure: Exception | None,
        expected: str,
        code: int,
        blank: bytes,
    ) -> None:
        """For blank output a sentence reports how the command ended (CUG-043)."""
        t = Marbles(a=blank, error=failure)
        seen = t.record(stage(t.cold("a|" if failure is None else "a#"), file, kind=kind))
        assert ["next", "completed"] == [what for _, what, _ in seen]
        assert isinstance(seen[0][2], kind)
        assert (expected, code) == (seen[0][2].output, seen[0][2].exit_code)

    def test_a_silent_command_at_its_limit(self, file: Path) -> None:
        """A command without output at its limit is reported with the seconds."""
        t = Marbles(X=output(file, "Check command was ended after 90 s without output.", 124))
        t.check(stage(t.cold("-"), file, timeout=90), "90s (X|)")

    def test_a_line_without_end(self, file: Path) -> None:
        """A command terminated for an endless line keeps its output and reports the reason."""
        why = "Check command failed: sh printed a line longer than 1 MiB"
        t = Marbles(
            a=b"one\n", X=output(file, f"one\n{why}", 126), error=LineTooLong("sh", 1 << 20)
        )
        t.check(stage(t.cold("-a#"), file), "--(X|)")

    def test_only_the_end_of_a_long_output_is_kept(self, file: Path) -> None:
        """The event has the last 30,000 characters, the file has everything."""
        lines = [f"{n:07}\n".encode() for n in range(100_000)]
        whole = b"".join(lines)
        seen = Marbles().record(stage(from_iterable(lines), file))
        event = seen[0][2]
        assert whole.decode()[-30_000:] == event.output
        assert event.truncated
        assert whole == file.read_bytes()

    @pytest.mark.parametrize("character", ["x", "é", "家", "🙂"])
    @pytest.mark.parametrize(("length", "truncated"), [(30_000, False), (30_001, True)])
    def test_the_limit_counts_characters(
        self, file: Path, character: str, length: int, truncated: bool
    ) -> None:
        """30,000 characters of any width in bytes are kept whole; one more is truncated."""
        seen = Marbles().record(stage(from_iterable([(character * length).encode()]), file))
        assert character * 30_000 == seen[0][2].output
        assert truncated == seen[0][2].truncated

    def test_memory_does_not_grow_with_the_output(self, file: Path) -> None:
        """Of a large output only the end is in memory, however it arrives."""
        pieces = [b"short\n" * 20_000, b"a" * 99_999 + b"\n"]

        def peak(count: int) -> int:
            shell = from_iterable(pieces[n % 2] for n in range(count))
            tracemalloc.start()
            try:
                run(stage(shell, file))
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        few, many = peak(20), peak(200)
        assert file.stat().st_size > 20_000_000
        assert many < few + 1_000_000

    def test_bytes_that_are_no_text(self, file: Path) -> None:
        """Invalid UTF-8 is replaced in the event and stays in the file."""
        t = Marbles(a=b"\xff\xfeok\r\n", X=output(file, "\ufffd\ufffdok\r\n", 0))
        t.check(stage(t.cold("(a|)"), file), "(X|)")
        assert b"\xff\xfeok\r\n" == file.read_bytes()

    def test_another_error_passes(self, file: Path) -> None:
        """An error other than the end of a command is the error of the stage."""
        t = Marbles(error=ZeroDivisionError())
        t.check(stage(t.cold("-#"), file), "-#")

    def test_a_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        """Without a place for the output the stage fails as storage does, and starts nothing."""
        started: list[str] = []
        shell = from_iterable([b"x"]).pipe(ops.do_action(lambda _: started.append("started")))
        seen = Marbles().record(stage(shell, tmp_path / "missing" / "output.txt"))
        assert [StorageError] == [type(value) for _, _, value in seen]
        assert [] == started

    def test_a_shell_that_raises(self, file: Path) -> None:
        """An exception of the shell itself is the error of the stage, and the file is closed."""

        def shell(_command: str, _cwd: Path) -> Observable[bytes]:
            raise ZeroDivisionError

        with no_leaks():
            seen = Marbles().record(stage(shell, file))
        assert [ZeroDivisionError] == [type(value) for _, _, value in seen]

    def test_a_file_that_is_full(self, file: Path) -> None:
        """Output that cannot be stored is a storage error, and the command is ended."""
        full = Path("/dev/full")
        if not full.exists():
            full = file.parent / "missing" / "x"
        seen = Marbles().record(stage(from_iterable([b"x" * 100_000, b"y" * 100_000]), full))
        assert [StorageError] == [type(value) for _, _, value in seen]


class TestWithTheRealShell:
    @pytest.mark.parametrize(
        ("command", "text", "code"),
        [
            ("echo out; echo err >&2; exit 3", "out\nerr\n", 3),
            ("printf 'no end'", "no end", 0),
            ("printf 'a\\r\\nb'", "a\r\nb", 0),
            ("cat", "Check command completed successfully with no output.", 0),
            ("kill -9 $$", "Check command failed with exit code -9.", -9),
            ("pwd | grep -c . && test -d .", "1\n", 0),
        ],
    )
    def test_output_and_code(self, file: Path, command: str, text: str, code: int) -> None:
        """Both streams, byte for byte, the exit code, and an empty standard input."""
        with no_leaks():
            assert output(file, text, code) == run(stage(shell_lines, file, command=command))

    def test_a_program_that_is_not_there(self, file: Path) -> None:
        """The shell reports a missing command itself, with code 127."""
        event = run(stage(shell_lines, file, command="no-such-program-here"))
        assert event is not None
        assert 127 == event.exit_code
        assert "no-such-program-here" in event.output

    def test_a_folder_that_is_not_there(self, file: Path) -> None:
        """In a folder that has gone the command cannot be started: 127, and the cause."""
        shell = command_stage(
            CheckCommandOutput,
            "true",
            shell=shell_lines,
            cwd=file.parent / "gone",
            iteration=1,
            output_file=file,
        )
        event = run(shell)
        assert event is not None
        assert 127 == event.exit_code
        assert event.output.startswith("Check command failed: cannot start")

    def test_the_time_limit_leaves_no_process(self, file: Path) -> None:
        """At the limit the command's processes are ended, and what was printed is kept."""
        with no_leaks():
            event = run(
                stage(shell_lines, file, command="echo begun; sleep 600 | sleep 600", timeout=3)
            )
        assert output(file, "begun\n", 124) == event

    @pytest.mark.parametrize("start", ["", "setsid ", "nohup "])
    @pytest.mark.parametrize("output", ["", " >/dev/null 2>&1"])
    def test_what_stays_in_the_background_is_ended(
        self, file: Path, start: str, output: str
    ) -> None:
        """A server that the command leaves running is gone with the command's end."""
        with no_leaks():
            event = run(stage(shell_lines, file, command=f"{start}sleep 600{output} & echo $!"))
        assert event is not None
        assert 0 == event.exit_code
        assert not _is_alive(int(event.output.split()[-1]))

    @pytest.mark.parametrize(
        "shell", [shell_with({"SLOT": "2"}), keeping_shell(KeptProcesses(), {"SLOT": "2"})]
    )
    def test_variables_of_a_run(self, file: Path, shell: Shell) -> None:
        """They are added to the environment of this process."""
        event = run(stage(shell, file, command='echo "$SLOT${PATH:+ and a path}"'))
        assert output(file, "2 and a path\n", 0) == event

    def test_what_stays_in_the_background_may_be_kept(self, file: Path) -> None:
        """A kept server runs until it is ended, or until the command is run again."""
        kept = KeptProcesses()
        shell = keeping_shell(kept)
        command = "setsid sleep 600 >/dev/null 2>&1 & echo $!"
        servers = []
        for _ in range(2):
            event = run(stage(shell, file, command=command))
            assert event is not None
            servers.append(int(event.output))
        assert [False, True] == [_is_alive(server) for server in servers]
        kept.end()
        assert [False, False] == [_is_alive(server) for server in servers]
        kept.end()


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
