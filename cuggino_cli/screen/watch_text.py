"""Lines of the watch."""

from __future__ import annotations

from cuggino.events import (
    NotificationFailed,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditInterrupted,
    WatchAuditStarted,
    WatchBacklogWaiting,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchItemSkipped,
    WatchLoopEvent,
    WatchPolling,
    WatchProcessingItem,
    WatchSpecIssueWaiting,
    WatchTbdItemFound,
)
from cuggino_cli.screen.fragments import Shown, always, calling
from cuggino_cli.screen.text import format_pause


def watch_shown(event: WatchLoopEvent) -> Shown | None:
    """Return the line of the event; None for an unknown one."""
    match event:
        case WatchBacklogWaiting():
            return calling("[Watch] Backlog empty, waiting for new items...")
        case WatchSpecIssueWaiting():
            return calling("[Watch] Spec issue detected, waiting for resolution...")
        case WatchProcessingItem(filename=filename):
            return always("watch", f"[Watch] Processing: {filename}")
        case WatchItemCompleted(filename=filename):
            return always("watch", f"[Watch] Completed: {filename}")
        case WatchItemRetained(filename=filename):
            retained = f"[Watch] Retained: {filename} (content changed during loop)"
            return always("watch", retained)
        case WatchItemRetry(login=True, message=message, retry_in=pause):
            again = f"tried again every {format_pause(pause)}, or when the watch is restarted"
            return calling(f"[Watch] Log in to continue ({again}): {message}", "problem")
        case WatchItemRetry():
            return always("warning", _retry(event))
        case WatchItemParked(filename=filename, reason=reason):
            return calling(f"[Watch] Parked: {filename}: {reason}", "problem")
        case WatchItemSkipped(filename=filename, reason=reason):
            return always("warning", f"[Watch] Skipped: {filename}: {reason}")
        case WatchPolling(folder=folder, reason=reason):
            return always("warning", f"[Watch] Polling {folder}: {reason}")
        case NotificationFailed(message=message):
            return always("warning", f"[Watch] Notification failed: {message}")
        case WatchAuditFailed(message=message):
            return always("warning", f"[Watch] Audit agent failed: {message}")
        case WatchAuditStarted():
            return always("audit", "[Watch] Starting audit agent...")
        case WatchAuditEnded():
            return always("audit", "[Watch] Audit agent finished.")
        case WatchAuditInterrupted():
            return always("audit", "[Watch] Audit agent interrupted, work arrived.")
        case WatchTbdItemFound(filename=filename):
            return always("finding", f"[Watch] TBD item found: {filename}")
        case _:
            return None


def _retry(event: WatchItemRetry) -> str:
    if event.review:
        return f"[Watch] Stalled: {event.filename}, once more with its findings: {event.message}"
    attempt = f"attempt {event.attempt} of {event.max_attempts}"
    again = f"again in {format_pause(event.retry_in)}"
    return f"[Watch] Failed: {event.filename} ({attempt}, {again}): {event.message}"
