"""Commands from a person to a run, as they arrive."""

from __future__ import annotations

from typing import Any

from reactivex import Observable, abc
from reactivex.disposable import SerialDisposable

from cuggino.events import ControlEvent
from cuggino.operators import serial
from cuggino.storage import ControlFolder

PERIOD = 0.5
"""Seconds between polls of the folder."""


def control_commands(folder: ControlFolder, *, period: float = PERIOD) -> Observable[ControlEvent]:
    """Emit the commands in the folder: existing ones at once, then new ones as they arrive.

    The folder is polled every `period` seconds: listing an empty one is cheaper than watching it.
    A file that is not a command from the user is emitted as `ControlIgnored`. Never completes.
    """

    def subscribe(
        observer: abc.ObserverBase[ControlEvent], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        here, seen, timer = serial(scheduler), set[str](), SerialDisposable()

        def look(_scheduler: abc.SchedulerBase | None = None, _state: Any = None) -> None:
            for command in folder.new(seen):
                observer.on_next(command)
            if not timer.is_disposed:
                timer.disposable = here.schedule_relative(period, look)

        look()
        return timer

    return Observable(subscribe)
