"""Markers of the implementing agents."""

from cuggino.events.marker import LlmMarkerEvent, LlmTerminalMarkerEvent


class Note(LlmMarkerEvent):
    """A note for the agents that follow."""


class Progress(LlmTerminalMarkerEvent):
    """One task is done and more remain."""


class Done(LlmTerminalMarkerEvent):
    """All tasks of the plan are done."""


class NoMoreWork(LlmTerminalMarkerEvent):
    """There is nothing left to do; treated as `Done` without a commit."""
