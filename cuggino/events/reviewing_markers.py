"""Markers of the reviewing agent and the audit agent."""

from cuggino.events.marker import LlmMarkerEvent, LlmTerminalMarkerEvent


class Approved(LlmTerminalMarkerEvent):
    """The reviewer approves: the work matches the specification."""


class RequestChanges(LlmTerminalMarkerEvent):
    """The reviewer requests changes."""


class ToBeDiscussed(LlmMarkerEvent):
    """A finding of the audit agent."""
