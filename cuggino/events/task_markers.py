"""Markers that end the work on a task."""

from cuggino.events.marker import LlmTerminalMarkerEvent


class Progress(LlmTerminalMarkerEvent):
    """One task is done and more remain."""


class Done(LlmTerminalMarkerEvent):
    """All tasks of the plan are done."""


class NoMoreWork(LlmTerminalMarkerEvent):
    """There is nothing left to do; treated as `Done` without a commit."""
