"""Markers that end a review."""

from cuggino.events.marker import LlmTerminalMarkerEvent


class Approved(LlmTerminalMarkerEvent):
    """The reviewer approves: the work matches the specification."""


class RequestChanges(LlmTerminalMarkerEvent):
    """The reviewer requests changes."""
