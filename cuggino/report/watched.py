"""The items of a watch, by its own journal."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from cuggino.domain import Spending
from cuggino.events import (
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    RunContinued,
    RunEnded,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchItemSkipped,
    WatchProcessingItem,
)
from cuggino.report.model import ItemState, WatchedItem
from cuggino.storage.journal import Entry

_RESULTS: tuple[tuple[type, ItemState], ...] = (
    (LoopApproved, "approved"),
    (LoopSpecIssue, "spec_issue"),
    (LoopMaxIterations, "max_iterations"),
    (LoopStalled, "stalled"),
)


class WatchedItems:
    """Each item that a watch worked on, with its outcome and the cost of its agents."""

    def __init__(self) -> None:
        self._items: dict[str, WatchedItem] = {}
        self._present: str | None = None
        self._since: datetime | None = None
        self._spent: dict[str, Spending] = {}
        self._last: datetime | None = None

    def add(self, entry: Entry) -> None:
        match entry.event:
            case WatchProcessingItem(filename=name) as begun:
                self._leave(entry.at)
                known = self._items.get(name) or WatchedItem(name=name, start=entry.at)
                self._items[name] = replace(
                    known,
                    title=begun.title or known.title,
                    position=begun.position or known.position,
                    attempts=known.attempts + 1,
                    state="working",
                    reason="",
                    end=None,
                )
                self._present, self._since = name, entry.at
            case WatchItemCompleted(filename=name):
                before = self._items.get(name)
                state = before.state if before is not None else "approved"
                done: ItemState = state if state in ("approved", "max_iterations") else "approved"
                self._settle(name, done, "", entry.at)
            case WatchItemParked(filename=name, reason=reason):
                self._settle(name, "parked", reason, entry.at)
            case WatchItemRetained(filename=name):
                self._settle(name, "edited", "it was edited while it was worked on", entry.at)
            case WatchItemRetry(filename=name, message=message):
                self._settle(name, "failed", message, entry.at)
            case WatchItemSkipped(filename=name, reason=reason):
                known = self._items.get(name) or WatchedItem(name=name, start=entry.at)
                self._items[name] = replace(known, state="skipped", reason=reason, end=entry.at)
            case RunContinued() | RunEnded():
                self._leave(self._last or entry.at)
            case event:
                self._work(entry, event)
        self._last = entry.at

    def _work(self, entry: Entry, event: object) -> None:
        name = self._present
        if name is None:
            return
        state = next((state for cls, state in _RESULTS if isinstance(event, cls)), None)
        if state is not None:
            reason = getattr(event, "content", "") or getattr(event, "message", "")
            self._items[name] = replace(self._items[name], state=state, reason=reason)
        if entry.stage is not None:
            before = self._spent.get(name, Spending())
            after = before.add(entry.event)
            if after is not before:
                self._spent[name] = after
                self._items[name] = replace(
                    self._items[name], cost_usd=after.cost_usd, usage=after.usage
                )

    def _settle(self, name: str, state: ItemState, reason: str, at: datetime) -> None:
        if name == self._present:
            self._leave(at)
        known = self._items.get(name) or WatchedItem(name=name, start=at)
        self._items[name] = replace(known, state=state, reason=reason or "", end=at)

    def _leave(self, at: datetime) -> None:
        """Note that the item at work is left."""
        name, since = self._present, self._since
        if name is None or since is None:
            return
        known = self._items[name]
        spent = self._spent.get(name)
        if spent is not None:  # another run of it has sessions of its own
            self._spent[name] = spent.settle()
        state: ItemState = "interrupted" if known.state == "working" else known.state
        seconds = known.seconds + max(0.0, (at - since).total_seconds())
        self._items[name] = replace(known, state=state, end=at, seconds=seconds)
        self._present = self._since = None

    def result(self, end: datetime, *, running: bool) -> tuple[WatchedItem, ...]:
        """Return the items in the order in which they were begun."""
        items = dict(self._items)
        if self._present is not None and self._since is not None:
            known = items[self._present]
            seconds = known.seconds + max(0.0, (end - self._since).total_seconds())
            state: ItemState = known.state
            if state == "working" and not running:
                state = "interrupted"
            items[self._present] = replace(known, state=state, seconds=seconds)
        return tuple(items.values())
