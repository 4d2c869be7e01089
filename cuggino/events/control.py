"""Commands of a person to a working run, and their effects.

The commands are events of one control stream (`Runtime.control`). A run records each command that
it receives, so its journal shows why it paused or stopped.
"""

from datetime import datetime

from cuggino.events.base import category_guard
from cuggino.events.supervision import SupervisionEvent


class ControlEvent(SupervisionEvent, category=True):
    """Category: commands of a person to a run, and their effects."""


class PauseAsked(ControlEvent):
    """A person asks the run to pause before its next agent session."""


class ContinueAsked(ControlEvent):
    """A person asks a paused run to continue."""


class StopAsked(ControlEvent):
    """A person asks the run to end before its next agent session; it can be resumed."""

    now: bool = False
    """End the running session at once, like Ctrl-C."""


class SkipAsked(ControlEvent):
    """A person asks the watch to stop work on an item, land none of it, and park it."""

    item: str | None = None
    """The name of the item's file; None for the only one at work."""


class SteerAsked(ControlEvent):
    """A person has a message for an agent: the running one, or else the next."""

    text: str
    item: str | None = None
    """The name of the item's file; None for the only one at work."""


class RunPaused(ControlEvent):
    """The run is paused until a person continues it, or until its hours begin."""

    until: datetime | None = None
    """When the hours begin in which the watch works; None if a person has asked for the pause."""


class PauseEnded(ControlEvent):
    """The run continues after a pause."""

    seconds: float
    """The duration of the pause."""


class ControlIgnored(ControlEvent):
    """A command was ignored."""

    source: str
    """The name of its file, or the command."""
    reason: str


is_control_event = category_guard(ControlEvent)
