"""Markers of the planning agent; each role may emit `SpecIssue`."""

from cuggino.events.marker import LlmTerminalMarkerEvent


class SpecIssue(LlmTerminalMarkerEvent):
    """The specification is unclear or contradicts itself; a person has to decide."""


class PlanComplete(LlmTerminalMarkerEvent):
    """The plan is complete."""
