"""Stages that run the setup and check commands (CUG-040 to CUG-044)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from reactivex import Observable, concat, defer, of, operators as ops, throw, timer

from cuggino.errors import LineTooLong, LoopError, ProcessFailed, SpawnFailed
from cuggino.events import CheckCommandOutput, SetupCommandOutput
from cuggino.files import storing
from cuggino.operators import Flow, ask, emit, flow, interrupt_when
from cuggino.processes import KeptProcesses, process_lines
from cuggino.sandbox import Enclosure, Views, without_logins, without_repository

Shell = Callable[[str, Path], Observable[bytes]]
"""Runs a command line in a folder; emits its output, one or more whole lines at a time with their
ends, and fails as `process_lines` does."""

OUTPUT_LIMIT = 30_000
"""Characters of the output that the event keeps and an agent gets."""

_LONGEST_LINE = 4 * 1024 * 1024

CANNOT_START = 127
UNREADABLE = 126
TIMED_OUT = 124

Output = TypeVar("Output", "SetupCommandOutput", "CheckCommandOutput")


def shell_lines(command: str, cwd: Path) -> Observable[bytes]:
    """Run the command line in `/bin/sh`, and terminate the background processes that it leaves.

    Like every command it gets no forge logins, as it may run an agent's work.
    """
    return _run(command, cwd, {}, ())


_NOTHING: Mapping[str, str] = MappingProxyType({})


def _run(command: str, cwd: Path, env: Mapping[str, str], show: Sequence[str]) -> Observable[bytes]:
    def start(_scheduler: object) -> Observable[bytes]:
        return process_lines(
            ["/bin/sh", "-c", command],
            cwd=cwd,
            env=without_logins({**without_repository(os.environ), **env}, show),
            merge_stderr=True,
            keep_ends=True,
        )

    return defer(start)


def shell_with(env: Mapping[str, str], show: Sequence[str] = ()) -> Shell:
    """Return `shell_lines` with these variables in the environment of its commands.

    `show` are the paths of `sandboxShow`, for logins that commands may use.
    """
    if not (env or show):
        return shell_lines
    return lambda command, cwd: _run(command, cwd, env, show)


def enclosed_shell(views: Views, env: Mapping[str, str] = _NOTHING) -> Shell:
    """Return a shell that runs each command in the implementer's view of its folder.

    `env` is added to the environment. Background processes end with their command.
    """

    def lines(command: str, cwd: Path) -> Observable[bytes]:
        def start(_scheduler: object) -> Observable[bytes]:
            return process_lines(
                ["/bin/sh", "-c", command],
                cwd=cwd,
                env={**without_repository(os.environ), **env},
                merge_stderr=True,
                keep_ends=True,
                enclosure=views.of_commands(cwd),
            )

        return defer(start)

    return lines


def command_lines(
    command: str, cwd: Path, *, views: Views | None, show: Sequence[str] = ()
) -> Observable[bytes]:
    """Run the command line like `enclosed_shell`, and emit each line of its standard output.

    Its standard error is in the message of `ProcessFailed`.
    """

    def start(_scheduler: object) -> Observable[bytes]:
        return process_lines(
            ["/bin/sh", "-c", command],
            cwd=cwd,
            env=without_logins(without_repository(os.environ), show),
            enclosure=_enclosure(views, cwd),
            max_line=_LONGEST_LINE,
        )

    return defer(start)


def shell_input(
    command: str,
    cwd: Path,
    stdin: bytes,
    *,
    env: Mapping[str, str] = _NOTHING,
    views: Views | None = None,
    show: Sequence[str] = (),
) -> Observable[bytes]:
    """Run the command line like `enclosed_shell`, with this standard input.

    A line of output may be up to 1 MiB long.
    """

    def start(_scheduler: object) -> Observable[bytes]:
        return process_lines(
            ["/bin/sh", "-c", command],
            cwd=cwd,
            env=without_logins({**without_repository(os.environ), **env}, show),
            stdin=stdin,
            merge_stderr=True,
            keep_ends=True,
            max_line=1024 * 1024,
            enclosure=_enclosure(views, cwd),
        )

    return defer(start)


def _enclosure(views: Views | None, cwd: Path) -> Enclosure | None:
    return None if views is None else views.of_commands(cwd)


def keeping_shell(
    kept: KeptProcesses, env: Mapping[str, str] = _NOTHING, show: Sequence[str] = ()
) -> Shell:
    """Return a shell that leaves background processes running, until `kept.end()` or its next use.

    `env` is added to their environment; `show` are the paths of `sandboxShow`.

    A process that writes to the command's own output fails when the command has ended: redirect it,
    as in `server >server.log 2>&1 &`.
    """

    def lines(command: str, cwd: Path) -> Observable[bytes]:
        def start(_scheduler: object) -> Observable[bytes]:
            kept.end()
            return process_lines(
                ["/bin/sh", "-c", command],
                cwd=cwd,
                env=without_logins({**kept.environment(), **env}, show),
                merge_stderr=True,
                sweep=False,
                keep_ends=True,
            )

        return defer(start)

    return lines


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

    A failure is not an error but an exit code in the event: the command's own, 127 if it cannot be
    started, 124 if it exceeds `timeout` seconds, 126 if it prints an endless line; in the last two
    cases its processes are terminated. The whole output is written to `output_file`; the event
    carries the last 30,000 characters.

    Errors: `StorageError` when `output_file` cannot be written.
    """

    def run() -> Flow[None]:
        lines: Observable[Any] = shell(command, cwd)
        if timeout is not None:
            lines = lines.pipe(interrupt_when(timer(timeout), TIMED_OUT))
        with closing(_Output(output_file)) as output:
            try:
                yield from ask(lines.pipe(ops.do_action(output.add)))
            except (ProcessFailed, SpawnFailed, LineTooLong) as error:
                output.failed(error)
            yield from emit(output.event(kind, iteration=iteration, timeout=timeout))

    return flow(run)


def must_succeed(command: Observable[Output]) -> Observable[Output]:
    """Pass the command's event on, then fail unless its exit code is 0.

    Errors: `LoopError` of the setup or check phase.
    """

    def judge(event: Output) -> Observable[Output]:
        if event.exit_code == 0:
            return of(event)
        phase = "setup" if event.tag == "SetupCommandOutput" else "check"
        message = f"the {phase} command exited with code {event.exit_code}"
        return concat(of(event), throw(LoopError(phase, message)))

    return command.pipe(ops.concat_map(judge))


class _Output:
    """The output of a command: all of it in a file, the end in memory."""

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
        self._tail += line[-8 * OUTPUT_LIMIT :]
        # UTF-8 takes at most four bytes a character.
        if len(self._tail) > 8 * OUTPUT_LIMIT:
            del self._tail[: -4 * OUTPUT_LIMIT]

    def failed(self, error: ProcessFailed | SpawnFailed | LineTooLong) -> None:
        if isinstance(error, ProcessFailed):
            self._exit_code = error.child_exit_code
            return
        self._exit_code = CANNOT_START if isinstance(error, SpawnFailed) else UNREADABLE
        self._problem = error.message

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
        """Return the text that replaces a blank output (CUG-043)."""
        name = "Setup" if kind is SetupCommandOutput else "Check"
        if self._problem:
            return f"{name} command failed: {self._problem}"
        if self._exit_code == TIMED_OUT and timeout is not None:
            return f"{name} command was ended after {timeout:g} s without output."
        if self._exit_code:
            return f"{name} command failed with exit code {self._exit_code}."
        return f"{name} command completed successfully with no output."

    def close(self) -> None:
        with suppress(OSError):  # `event` has reported what could not be written
            self._file.close()
