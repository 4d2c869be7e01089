"""The journal of a watch: what it did with its items, and what all its agents took."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from cuggino.domain.attempts import Attempts
from cuggino.events import (
    Event,
    LoopSpecIssue,
    LoopTerminalEvent,
    MessageDelta,
    PingEvent,
    PolicyEvent,
    RunResumed,
    RunStarted,
    SessionEnded,
    UsageUpdate,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchProcessingItem,
)
from cuggino.loops.options import WatchRunOptions
from cuggino.operators import Recorded
from cuggino.storage import Journal, JournalFile, Workspace, new_run_id

ITEM = "item"
"""The name of the stage that is a run of its own, with its own journal."""


class WatchRecording:
    """Writes what a watch does into its journal. Implements `cuggino.operators.Recorder`.

    A watch looks at its folders anew each time, so no stage is fed back. Of the runs of its items
    it keeps the endings and what they took; the rest is in their own journals.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._stage = ""
        self.last: Any = None

    def replay(self, name: str) -> Recorded | None:
        self._stage = name
        return None

    def started(self, name: str, *, at: datetime) -> None: ...

    def event(self, event: Event, *, staged: bool, at: datetime) -> bool:
        self.last = event
        stage = self._stage if staged else None
        if stage == ITEM:
            wanted = isinstance(
                event, PolicyEvent | SessionEnded | UsageUpdate | LoopTerminalEvent
            ) and not isinstance(event, RunResumed)
        else:
            wanted = not isinstance(event, PingEvent | MessageDelta)
        if wanted:
            self._journal.append(event, at=at, stage=stage)
        return True

    def finished(self, outcome: Any, *, at: datetime) -> None: ...

    def failed(self, error: Exception) -> None: ...


def open_watch_journal(
    workspace: Workspace,
    options: WatchRunOptions,
    resume: JournalFile | None,
    *,
    at: datetime,
) -> Journal:
    """A new journal, or that of the watch that was killed."""
    if resume is not None:
        return Journal.open(workspace.journal / f"{resume.run_id}.jsonl")
    kept = options.model_dump(mode="json", exclude={"cwd", "agent"})
    started = RunStarted(
        run_id=new_run_id(),
        kind="watch",
        command="cuggino watch",
        agent=options.agent,
        options=kept,
    )
    return Journal.create(workspace.journal, started, at=at)


def restore_attempts(attempts: Attempts, killed: JournalFile) -> None:
    """The failures of the items, as the watch that was killed had counted them."""
    for entry in killed.entries:
        match entry.event:
            case WatchItemRetry(counted=True) as retry:
                due = entry.at + timedelta(seconds=retry.retry_in)
                attempts.restore(retry.filename, retry.attempt, due)
            case WatchItemCompleted(filename=name) | WatchItemParked(filename=name):
                attempts.forget(name)
            case _:
                pass


def settled_run(watch: JournalFile) -> tuple[str, LoopTerminalEvent] | None:
    """The item whose run had come to its end when the watch ended, before it acted on that.

    Gives its name and that end; None when there is no such item, or it has to be run again.
    """
    item, last = "", None
    for entry in watch.entries:
        match entry.event:
            case WatchProcessingItem(filename=name):
                item, last = name, last if name == item else None
            case LoopTerminalEvent() as end:
                last = end
            case WatchItemCompleted() | WatchItemRetained() | WatchItemRetry() | WatchItemParked():
                item, last = "", None
            case _:
                pass
    return None if last is None or isinstance(last, LoopSpecIssue) else (item, last)
