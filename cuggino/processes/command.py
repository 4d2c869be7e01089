"""A command line with everything needed to start it, and the child process."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import EACCES, EINVAL, ENOENT
from pathlib import Path
from typing import IO, Protocol

from cuggino.errors import SpawnFailed
from cuggino.processes.environment import current_environment
from cuggino.processes.exits import Exit
from cuggino.processes.guardian_client import GUARDIAN
from cuggino.processes.namespace import Namespace, StatusPipe, namespaces_can_be_ended
from cuggino.processes.process_tree import COOKIE, Birth, Ladder, ProcessTree, fork_count
from cuggino.processes.program_input import OpenInput
from cuggino.sandbox import Enclosure

PIPE_SIZE = 512 * 1024
"""Bytes that a program can write before it waits for its reader."""
REAP_LIMIT = 1.0
"""Seconds to wait for the exit status of a child that SIGKILL could not end."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """The arguments of `process_lines`."""

    argv: tuple[str, ...]
    cwd: str | None
    env: Mapping[str, str] | None
    stdin: bytes | OpenInput | None
    merge_stderr: bool = False
    keep_ends: bool = False
    whole: bool = False
    """Pass the output on in one piece, at the end."""
    sweep: bool = True
    max_line: int = 64 * 1024 * 1024
    stderr_tail: int = 64 * 1024
    grace: float = 2.0
    enclosure: Enclosure | None = None

    @property
    def argv0(self) -> str:
        return self.argv[0]

    @property
    def open_input(self) -> OpenInput | None:
        """The input that is written while the process runs."""
        return self.stdin if isinstance(self.stdin, OpenInput) else None

    @property
    def namespace(self) -> Enclosure | None:
        """The enclosure, if killing its namespace ends the whole process tree; else None."""
        enclosure = self.enclosure
        if enclosure is None or not (enclosure.namespace and enclosure.reports):
            return None
        return enclosure if namespaces_can_be_ended() else None

    def spawn(self) -> Child:
        """Start the process as the leader of its own session and group.

        Raises SpawnFailed if the program, the folder or the input cannot be used.
        """
        env = current_environment() if self.env is None else dict(self.env)
        if self.enclosure is not None:
            env = self.enclosure.environment(env)
        if (namespace := self.namespace) is not None:
            return self._spawn_in_namespace(namespace, env)
        cookie = GUARDIAN.cookie()
        if self.sweep:
            env[COOKIE] = cookie
        forks = fork_count() if self.sweep else 0
        argv = self.argv if self.enclosure is None else self.enclosure.command(self.argv)
        process = self._start(argv, env)
        if self.sweep:
            tree = ProcessTree([process.pid], cookie, birth=Birth(process.pid, forks))
        else:
            tree = ProcessTree([process.pid])  # only groups, of which all are looked at quickly
        return GuardedChild(process, tree)

    def _spawn_in_namespace(self, enclosure: Enclosure, env: dict[str, str]) -> Child:
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
            process = self._start(argv, env, status.write_end)
        except BaseException:
            status.close()
            raise
        try:
            return EnclosedChild(process, Namespace(process.pid, status))
        except BaseException:  # it could not be watched, and was killed
            process.communicate()
            status.close()
            raise

    def _start(
        self, argv: Sequence[str], env: dict[str, str], *inherited: int
    ) -> subprocess.Popen[bytes]:
        try:
            if self.enclosure is not None:
                check_program(self.argv0, cwd=self.cwd, env=env)
            with self._input() as source:
                process = subprocess.Popen(
                    argv,
                    bufsize=0,
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if self.merge_stderr else subprocess.PIPE,
                    cwd=self.cwd,
                    env=env,
                    start_new_session=True,
                    pass_fds=inherited,
                )
        except OSError as error:
            if self.cwd is not None and error.filename == self.cwd:
                error = OSError(error.errno, f"{error.strerror}: {self.cwd}")
            raise SpawnFailed(self.argv0, error) from error
        except ValueError as error:  # a NUL in an argument or the environment
            raise SpawnFailed(self.argv0, OSError(EINVAL, str(error))) from error
        _enlarge(process.stdout)
        return process

    def _input(self) -> IO[bytes]:
        """Return standard input as a file, so that a child that never reads it blocks nothing."""
        if isinstance(self.stdin, OpenInput):
            return self.stdin.take()
        if self.stdin is None:
            return open(os.devnull, "rb")  # noqa: PTH123 - os.devnull is a name, not a place
        try:
            source = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        except OSError as error:  # name the folder, which the caller did not choose
            place = tempfile.gettempdir()
            raise OSError(error.errno, f"{error.strerror}: {place} (TMPDIR)") from error
        try:
            source.write(self.stdin)
            source.seek(0)
        except OSError:
            source.close()
            raise
        return source


class Tree(Protocol):
    """The processes that a child has started, itself included."""

    def ending(self, ladder: Ladder) -> Iterator[float]:
        """Terminate all of them; yield the seconds to wait before the next step."""


class Child:
    """A started process: its pipes, its tree, its exit.

    It stays a zombie until `close`: until it is reaped, its process and group id are not reused.
    """

    def __init__(self, process: subprocess.Popen[bytes], tree: Tree) -> None:
        self._process = process
        self._tree = tree
        self.pid = process.pid
        self.exit = Exit(process.pid)
        self.stdout = _pipe(process.stdout)
        self.stderr = None if process.stderr is None else _pipe(process.stderr)
        self.pipes = tuple(fd for fd in (self.stdout, self.stderr) if fd is not None)

    def ending(self, ladder: Ladder) -> Iterator[float]:
        """Terminate the whole tree, see `ProcessTree.ending`."""
        return self._tree.ending(ladder)

    def close(self) -> int | None:
        """Reap the process, close all descriptors and return the exit code, None if it is stuck."""
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self.exit.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=REAP_LIMIT)
        return self._process.returncode


class GuardedChild(Child):
    """A child that the guardian terminates if this Python process dies."""

    def __init__(self, process: subprocess.Popen[bytes], tree: Tree) -> None:
        super().__init__(process, tree)
        # If this Python process is killed before this line, the guardian finds the child by its
        # cookie, unless `sweep` is off.
        GUARDIAN.add(self.pid)

    def close(self) -> int | None:
        """Reap it as `Child.close` does."""
        GUARDIAN.remove(self.pid)
        return super().close()


class EnclosedChild(Child):
    """A program in a namespace that the kernel ends if this Python process dies."""

    def __init__(self, process: subprocess.Popen[bytes], namespace: Namespace) -> None:
        super().__init__(process, namespace)
        self._namespace = namespace

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


def _enlarge(pipe: IO[bytes] | None) -> None:
    """Enlarge the pipe, so that a program with much output is read in fewer turns (Linux)."""
    resize = getattr(fcntl, "F_SETPIPE_SZ", None)
    if pipe is not None and resize is not None:
        with suppress(OSError):  # this user's pipes hold the most already
            fcntl.fcntl(pipe, resize, PIPE_SIZE)


def _pipe(stream: IO[bytes] | None) -> int:
    assert stream is not None
    return stream.fileno()
