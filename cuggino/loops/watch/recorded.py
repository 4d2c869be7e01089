"""Unfinished work of earlier processes of a watch with slots, read from its journal."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuggino.domain import LandingQueue
from cuggino.events import (
    LoopApproved,
    LoopMaxIterations,
    LoopTerminalEvent,
    WatchCandidate,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchLanded,
    WatchLanding,
    WatchProcessingItem,
    WatchProposed,
    WatchSentBack,
)
from cuggino.loops.frame.resuming import latest_run_of
from cuggino.storage import Backlog, JournalFile, Workspace, list_journals, scan_journal

_TAGS = tuple(
    kind.__name__
    for kind in (
        *(LoopApproved, LoopMaxIterations),
        *(WatchCandidate, WatchItemCompleted, WatchItemParked, WatchItemRetained, WatchLanded),
        *(WatchLanding, WatchProcessingItem, WatchProposed, WatchSentBack),
    )
)


@dataclass(slots=True)
class ItemWork:
    """The recorded state of an item that was worked on."""

    item: str = ""
    """Its name and digest."""
    number: int = 0
    """The latest attempt that has ended, from 1."""
    slot: int = 0
    end: LoopTerminalEvent | None = None
    """The end of its latest run."""
    candidate: WatchCandidate | None = None
    """The candidate, until it lands."""
    sent_back: WatchSentBack | None = None
    """The reason why the candidate did not land."""
    proposed: WatchProposed | None = None
    """The pull request that has the candidate."""
    has_landed: bool = False
    """True if the item has landed but was not put away."""

    @property
    def waits_to_land(self) -> bool:
        """Return whether nothing but the gate is before it."""
        return self.candidate is not None and self.sent_back is None and self.proposed is None


@dataclass(slots=True)
class WorkLeft:
    """The items with work that has not landed, or was not put away."""

    works: dict[str, ItemWork] = field(default_factory=dict)
    queue: LandingQueue = field(default_factory=LandingQueue)


def work_left(watch: JournalFile, workspace: Workspace) -> WorkLeft:
    """Return the unfinished work of the watch, without items that were edited or removed since."""
    left = WorkLeft()
    works = left.works
    for entry in watch.entries.only(_TAGS):
        match entry.event:
            case WatchProcessingItem(filename=name, slot=slot) if slot:
                works.setdefault(name, ItemWork()).slot = slot
            case LoopTerminalEvent(item=str(name)) as end if name in works:
                works[name].end = end
            case WatchCandidate(filename=name) as made:
                work = works.setdefault(name, ItemWork())
                work.number, work.candidate = max(work.number, made.attempt), made
                work.sent_back = work.proposed = None
            case WatchProposed(filename=name) as proposed if name in works:
                works[name].proposed = proposed
            case WatchSentBack(filename=name) as sent_back if name in works:
                works[name].sent_back, works[name].proposed = sent_back, None
            case WatchLanded(filename=name) if name in works:
                works[name].has_landed = True
            case (
                WatchItemCompleted(filename=name)
                | WatchItemParked(filename=name)
                | WatchItemRetained(filename=name)
            ):
                works.pop(name, None)
            case _:
                pass
        left.queue = left.queue.after(entry.event)
    left.queue = left.queue.interrupted()
    backlog = Backlog(workspace)
    for name, work in list(works.items()):
        work.item = f"{name} {backlog.digest(name)}"
        if latest_run_of(workspace, work.item, in_slot=True) is None:
            del works[name]
            left.queue = left.queue.forget(name)
    return left


def items_of_issues(workspace: Workspace, files: set[str]) -> dict[str, str]:
    """Return the items whose runs have written these spec issues, by the names of the files."""
    found: dict[str, str] = {}
    for path in list_journals(workspace.journal) if files else ():
        run = scan_journal(path)
        if run.started.item is None:
            continue
        for entry in run.entries.only(("LoopSpecIssue",)):
            file = getattr(entry.event, "filename", "")
            if file in files:
                found[file] = run.started.item.rpartition(" ")[0]
        if len(found) == len(files):
            break
    return found
