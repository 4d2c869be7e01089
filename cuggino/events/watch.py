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


class WatchItemRetry(WatchLoopEvent):
    """Work on a backlog item failed; it is tried again after a pause."""

    filename: str
    message: str
    attempt: int
    """The attempt that failed, from 1."""
    max_attempts: int
    retry_in: float
    """Seconds until the next attempt."""
    counted: bool = True
    """False after a usage limit, which costs no attempt."""


class WatchItemParked(WatchLoopEvent):
    """A backlog item was given up for now: it is in `.cuggino/parked/`, with the reason."""

    filename: str
    reason: str


class WatchItemSkipped(WatchLoopEvent):
    """Something in the backlog folder is no item that could be worked on; it stays there."""

    filename: str
    reason: str


class WatchAuditStarted(WatchLoopEvent):
    """The audit agent starts, in idle time."""


class WatchAuditEnded(WatchLoopEvent):
    """The audit agent ended by itself."""


class WatchAuditInterrupted(WatchLoopEvent):
    """Work arrived: the audit agent was ended."""


class WatchAuditFailed(WatchLoopEvent):
    """The audit agent failed; the watch goes on."""

    message: str


class WatchPolling(WatchLoopEvent):
    """A folder tells nothing of its changes: it is looked at now and then instead."""

    folder: str
    reason: str


class NotificationFailed(WatchLoopEvent):
    """A person could not be notified; said once, the watch goes on."""

    message: str


class WatchTbdItemFound(WatchLoopEvent):
    """A finding of the audit agent was stored."""

    content: str
    filename: str
