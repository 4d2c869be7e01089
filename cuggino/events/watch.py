"""What the watch says about its own course (CUG-022)."""

from __future__ import annotations

from cuggino.events.base import Event


class WatchLoopEvent(Event, category=True):
    """Category: the watch moved."""


class WatchSpecIssueWaiting(WatchLoopEvent):
    """Spec issues are open; the watch waits until a person has resolved them."""


class WatchBacklogWaiting(WatchLoopEvent):
    """The backlog is empty; the watch waits for an item."""


class WatchProcessingItem(WatchLoopEvent):
    """A backlog item is taken; the coding loop runs on it."""

    filename: str


class WatchItemCompleted(WatchLoopEvent):
    """A backlog item is finished and has left the backlog."""

    filename: str


class WatchItemRetained(WatchLoopEvent):
    """A backlog item was changed while it was worked on, and stays in the backlog."""

    filename: str


class WatchAuditStarted(WatchLoopEvent):
    """The audit agent starts, in idle time."""


class WatchAuditEnded(WatchLoopEvent):
    """The audit agent ended by itself."""


class WatchAuditInterrupted(WatchLoopEvent):
    """Work arrived: the audit agent was ended."""


class WatchTbdItemFound(WatchLoopEvent):
    """A finding of the audit agent was stored."""

    content: str
    filename: str
