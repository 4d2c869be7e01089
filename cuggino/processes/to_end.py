"""`process_to_end`: a short command that must not be interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

from cuggino.errors import SpawnFailed
from cuggino.processes.exits import Exit, when_ended
from cuggino.processes.reading_lane import reading_lane


class Ended(NamedTuple):
    """The exit code of a program (negative: killed by that signal) and all that it printed."""

    code: int
    output: bytes


def process_to_end(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], patience: float = 60.0
) -> Observable[Ended]:
    """Run a command that must not be interrupted halfway, and emit how it ended.

    Disposal waits for the command to exit, and kills it only after `patience` seconds. If the
    Python process dies, the command still runs to its end. No exit code is an error.

    Errors: `SpawnFailed`.
    """

    def subscribe(
        observer: abc.ObserverBase[Ended], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        running = _Running(tuple(argv), cwd, dict(env), patience, observer, scheduler)
        running.start()
        return Disposable(running.dispose)

    return Observable(subscribe)


class _Running:
    """The command of one subscription.

    It is started and watched on a lane; a thread that disposes of it waits for it.
    """

    def __init__(
        self,
        argv: tuple[str, ...],
        cwd: Path,
        env: dict[str, str],
        patience: float,
        observer: abc.ObserverBase[Ended],
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        self._spawn = partial(_Command, argv, cwd, env)
        self._argv0 = argv[0]
        self._patience = patience
        self._observer = observer
        self._lane, self._across, self._release = reading_lane(scheduler, f"cuggino-{argv[0]}")
        self._turn = threading.Lock()
        """Held to start the command, and to wait for it and reap it."""
        self._command: _Command | None = None
        self._watch = SerialDisposable()
        self._is_closed = False

    def start(self) -> None:
        try:
            self._lane.schedule(self._begin)
        except BaseException:
            self._release()
            raise

    def dispose(self) -> None:
        self._is_closed = True
        with self._turn:
            self._watch.dispose()
            if self._command is not None:
                self._command.end(self._patience)
        self._release()

    # -- on the lane that watches it

    def _begin(self, *_: object) -> None:
        with self._turn:
            if self._is_closed:
                return
            failure: Exception | None = None
            try:
                self._command = self._spawn()
                self._watch.disposable = when_ended(self._command.exit, self._lane, self._reap)
            except OSError as error:
                failure = SpawnFailed(self._argv0, error)
            except Exception as error:  # a defect: report it rather than hang
                failure = error
        if failure is not None:
            self._post(failure)

    def _reap(self) -> None:
        if not self._turn.acquire(blocking=False):
            return  # another thread disposes of it
        try:
            if self._is_closed or self._command is None:
                return
            ended = self._command.result()
        finally:
            self._turn.release()
        self._post(ended)

    def _post(self, ended: Ended | Exception) -> None:
        if self._across is None:
            self._deliver(ended)
            return
        with suppress(Exception):  # the scheduler is closed
            self._across.schedule(lambda *_: self._deliver(ended))
        self._release()

    # -- on the subscription's scheduler

    def _deliver(self, ended: Ended | Exception) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if isinstance(ended, Exception):
                self._observer.on_error(ended)
                return
            self._observer.on_next(ended)
            self._observer.on_completed()
        finally:
            self._release()


class _Command:
    """A running command; its output goes to a file, so that it never waits for a reader."""

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the command
        try:
            self._process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            self._output.close()
            raise
        self.exit = Exit(self._process.pid)

    def end(self, patience: float) -> None:
        """Wait for the exit, and kill its process group after `patience` seconds."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._close()

    def result(self) -> Ended:
        """Reap a command that has ended, and return its exit code and output."""
        try:
            code = self._process.wait()
            self._output.seek(0)
            return Ended(code, self._output.read())
        finally:
            self._close()

    def _close(self) -> None:
        self._process.wait()
        self.exit.close()
        self._output.close()
