"""`process_to_end`: a short command that must not be interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.errors import SpawnFailed
from cuggino.operators.scheduler import lane_of

_LOOK = 0.01
"""Seconds between checks that a command has been started."""


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
    def __init__(
        self,
        argv: tuple[str, ...],
        cwd: Path,
        env: dict[str, str],
        patience: float,
        observer: abc.ObserverBase[Ended],
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        self._argv, self._cwd, self._env = argv, cwd, env
        self._patience = patience
        self._observer = observer
        self._lane, self._close_lane = lane_of(scheduler)
        self._thread = threading.Thread(target=self._run, name=f"cuggino-{argv[0]}", daemon=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False

    def start(self) -> None:
        self._thread.start()

    def dispose(self) -> None:
        self._closed = True
        if threading.current_thread() is not self._thread:
            self._thread.join(self._patience)
            while self._thread.is_alive() and self._process is None:  # it is being started
                self._thread.join(_LOOK)
            process = self._process
            if self._thread.is_alive() and process is not None:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            self._thread.join()
        self._close_lane()

    def _run(self) -> None:
        ended: Ended | Exception
        try:
            ended = self._ended()
        except OSError as error:
            ended = SpawnFailed(self._argv[0], error)
        except Exception as error:  # a defect: report it rather than hang
            ended = error
        if not self._closed:
            with suppress(Exception):  # the scheduler is closed
                self._lane.schedule(lambda *_: self._deliver(ended))

    def _ended(self) -> Ended:
        with tempfile.TemporaryFile() as output:
            self._process = subprocess.Popen(
                self._argv,
                cwd=self._cwd,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            code = self._process.wait()
            output.seek(0)
            return Ended(code, output.read())

    def _deliver(self, ended: Ended | Exception) -> None:
        if self._closed:
            return
        self._closed = True
        self._thread.join()
        try:
            if isinstance(ended, Exception):
                self._observer.on_error(ended)
                return
            self._observer.on_next(ended)
            self._observer.on_completed()
        finally:
            self._close_lane()
