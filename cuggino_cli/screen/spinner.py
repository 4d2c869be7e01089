"""The spinner, and the timer that animates it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from reactivex import abc
from reactivex.disposable import Disposable, SerialDisposable

from cuggino_cli.screen.terminal import Terminal
from cuggino_cli.screen.text import fit, format_duration

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PERIOD_S = 0.1


def spinner_line(index: int, elapsed_s: float, *, columns: int, left_s: float | None = None) -> str:
    """Return `⠹ Working... (12s)`, with the time from one second on (CUG-134).

    With `left_s` it is `⠹ Waiting... (2h 5m left)`. The line is cut short of the last column.
    """
    frame = _FRAMES[index % len(_FRAMES)]
    if left_s is not None:
        return fit(f"{frame} Waiting... ({format_duration(max(left_s, 0))} left)", columns)
    time = f" ({format_duration(elapsed_s)})" if abs(elapsed_s) >= 1 else ""
    return fit(f"{frame} Working...{time}", columns)


class Ticker:
    """A timer that draws ten times a second while it runs.

    Args:
        draw: called each time.
        scheduler: the lane on which everything else is printed.
        on_error: called once if `draw` raises; the timer has stopped by then.
    """

    def __init__(
        self,
        draw: Callable[[], None],
        scheduler: abc.SchedulerBase,
        *,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._draw = draw
        self._scheduler = scheduler
        self._on_error = on_error
        self._timer = SerialDisposable()
        self._running = False

    def start(self) -> None:
        """Start the timer, unless it runs; the first drawing is a tenth of a second from now."""
        if not self._running:
            self._running = True
            self._schedule()

    def stop(self) -> None:
        """Stop the timer; the drawing stays until the terminal is cleared."""
        self._running = False
        self._timer.disposable = Disposable()

    def _schedule(self) -> None:
        self._timer.disposable = self._scheduler.schedule_relative(_PERIOD_S, self._tick)

    def _tick(self, _scheduler: abc.SchedulerBase, _state: Any = None) -> None:
        try:
            self._draw()
        except Exception as error:
            self.stop()
            self._on_error(error)
        else:
            if self._running:
                self._schedule()


class Spinner:
    """The spinner of a terminal."""

    def __init__(
        self,
        terminal: Terminal,
        scheduler: abc.SchedulerBase,
        *,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._terminal = terminal
        self._scheduler = scheduler
        self._ticker = Ticker(self._draw, scheduler, on_error=on_error)
        self._index = 0
        self._since = scheduler.now
        self._until: datetime | None = None

    def start(self) -> None:
        """Start spinning."""
        self._ticker.start()

    def stop(self) -> None:
        """Stop spinning; the drawing stays until the terminal is cleared."""
        self._ticker.stop()

    def restart_time(self) -> None:
        self._since = self._scheduler.now
        self._until = None

    def count_down(self, seconds: float) -> None:
        """Display the rest of so many seconds, until `restart_time`."""
        self._until = self._scheduler.now + timedelta(seconds=seconds)

    def _draw(self) -> None:
        now, columns = self._scheduler.now, self._terminal.columns()
        elapsed = (now - self._since).total_seconds()
        left = None if self._until is None else (self._until - now).total_seconds()
        self._terminal.spin(spinner_line(self._index, elapsed, columns=columns, left_s=left))
        self._index += 1
