"""The journal of a watch: the outcomes of its items, and the cost of all agents."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from cuggino.domain import Attempts, attempted_item
from cuggino.errors import StorageError
from cuggino.events import (
    CheckFlaky,
    CommandOutputEvent,
    CommandStartedEvent,
    Event,
    LoopSpecIssue,
    LoopTerminalEvent,
    MessageDelta,
    PingEvent,
    RunContinued,
    RunEnded,
    RunResumed,
    SessionEnded,
    Steered,
    SupervisionEvent,
    UsageUpdate,
    WatchAuditStarted,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchLanded,
    WatchLanding,
    WatchLoopEvent,
    WatchProcessingItem,
    WatchProposed,
    WatchSentBack,
    checked_of,
)
from cuggino.loops.frame.resuming import latest_watch
from cuggino.operators.flow import Recorded
from cuggino.storage import (
    Backlog,
    Journal,
    JournalFile,
    Workspace,
    list_journals,
    scan_journal,
)
from cuggino.storage.journal import is_concluded, last_entry

ITEM = "item"
"""The name of the stage whose events, but for the watch's own, are those of a separate run."""

SLOTS = "slots"
"""The name of the stage in which several such runs are at work, and land."""


_OF_RUNS = (
    SupervisionEvent | SessionEnded | Steered | UsageUpdate | LoopTerminalEvent | WatchLoopEvent
)
_AT_GATE = CommandStartedEvent | CommandOutputEvent | CheckFlaky


class WatchRecorder:
    """The recorder of a watch.

    A watch reads its folders again each time, so no stage is replayed. Of the runs of its items it
    records results, costs and messages from a person; the rest is in their own journals. The setup
    and check of a landing are only in this one. Of several attempts at an item it records what is
    about the item as a whole; with `whole` these attempts are what it is about.
    """

    def __init__(
        self, journal: Journal, _resumed: JournalFile | None = None, *, whole: bool = False
    ) -> None:
        self._journal = journal
        self._whole = whole
        self._stage = ""
        self._begun: set[str] = set()
        self._landing = ""
        """The item that is being landed."""
        self.last: Any = None

    def replay(self, name: str) -> Recorded | None:
        self._stage = name
        return None

    def started(self, name: str, *, at: datetime) -> None: ...

    def event(self, event: Event, *, staged: bool, at: datetime) -> bool:
        self.last = event
        stage = self._stage if staged else None
        if stage in (ITEM, SLOTS) and (owner := self._owner(event.item)) is not None:
            wanted = isinstance(event, SupervisionEvent | SessionEnded | Steered | UsageUpdate)
            event = event.model_copy(update={"item": owner if stage == SLOTS else None})
        elif stage in (ITEM, SLOTS):
            wanted = isinstance(event, _OF_RUNS) and not isinstance(event, RunResumed)
            wanted = wanted or (isinstance(event, _AT_GATE) and event.item == self._landing)
        else:
            wanted = not isinstance(event, PingEvent | MessageDelta)
        if wanted:
            is_of_run = stage != ITEM or not isinstance(event, WatchLoopEvent)
            self._journal.append(event, at=at, stage=stage if is_of_run else None)
        match event:
            case WatchProcessingItem(filename=name):
                self._begun.add(name)
            case WatchLanding(filename=name):
                self._landing = name
            case (
                WatchLanded(filename=name)
                | WatchProposed(filename=name)
                | WatchSentBack(filename=name)
            ) if name == self._landing:
                self._landing = ""
            case _:
                pass
        return True

    def _owner(self, name: str | None) -> str | None:
        """Return the item at which this is one of several attempts; None for any other name."""
        owner = attempted_item(name or "")
        return owner if owner != name and owner in self._begun and not self._whole else None

    def finished(self, outcome: Any, *, at: datetime) -> None: ...

    def failed(self, error: Exception) -> None: ...


def conclude_runs(workspace: Workspace) -> None:
    """Record the end of runs that were killed between their result and their last entry.

    A run whose item is still in the backlog, unchanged, is left alone: resuming it records its end.
    A spec issue is not, as its item waits for a person.
    """
    for path in list_journals(workspace.journal):
        with suppress(OSError, StorageError):  # a journal that cannot be read is left as it is
            if is_concluded(path):
                continue
            last = last_entry(path)
            if last is None or not isinstance(last.event, LoopTerminalEvent | RunContinued):
                continue
            run = scan_journal(path)
            for entry in run.entries.only(()):  # the first and the last entry of each process
                last = last if isinstance(entry.event, RunContinued) else entry
            if run.started.item is None or not isinstance(last.event, LoopTerminalEvent):
                continue
            name, _, digest = run.started.item.rpartition(" ")
            if isinstance(last.event, LoopSpecIssue) or Backlog(workspace).digest(name) != digest:
                journal = Journal.open(path)
                ended = RunEnded(state=last.event.state, checked=checked_of(last.event))
                journal.append(ended, at=last.at)
                journal.close()


def last_audit(workspace: Workspace) -> datetime | None:
    """Return when the last audit of the latest watch began; None without one."""
    latest = latest_watch(workspace)
    entries = latest.entries.only(("WatchAuditStarted",)) if latest is not None else ()
    audits = [entry.at for entry in entries if isinstance(entry.event, WatchAuditStarted)]
    return max(audits, default=None)


def restore_attempts(attempts: Attempts, killed: JournalFile) -> None:
    """Restore the failures of the items as the killed watch had counted them."""
    for entry in killed.entries:
        match entry.event:
            case WatchItemRetry(counted=True) as retry:
                due = entry.at + timedelta(seconds=retry.retry_in)
                attempts.restore(retry.filename, retry.attempt, due)
            case WatchItemRetry(filename=name, review=review) if review:
                attempts.stalled(name, review)
            case WatchItemRetry(counted=False):
                attempts.restore_limit()
            case WatchItemCompleted(filename=name):
                attempts.succeeded(name)
                attempts.forget(name)
            case WatchItemParked(filename=name):
                attempts.forget(name)
            case _:
                pass


def settled_run(watch: JournalFile) -> tuple[str, LoopTerminalEvent] | None:
    """Return the item whose run had ended when the watch ended, before it was put away.

    Returns its name and result, or None without such an item, or if it must be run again.
    """
    item, last = "", None
    for entry in watch.entries:
        match entry.event:
            case WatchProcessingItem(filename=name, slot=0):
                item, last = name, last if name == item else None
            case LoopTerminalEvent(item=None) as end:
                last = end
            case WatchItemCompleted() | WatchItemRetained() | WatchItemRetry() | WatchItemParked():
                item, last = "", None
            case _:
                pass
    return None if last is None or isinstance(last, LoopSpecIssue) else (item, last)
