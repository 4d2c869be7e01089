"""What a person asks of a run while it works, and what comes of it.

The commands are events of one control stream (`Runtime.control`). A run records a command when it
hears it, so its journal tells who stopped it.
"""

from cuggino.events.base import category_guard
from cuggino.events.resumed import SupervisionEvent


class ControlEvent(SupervisionEvent, category=True):
    """Category: what a person asks of a run, and what comes of it."""


class PauseAsked(ControlEvent):
    """The run is to stand still before its next agent session."""


class ContinueAsked(ControlEvent):
    """The run is to continue after a pause."""


class StopAsked(ControlEvent):
    """The run is to end before its next agent session, so that it can be resumed."""

    now: bool = False
    """End the running session at once, like Ctrl-C."""


class SkipAsked(ControlEvent):
    """The watch is to end its work on an item at once, or to land none of it, and to park it."""

    item: str | None = None
    """The name of the item's file; None for the only one at work."""


class SteerAsked(ControlEvent):
    """An agent is to be told something: the running one, or else the next."""

    text: str
    item: str | None = None
    """The name of the item's file; None for the only one at work."""


class RunPaused(ControlEvent):
    """The run stands still until a person lets it continue."""


class PauseEnded(ControlEvent):
    """The run continues after a pause."""

    seconds: float
    """How long it stood still."""


class ControlIgnored(ControlEvent):
    """A command was ignored."""

    source: str
    """The name of its file, or the command."""
    reason: str


is_control_event = category_guard(ControlEvent)
