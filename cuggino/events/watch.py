"""Events of the watch (CUG-022)."""

from __future__ import annotations

from typing import TypeAlias

from cuggino.events.base import Event, category_guard
from cuggino.events.loop import LoopEvent


class WatchLoopEvent(Event, category=True):
    """Category: progress of the watch."""


class WatchSpecIssueWaiting(WatchLoopEvent):
    """Spec issues are open; the watch waits until a person has resolved them."""


class WatchBacklogWaiting(WatchLoopEvent):
    """The backlog is empty; the watch waits for an item."""


class WatchProcessingItem(WatchLoopEvent):
    """The coding loop starts on a backlog item."""

    filename: str
    title: str = ""
    """The heading of the item; empty in journals of older versions."""
    position: int = 0
    """Its place among all items since the watch began, from 1; 0 if unknown."""
    total: int = 0
    """Items that are done, at work or waiting; 0 if unknown."""


class WatchItemCompleted(WatchLoopEvent):
    """A backlog item is finished and was archived."""

    filename: str


class WatchItemRetained(WatchLoopEvent):
    """A backlog item was changed while it was processed, and stays in the backlog."""

    filename: str


class WatchItemRetry(WatchLoopEvent):
    """Work on a backlog item failed; it is retried after a pause."""

    filename: str
    message: str
    attempt: int
    """The failed attempt, from 1."""
    max_attempts: int
    retry_in: float
    """Seconds until the next attempt."""
    counted: bool = True
    """False after a usage limit, which does not count as an attempt."""
    login: bool = False
    """A person has to log in, and is told so here for the first time; nothing else is tried."""
    review: str = ""
    """After a stalled run, which is repeated once: the findings, for the next one."""


class WatchItemParked(WatchLoopEvent):
    """A backlog item was moved to `.cuggino/parked/`, with the reason."""

    filename: str
    reason: str


class WatchItemSkipped(WatchLoopEvent):
    """A file in the backlog is not a usable item; it is left there."""

    filename: str
    reason: str


class WatchAuditStarted(WatchLoopEvent):
    """The audit agent starts while the watch is idle."""


class WatchAuditEnded(WatchLoopEvent):
    """The audit agent has ended."""


class WatchAuditInterrupted(WatchLoopEvent):
    """The audit agent was terminated because work arrived."""


class WatchAuditFailed(WatchLoopEvent):
    """The audit agent failed; the watch continues."""

    message: str


class WatchPolling(WatchLoopEvent):
    """A folder does not report changes and is polled instead."""

    folder: str
    reason: str


class NotificationFailed(WatchLoopEvent):
    """A notification failed; reported once, and the run or watch continues."""

    message: str


class WatchTbdItemFound(WatchLoopEvent):
    """A finding of the audit agent was stored."""

    content: str
    filename: str


WatchEvent: TypeAlias = LoopEvent | WatchLoopEvent
"""The events of the watch."""

is_watch_loop_event = category_guard(WatchLoopEvent)
