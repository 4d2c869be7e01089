"""A command line with everything needed to start it, and the child process."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from errno import EACCES, EINVAL, ENOENT
from pathlib import Path
from typing import IO, Literal, NamedTuple, Protocol

from cuggino.errors import SpawnFailed, StorageError
from cuggino.files import temporary_folder
from cuggino.processes.exits import TICK, Exit
from cuggino.processes.guardian_client import GUARDIAN
from cuggino.processes.namespace import Namespace, StatusPipe, namespaces_can_be_ended
from cuggino.processes.process_tree import COOKIE, Birth, Ladder, ProcessTree, fork_count
from cuggino.processes.program_input import OpenInput

_DIES_WITH_PARENT = "--die-with-parent"
"""The option by which bubblewrap ends with the process that has started it."""

REAP_LIMIT = 1.0
"""Seconds to wait for the exit status of a child that SIGKILL could not end."""


class Confinement(Protocol):
    """The confinement of a program and everything it starts, an `Enclosure` of the sandbox."""

    @property
    def reports(self) -> bool:
        """Whether the confining program takes `--json-status-fd FD`."""

    @property
    def namespace(self) -> bool:
        """Whether all processes end with the first one of a PID namespace."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of the program."""

    def command(
        self, command: Iterable[str], *, status_fd: int | None = None, options: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Return the words that start the program, with options of the confining one."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program to run, see `process_lines`."""

    argv: tuple[str, ...]
    cwd: str | None
    env: Mapping[str, str] | None
    stdin: bytes | OpenInput | None
    merge_stderr: bool = False
    keep_ends: bool = False
    output: Literal["lines", "whole"] = "lines"
    """`whole` passes the output on in one piece, at the end; it is a file until then."""
    uninterrupted: bool = False
    """Whether it may finish: disposal waits for it, and it goes on if this process dies."""
    sweep: bool = True
    max_line: int = 64 * 1024 * 1024
    tail: int = 64 * 1024
    grace: float = 2.0
    """Seconds for the effect of each signal, or for an uninterrupted program to finish."""
    enclosure: Confinement | None = None

    @property
    def argv0(self) -> str:
        return self.argv[0]

    @property
    def open_input(self) -> OpenInput | None:
        """The input that is written while the process runs."""
        return self.stdin if isinstance(self.stdin, OpenInput) else None

    @property
    def namespace(self) -> Confinement | None:
        """The enclosure, if killing its namespace ends the whole process tree; else None."""
        enclosure = self.enclosure
        if enclosure is None or self.uninterrupted:
            return None
        if not (enclosure.namespace and enclosure.reports):
            return None
        return enclosure if namespaces_can_be_ended() else None

    def spawn(self) -> Child:
        """Start the process as the leader of its own session and group.

        Raises:
            SpawnFailed: the program or the folder cannot be used.
            StorageError: the input or the output cannot be kept in a temporary file.
        """
        env = dict(os.environ if self.env is None else self.env)
        if self.enclosure is not None:
            env = self.enclosure.environment(env)
        if (namespace := self.namespace) is not None:
            return self._spawn_in_namespace(namespace, env)
        argv = self.argv if self.enclosure is None else self.enclosure.command(self.argv)
        if self.uninterrupted:
            words = tuple(word for word in argv if word != _DIES_WITH_PARENT)
            started = self._start(words, env)
            return UninterruptedChild(started)
        cookie = GUARDIAN.cookie()
        if self.sweep:
            env[COOKIE] = cookie
        forks = fork_count() if self.sweep else 0
        started = self._start(argv, env)
        pid = started.process.pid
        if self.sweep:
            tree = ProcessTree([pid], cookie, birth=Birth(pid, forks))
        else:
            tree = ProcessTree([pid])  # only groups, of which all are looked at quickly
        return GuardedChild(started, tree)

    def _spawn_in_namespace(self, enclosure: Confinement, env: dict[str, str]) -> Child:
        """Start the process in a new session, with a monitor.

        The namespace ends with the calling thread.
        """
        status = StatusPipe()
        # A namespace that has not been set up yet outlives its monitor: if this process is killed
        # then, the guardian ends it.
        if self.sweep:
            env[COOKIE] = GUARDIAN.cookie()
        options = ["--new-session"]
        if self.cwd is not None:  # without this it silently runs elsewhere if the folder is hidden
            options += ["--chdir", str(Path(self.cwd).absolute())]
        try:
            argv = enclosure.command(self.argv, status_fd=status.write_end, options=options)
            started = self._start(argv, env, status.write_end)
        except BaseException:
            status.close()
            raise
        try:
            return EnclosedChild(started, Namespace(started.process.pid, status))
        except BaseException:  # it could not be watched, and was killed
            started.process.communicate()
            started.close()
            status.close()
            raise

    def _start(self, argv: Sequence[str], env: dict[str, str], *inherited: int) -> Started:
        try:
            if self.enclosure is not None:
                check_program(self.argv0, cwd=self.cwd, env=env)
            with ExitStack() as opened, self._input() as source:
                files: list[IO[bytes]] = []
                if self.output == "whole":
                    number = 1 if self.merge_stderr else 2
                    files = [opened.enter_context(_file()) for _ in range(number)]
                process = subprocess.Popen(
                    argv,
                    bufsize=0,
                    stdin=source,
                    stdout=files[0] if files else subprocess.PIPE,
                    stderr=(
                        subprocess.STDOUT
                        if self.merge_stderr
                        else files[1]
                        if files
                        else subprocess.PIPE
                    ),
                    cwd=self.cwd,
                    env=env,
                    start_new_session=True,
                    pass_fds=inherited,
                )
                opened.pop_all()
        except OSError as error:
            if self.cwd is not None and error.filename == self.cwd:
                error = OSError(error.errno, f"{error.strerror}: {self.cwd}")
            raise SpawnFailed(self.argv0, error) from error
        except ValueError as error:  # a NUL in an argument or the environment
            raise SpawnFailed(self.argv0, OSError(EINVAL, str(error))) from error
        return Started(process, files)

    def _input(self) -> IO[bytes]:
        """Return standard input as a file, so that a child that never reads it blocks nothing."""
        if isinstance(self.stdin, OpenInput):
            return self.stdin.take()
        if self.stdin is None:
            return open(os.devnull, "rb")  # noqa: PTH123 - os.devnull is a name, not a place
        return _file(self.stdin)


class Started(NamedTuple):
    """A process, and the files with its output and errors if they are no pipes."""

    process: subprocess.Popen[bytes]
    files: Sequence[IO[bytes]]

    def printed(self) -> list[bytes]:
        """Return the content of the files."""
        for file in self.files:
            file.seek(0)
        return [file.read() for file in self.files]

    def close(self) -> None:
        """Close all files and pipes; idempotent."""
        for stream in (self.process.stdout, self.process.stderr, *self.files):
            if stream is not None:
                stream.close()


class Child(ABC):
    """A started process: its pipes or files, its tree, its exit.

    It stays a zombie until `close`: until it is reaped, its process and group id are not reused.
    """

    def __init__(self, started: Started) -> None:
        self._started = started
        self.pid = started.process.pid
        self.exit = Exit(self.pid)
        self.stdout = _descriptor(started.process.stdout)
        self.stderr = _descriptor(started.process.stderr)
        self.pipes = tuple(fd for fd in (self.stdout, self.stderr) if fd is not None)

    @abstractmethod
    def ending(self, ladder: Ladder) -> Iterator[float]:
        """Terminate the whole tree step by step; yield the seconds to wait before the next step."""

    def printed(self) -> list[bytes]:
        """Return the output and the errors of a program whose output is whole."""
        return self._started.printed()

    def close(self) -> int | None:
        """Reap the process, close all descriptors and return the exit code, None if it is stuck."""
        self._started.close()
        self.exit.close()
        process = self._started.process
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=REAP_LIMIT)
        return process.returncode


class UninterruptedChild(Child):
    """A child that is given time to finish, and outlives this Python process."""

    def ending(self, ladder: Ladder) -> Iterator[float]:
        """Wait for its exit, then kill its group."""
        deadline = time.monotonic() + sum(seconds for _, seconds in ladder)
        while not self.exit.has_come():
            if (left := deadline - time.monotonic()) <= 0:
                with suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)
                return
            yield left if self.exit.pidfd is not None else min(left, TICK)


class GuardedChild(Child):
    """A child that the guardian terminates if this Python process dies."""

    def __init__(self, started: Started, tree: ProcessTree) -> None:
        super().__init__(started)
        self._tree = tree
        # If this Python process is killed before this line, the guardian finds the child by its
        # cookie, unless `sweep` is off.
        GUARDIAN.add(self.pid)

    def ending(self, ladder: Ladder) -> Iterator[float]:
        """Terminate it as `ProcessTree.ending` does."""
        return self._tree.ending(ladder)

    def close(self) -> int | None:
        """Reap it as `Child.close` does."""
        GUARDIAN.remove(self.pid)
        return super().close()


class EnclosedChild(Child):
    """A program in a namespace that the kernel ends if this Python process dies."""

    def __init__(self, started: Started, namespace: Namespace) -> None:
        super().__init__(started)
        self._namespace = namespace

    def ending(self, ladder: Ladder) -> Iterator[float]:
        """Terminate it as `Namespace.ending` does."""
        return self._namespace.ending(ladder)

    def close(self) -> int | None:
        """Reap its monitor and return the program's own exit code.

        Raises:
            NotStarted: the program was never started.
        """
        code = super().close()
        try:
            return self._namespace.exit_code(code)
        finally:
            self._namespace.close()


def check_program(name: str, *, cwd: str | None, env: Mapping[str, str]) -> None:
    """Check that a program can be started; its enclosure would report a failure only as text.

    Raises:
        OSError: it is missing or not executable.
    """
    folders = [""] if os.path.dirname(name) else os.get_exec_path(env)  # noqa: PTH120
    code = ENOENT
    for folder in folders:
        path = os.path.join(cwd or "", folder, name)  # noqa: PTH118 - also with empty parts
        if os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113
            return
        if os.path.exists(path):  # noqa: PTH110
            code = EACCES
    raise OSError(code, os.strerror(code), name)


def _file(content: bytes = b"") -> IO[bytes]:
    """Return a new file without a name, at its start.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        with ExitStack() as opened:
            file = opened.enter_context(tempfile.TemporaryFile())
            file.write(content)
            file.seek(0)
            opened.pop_all()
            return file
    except OSError as error:
        message = f"cannot write a temporary file: {error.strerror or error}"
        hint = f"check the folder for temporary files, {temporary_folder()} (TMPDIR)"
        raise StorageError("start program", message, hint=hint) from error


def _descriptor(stream: IO[bytes] | None) -> int | None:
    return None if stream is None else stream.fileno()
