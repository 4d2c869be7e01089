"""The setup and check commands as stages (CUG-040 to CUG-044)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from reactivex import Observable, abc, concat, empty, of, operators as ops, throw, timer

from cuggino.errors import LineTooLong, LoopError, ProcessFailed, SpawnFailed
from cuggino.events import CheckCommandOutput, SetupCommandOutput
from cuggino.operators import acquire_release, interrupt_when
from cuggino.sources.process import process_lines
from cuggino.storage import storing

Shell = Callable[[str, Path], Observable[bytes]]
"""Runs a command line in a folder; emits its output lines with their ends, fails as
`process_lines` does."""

OUTPUT_LIMIT = 30_000
"""Characters of a command's output that are kept in the event and given to an agent."""

CANNOT_START = 127
UNREADABLE = 126
TIMED_OUT = 124

Output = TypeVar("Output", SetupCommandOutput, CheckCommandOutput)


def shell_lines(command: str, cwd: Path) -> Observable[bytes]:
    """Run the command line in `/bin/sh`; what it leaves running in the background stays."""
    return process_lines(
        ["/bin/sh", "-c", command], cwd=cwd, merge_stderr=True, sweep=False, keep_ends=True
    )


def command_stage(
    kind: type[Output],
    command: str,
    *,
    shell: Shell,
    cwd: Path,
    iteration: int,
    output_file: Path,
    timeout: float | None = None,
) -> Observable[Output]:
    """Run the command to its end and emit one event: its output and exit code.

    A command that exits with another code than 0, cannot be started (127), runs longer than
    `timeout` seconds (124, and its processes are ended) or prints a line without end (126, and the
    same) is no error: the event tells it. The whole output goes to `output_file`, the event
    carries its last 30,000 characters.

    Errors: `StorageError` when `output_file` cannot be written.
    """

    def collect(output: _Output) -> Observable[Output]:
        lines: Observable[Any] = shell(command, cwd)
        if timeout is not None:
            lines = lines.pipe(interrupt_when(timer(timeout), TIMED_OUT))
        return lines.pipe(
            ops.do_action(output.add),
            ops.ignore_elements(),
            ops.catch(output.failed),
            _then(lambda: output.event(kind, iteration=iteration, timeout=timeout)),
        )

    return acquire_release(lambda: _Output(output_file), collect, lambda output: output.close())


def must_succeed(command: Observable[Output]) -> Observable[Output]:
    """The command's event, then an error if it tells of another exit code than 0.

    Errors: `LoopError` of the setup or check phase.
    """

    def judge(event: Output) -> Observable[Output]:
        if event.exit_code == 0:
            return of(event)
        phase = "setup" if event.tag == SetupCommandOutput.__name__ else "check"
        message = f"the {phase} command exited with code {event.exit_code}"
        return concat(of(event), throw(LoopError(phase, message)))

    return command.pipe(ops.concat_map(judge))


def _then(make: Callable[[], Output]) -> Callable[[Observable[Any]], Observable[Output]]:
    """Emit `make()` when the source has completed."""

    def operator(source: Observable[Any]) -> Observable[Output]:
        def subscribe(
            observer: abc.ObserverBase[Output], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            def complete() -> None:
                observer.on_next(make())
                observer.on_completed()

            return source.subscribe(None, observer.on_error, complete, scheduler=scheduler)

        return Observable(subscribe)

    return operator


class _Output:
    """The whole output in a file, its end in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with storing("write output", path):
            self._file = path.open("wb")
        self._tail = bytearray()
        self._size = 0
        self._exit_code = 0
        self._problem = ""

    def add(self, line: bytes | int) -> None:
        if isinstance(line, int):
            self._exit_code = line
            return
        with storing("write output", self._path):
            self._file.write(line)
        self._size += len(line)
        self._tail += line
        # UTF-8 takes at most four bytes a character.
        if len(self._tail) > 8 * OUTPUT_LIMIT:
            del self._tail[: -4 * OUTPUT_LIMIT]

    def failed(self, error: Exception, _source: Observable[Any]) -> Observable[Any]:
        match error:
            case ProcessFailed():
                self._exit_code = error.child_exit_code
            case SpawnFailed():
                self._exit_code = CANNOT_START
                self._problem = error.message
            case LineTooLong():
                self._exit_code = UNREADABLE
                self._problem = error.message
            case _:
                return throw(error)
        return empty()

    def event(self, kind: type[Output], *, iteration: int, timeout: float | None) -> Output:
        with storing("write output", self._path):
            self._file.flush()
        whole = bytes(self._tail).decode("utf-8", "replace")
        text = whole[-OUTPUT_LIMIT:]
        if self._problem and text.strip():
            text = f"{text.rstrip()}\n{self._nothing(kind, timeout)}"
        return kind(
            iteration=iteration,
            output=text if text.strip() else self._nothing(kind, timeout),
            exit_code=self._exit_code,
            file_path=str(self._path),
            truncated=self._size > len(self._tail) or len(whole) > OUTPUT_LIMIT,
        )

    def _nothing(self, kind: type[Output], timeout: float | None) -> str:
        """What stands for a blank output (CUG-043)."""
        name = "Setup" if kind is SetupCommandOutput else "Check"
        if self._problem:
            return f"{name} command failed: {self._problem}"
        if self._exit_code == TIMED_OUT and timeout is not None:
            return f"{name} command was ended after {timeout:g} s without output."
        if self._exit_code:
            return f"{name} command failed with exit code {self._exit_code}."
        return f"{name} command completed successfully with no output."

    def close(self) -> None:
        with suppress(OSError):  # what could not be written was told by `event`
            self._file.close()
