"""Unfinished work of earlier processes of a watch with slots, read from its journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cuggino.domain import LandingQueue, attempted_item
from cuggino.events import (
    Event,
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
from cuggino.loops.watch.placement import item_name
from cuggino.loops.watch.pool_state import Forgotten, ItemWork, PoolState, next_step
from cuggino.storage import Backlog, JournalFile, Workspace, list_journals, scan_journal

TAGS = tuple(
    kind.__name__
    for kind in (
        *(LoopApproved, LoopMaxIterations),
        *(WatchCandidate, WatchItemCompleted, WatchItemParked, WatchItemRetained, WatchLanded),
        *(WatchLanding, WatchProcessingItem, WatchProposed, WatchSentBack),
    )
)
"""The events from which the state of items is read."""


def work_left(watch: JournalFile, workspace: Workspace) -> PoolState:
    """Return the unfinished work of the watch, without items that were edited or removed since."""
    state = state_after(entry.event for entry in watch.entries.only(TAGS))
    backlog = Backlog(workspace)
    for name, work in state.works.items():
        item = f"{name} {backlog.digest(name)}"
        if latest_run_of(workspace, item, in_slot=True) is None:
            state, _ = next_step(state, Forgotten(name))
        else:
            state = state.with_work(name, work.of_text(item))
    return state


def state_after(events: Iterable[Event]) -> PoolState:
    """Return the state that a watch with these events has left to the next one."""
    works: dict[str, ItemWork] = {}
    queue = LandingQueue()
    for event in events:
        match event:
            case WatchProcessingItem(filename=name, slot=slot) if slot:
                works[name] = replace(works.get(name, ItemWork()), slot=slot)
            case WatchCandidate(filename=name):
                work = works.get(name, ItemWork())
                if isinstance(work.end, LoopMaxIterations):  # earlier versions did not record it
                    event = event.model_copy(update={"approved": False})
                works[name] = work.after(event)
            case (
                LoopTerminalEvent(item=str(name))
                | WatchProposed(filename=name)
                | WatchSentBack(filename=name)
                | WatchLanded(filename=name)
            ) if name in works:
                works[name] = works[name].after(event)
            case (
                WatchItemCompleted(filename=name)
                | WatchItemParked(filename=name)
                | WatchItemRetained(filename=name)
            ):
                works.pop(name, None)
            case _:
                pass
        queue = queue.after(event)
    return PoolState(queue=queue.interrupted(), works=works)


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
                found[file] = attempted_item(item_name(run.started.item))
        if len(found) == len(files):
            break
    return found
