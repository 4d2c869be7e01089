"""`run_in_terminal`: a program that a person talks to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from errno import EPERM
from pathlib import Path
from types import FrameType

from cuggino.errors import SpawnFailed
from cuggino.processes.command import Confinement, check_program
from cuggino.processes.namespace import Namespace, NotStarted, StatusPipe, namespaces_can_be_ended

_LISTENING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Becomes the program, which gets the signal that its monitor ignores."""

_GRACE = 2.0
"""Seconds for a program in a namespace to end after SIGTERM."""


def run_in_terminal(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    enclosure: Confinement | None = None,
) -> int:
    """Run a program in this terminal until it ends, and return its exit code.

    Ctrl-C is for the program. It shares the process group, so that Ctrl-Z stops both and the shell
    resumes both.

    Raises:
        OSError: it cannot be started.
        SpawnFailed: it cannot be started in the enclosure.
    """
    with _handling_interrupts(_leave_to_the_program):
        if enclosure is None:
            return _wait(subprocess.Popen(argv, cwd=cwd, env=dict(env)))
        return _run_enclosed(argv, cwd=cwd, env=env, enclosure=enclosure)


def _run_enclosed(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], enclosure: Confinement
) -> int:
    whole = enclosure.environment(env)
    check_program(argv[0], cwd=os.fspath(cwd), env=whole)
    if enclosure.namespace and enclosure.reports and namespaces_can_be_ended():
        return _run_in_namespace(argv, cwd=cwd, env=whole, enclosure=enclosure)
    return _wait(subprocess.Popen(enclosure.command(argv), cwd=cwd, env=whole))


def _run_in_namespace(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], enclosure: Confinement
) -> int:
    """Run it with a monitor that ignores Ctrl-C, so that only the program handles it.

    It stays in this session, as a new one would have no terminal.
    """
    listening = (sys.executable, "-I", "-S", "-c", _LISTENING) if sys.executable else ()
    with closing(StatusPipe()) as status:
        words = enclosure.command(
            (*listening, *argv),
            status_fd=status.write_end,
            options=("--chdir", os.fspath(cwd.absolute())),
        )
        with _handling_interrupts(signal.SIG_IGN) if listening else nullcontext():
            process = subprocess.Popen(words, cwd=cwd, env=env, pass_fds=(status.write_end,))
            namespace = Namespace(process.pid, status)
        with closing(namespace):
            try:
                code = process.wait()
            finally:
                namespace.end(((signal.SIGTERM, _GRACE),))
                process.wait()
            try:
                ended = namespace.exit_code(code)
            except NotStarted:
                reason = OSError(EPERM, "the sandbox could not be set up")
                raise SpawnFailed(argv[0], reason) from None
            assert ended is not None, "the monitor has ended"
            return ended


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end; an exception terminates the program first."""
    with process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            raise


def _leave_to_the_program(*_: object) -> None:
    """Do nothing: the program gets the signal as well.

    A function is not inherited by the program, as `SIG_IGN` is.
    """


@contextmanager
def _handling_interrupts(
    handler: signal.Handlers | Callable[[int, FrameType | None], None],
) -> Iterator[None]:
    """Handle SIGINT in this way; only the main thread can change that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
