"""The queue of candidates that wait to land, one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from cuggino.events import (
    Event,
    WatchCandidate,
    WatchItemCompleted,
    WatchItemParked,
    WatchLanded,
    WatchLanding,
    WatchProposed,
    WatchSentBack,
)

ALONE = 2
"""Returns after which an item has the queue to itself."""

LONGEST = 2
"""The default of `LandingQueue.longest`.

Without this bound, slots that are faster than the check only produce conflicts.
"""


@dataclass(frozen=True, slots=True)
class LandingQueue:
    """The candidates of a watch: those that wait, the one that lands, those that were sent back.

    Items are named by the names of their files. Every method returns a new queue.
    """

    longest: int = LONGEST
    """Candidates that may wait before new items are held back."""
    waiting: tuple[str, ...] = ()
    """The items whose candidates wait, in the order in which they land."""
    landing: str | None = None
    """The item whose candidate lands now."""
    returns: Mapping[str, int] = field(default_factory=dict)
    """The number of times each item was sent back, until it lands, is parked or is forgotten."""

    @property
    def admits_new(self) -> bool:
        """True if new items may begin. Items that were sent back always may."""
        return len(self.waiting) <= self.longest

    def next(self, active: Collection[str] = ()) -> str | None:
        """Return the item whose candidate lands next, or None if none may land.

        An item that was sent back twice has the queue to itself: while it waits here or is `active`
        (at work, or about to be), nothing else lands.
        """
        if self.landing is not None or not self.waiting:
            return None
        for name, returns in self.returns.items():
            if returns >= ALONE and (name in self.waiting or name in active):
                return name if name in self.waiting else None
        return self.waiting[0]

    def first(self, names: Iterable[str]) -> list[str]:
        """Return the items in the order in which they begin: those sent back more often first."""
        return sorted(names, key=lambda name: -self.returns.get(name, 0))

    def is_exhausted(self, name: str, max_attempts: int) -> bool:
        """Return whether the item was sent back so often that it is parked."""
        return self.returns.get(name, 0) >= max_attempts

    def add(self, name: str) -> LandingQueue:
        """Add a candidate: behind those of items sent back if its item was, else at the end."""
        others = [one for one in self.waiting if one != name]
        place = sum(one in self.returns for one in others) if name in self.returns else len(others)
        return replace(self, waiting=(*others[:place], name, *others[place:]))

    def begin(self, name: str) -> LandingQueue:
        return replace(self._without(name), landing=name)

    def interrupted(self) -> LandingQueue:
        """Put the candidate of an interrupted landing back into the queue, before all others."""
        if self.landing is None:
            return self
        return replace(self, waiting=(self.landing, *self.waiting), landing=None)

    def send_back(self, name: str) -> LandingQueue:
        """Count a return of the item and remove its candidate from the queue."""
        count = self.returns.get(name, 0) + 1
        # In the order in which they may have the queue to themselves.
        others = {one: times for one, times in self.returns.items() if one != name}
        again = {**self.returns, name: count} if count > ALONE else {**others, name: count}
        return replace(self._without(name), returns=again)

    def forget(self, name: str) -> LandingQueue:
        """Forget an item that has landed, or has left the backlog."""
        others = {one: times for one, times in self.returns.items() if one != name}
        return replace(self._without(name), returns=others)

    def after(self, event: Event) -> LandingQueue:
        """Return the queue after an event of the watch, running or recorded."""
        match event:
            case WatchCandidate(filename=name, approved=True):
                return self.add(name)
            case WatchLanding(filename=name):
                return self.begin(name)
            case WatchProposed(filename=name):
                return self._without(name)
            case WatchSentBack(filename=name):
                return self.send_back(name)
            case WatchLanded() | WatchItemCompleted() | WatchItemParked():
                return self.forget(event.filename)
            case _:
                return self

    def _without(self, name: str) -> LandingQueue:
        waiting = tuple(one for one in self.waiting if one != name)
        landing = None if self.landing == name else self.landing
        return replace(self, waiting=waiting, landing=landing)
