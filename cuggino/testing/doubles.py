"""Doubles for the system: commands that are not run, folders that are polled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from reactivex import Observable, abc, concat, from_iterable, operators as ops, throw, timer

from cuggino.errors import ProcessFailed
from cuggino.events import ControlEvent
from cuggino.stages import Shell, shell_lines
from cuggino.storage import ControlFolder
from cuggino.testing.clock import VirtualClock, seconds


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The output of a command, its exit code and its duration."""

    output: str = ""
    exit_code: int = 0
    takes: float | str | timedelta = 0.0
    """Virtual time, such as 90 or `1m30s`."""


class Commands:
    """A shell with prepared results for some command lines; all others run for real.

    A command with several results returns one per run; the last one repeats.
    """

    def __init__(
        self,
        results: Mapping[str, CommandResult | Sequence[CommandResult]],
        *,
        shell: Shell = shell_lines,
    ) -> None:
        self.ran: list[str] = []
        """Every command line given to the shell."""
        self._shell = shell
        self._results: dict[str, Iterator[CommandResult]] = {}
        for command, given in results.items():
            series = (given,) if isinstance(given, CommandResult) else tuple(given)
            if not series:
                raise ValueError(f"{command!r} has no result")
            self._results[command] = chain(series, repeat(series[-1]))

    def __call__(self, command: str, cwd: Path) -> Observable[bytes]:
        """Run the command line in the folder; implements `Shell`."""

        def subscribe(
            observer: abc.ObserverBase[bytes], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            self.ran.append(command)
            known = self._results.get(command)
            stream = self._shell(command, cwd) if known is None else _printed(next(known))
            return stream.subscribe(observer, scheduler=scheduler)

        return Observable(subscribe)


def _printed(result: CommandResult) -> Observable[bytes]:
    waited: Observable[Any] = timer(seconds(result.takes)).pipe(ops.ignore_elements())
    lines = from_iterable(result.output.encode().splitlines(keepends=True))
    if result.exit_code == 0:
        return concat(waited, lines)
    return concat(waited, lines, throw(ProcessFailed("sh", result.exit_code, "")))


def changes_seen_by(clock: VirtualClock) -> Callable[[Path], Observable[object]]:
    """Return a double for `folder_changes` that emits a folder after every change in it.

    It checks the folder whenever virtual time is about to advance, so it misses nothing and waits
    for nothing.
    """

    def changes(folder: Path) -> Observable[object]:
        def subscribe(
            observer: abc.ObserverBase[object], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            last = _content(folder)

            def look() -> None:
                nonlocal last
                if (now := _content(folder)) != last:
                    last = now
                    clock.schedule(lambda *_: observer.on_next(folder))

            return clock.before_jumps(look)

        return Observable(subscribe)

    return changes


def commands_seen_by(clock: VirtualClock, folder: ControlFolder) -> Observable[ControlEvent]:
    """Return a double of `control_commands`, which looks before virtual time advances."""

    def subscribe(
        observer: abc.ObserverBase[ControlEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        seen = set[str]()
        for command in folder.new(seen):
            observer.on_next(command)

        def look() -> None:
            for command in folder.new(seen):
                clock.schedule(lambda *_, command=command: observer.on_next(command))

        return clock.before_jumps(look)

    return Observable(subscribe)


def _content(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return a fingerprint of each entry; empty for a missing folder."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: _state(entry) for entry in entries}
    except OSError:
        return {}


def _state(entry: os.DirEntry[str]) -> tuple[int, ...]:
    try:
        stat = entry.stat()
    except OSError:  # it is gone, or a link to nothing
        return ()
    return (stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns)
