"""Commands from a person to a run, as they arrive."""

from __future__ import annotations

from reactivex import Observable, abc
from reactivex.disposable import SerialDisposable

from cuggino.events import ControlEvent
from cuggino.operators import managed
from cuggino.operators.managed import Subscription
from cuggino.operators.scheduler import serial
from cuggino.storage import ControlFolder

PERIOD = 0.5
"""Seconds between polls of the folder."""
_QUIET, _SLOWER = 600, 4
"""Consecutive polls without a command after which the period is longer, and by what factor."""


def control_commands(folder: ControlFolder, *, period: float = PERIOD) -> Observable[ControlEvent]:
    """Emit the commands in the folder: existing ones at once, then new ones as they arrive.

    The folder is polled every `period` seconds, and a quarter as often after five quiet minutes:
    listing an empty folder is cheaper than watching it, and is most of the cost of a run that waits
    for hours. A file that is not a command from the user is emitted as `ControlIgnored`. Never
    completes.
    """

    def subscribe(
        observer: Subscription[ControlEvent], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        lane, seen, next_look, quiet = serial(scheduler), set[str](), SerialDisposable(), 0

        def look(*_: object) -> None:
            nonlocal quiet
            commands = folder.new(seen)
            quiet = 0 if commands else quiet + 1
            for command in commands:
                observer.on_next(command)
            if not next_look.is_disposed:
                pause = period if quiet < _QUIET else period * _SLOWER
                next_look.disposable = lane.schedule_relative(pause, look)

        look()
        return next_look

    return managed(subscribe)
