"""A session that runs: what it has said until now, and its end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil
from reactivex import Observable

from cuggino.events import LlmAgentEvent, Usage
from cuggino.operators import LoopScheduler
from cuggino.testing.conformance_acts import Outcome, Told
from cuggino.testing.leaks import is_guardian

_FILE_LIMIT = 100_000
_FILES = 200


class Running:
    """Subscribes to the stream on entering, on a lane of its own; disposes it on leaving.

    `told` and `taken` give what the model's service knows at the time. Seconds are those of a
    clock on the wall.
    """

    def __init__(
        self,
        stream: Observable[LlmAgentEvent],
        *,
        folder: Path,
        told: Callable[[], Sequence[Told] | None],
        taken: Callable[[], Usage | None],
        patience: float,
    ) -> None:
        self.events: list[LlmAgentEvent] = []
        self.error: Exception | None = None
        self.told = told
        self._stream = stream
        self._folder = folder
        self._taken = taken
        self._patience = patience
        self._left: tuple[str, ...] = ()
        self._ended = threading.Event()
        self._lane = LoopScheduler()
        self._before: frozenset[int] = frozenset()

    def __enter__(self) -> Running:
        self._before = frozenset(child_processes())
        self._subscription = self._stream.subscribe(
            self.events.append, self._fail, self._end, scheduler=self._lane
        )
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.dispose()
        self._lane.close()

    @property
    def has_ended(self) -> bool:
        """Whether the stream has completed, or failed."""
        return self._ended.is_set()

    def dispose(self) -> None:
        """End it now; returns when everything is released."""
        self._subscription.dispose()

    def rest(self) -> None:
        """Wait until what was on its way to the subscriber at this moment has arrived."""
        arrived = threading.Event()
        self._lane.schedule(lambda *_: arrived.set())
        assert arrived.wait(self._patience), "the lane of the session is held up"

    def until(self, what: Callable[[], bool], *, expected: str) -> None:
        """Wait until this is so; `expected` says it in words for the error."""
        deadline = time.monotonic() + self._patience
        while not what():
            waited = time.monotonic() < deadline and not self.has_ended
            assert waited or what(), f"{expected} did not come about: {self._said()}"
            self._ended.wait(0.05)

    def outcome(self) -> Outcome:
        """Wait for its end; gives what came of it."""
        in_time = self._ended.wait(self._patience)
        assert in_time, f"the session did not end in {self._patience:g} s: {self._said()}"
        told = self.told()
        return Outcome(
            events=tuple(self.events),
            error=self.error,
            files=_files(self._folder),
            left=self._left,
            told=None if told is None else tuple(told),
            taken=self._taken(),
        )

    def _said(self) -> str:
        return str([event.tag for event in list(self.events)][-20:]) + f", error: {self.error!r}"

    def _fail(self, error: Exception) -> None:
        self.error = error
        self._end()

    def _end(self) -> None:
        left = {pid: p for pid, p in child_processes().items() if pid not in self._before}
        self._left = tuple(f"{process.name()} ({pid})" for pid, process in left.items())
        self._ended.set()


def child_processes(*, direct: bool = False) -> dict[int, psutil.Process]:
    """The living children of this process, and theirs unless `direct`; without the guardian."""
    found = {}
    for process in psutil.Process().children(recursive=not direct):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and not is_guardian(process):
                found[process.pid] = process
    return found


def _files(folder: Path) -> Mapping[str, str]:
    """The small files, without those of folders whose name begins with a dot."""
    found: dict[str, str] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(place, name)
            with suppress(OSError):
                if len(found) < _FILES and file.stat().st_size <= _FILE_LIMIT:
                    text = file.read_text(encoding="utf-8", errors="replace")
                    found[file.relative_to(folder).as_posix()] = text
    return found
