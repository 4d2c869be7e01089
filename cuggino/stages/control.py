"""Commands from a person to a run, as they arrive."""

from __future__ import annotations

from reactivex import Observable

from cuggino.domain import Schedule
from cuggino.events import ControlEvent
from cuggino.operators.flow import Flow, emit, flow, forward
from cuggino.operators.repeat_on import repeat_on
from cuggino.storage import ControlFolder

PERIOD = 0.5
"""Seconds between polls of the folder."""


def control_commands(folder: ControlFolder, *, period: float = PERIOD) -> Observable[ControlEvent]:
    """Emit the commands in the folder: existing ones at once, then new ones as they arrive.

    The folder is polled every `period` seconds: listing an empty one is cheaper than watching it.
    A file that is not a command from the user is emitted as `ControlIgnored`. Never completes.
    """

    def story() -> Flow[None]:
        seen = set[str]()
        look: Observable[ControlEvent] = flow(lambda: emit(*folder.new(seen)))
        yield from forward(look.pipe(repeat_on(Schedule.constant(period))))

    return flow(story)
