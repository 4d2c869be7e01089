"""The pull requests that items wait for, beside everything else that a watch does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any

from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import Subject

from cuggino.events import WatchEvent, WatchProposed
from cuggino.operators import Flow, flow, interrupt_when, managed, merge_at_most
from cuggino.operators.managed import Subscription


class Proposals:
    """The items of a watch that wait for their pull requests, with a story for each.

    All stories run at the same time, and restart with each subscription of `beside`: a story must
    continue from the state that it finds, wherever it was disposed.
    """

    def __init__(self, story: Callable[[str], Flow[None]]) -> None:
        self._story = story
        self._open: dict[str, WatchProposed] = {}
        self._starts: abc.ObserverBase[Observable[WatchEvent]] | None = None
        self._changed: Subject[str] = Subject()

    def __contains__(self, name: object) -> bool:
        return name in self._open

    def __len__(self) -> int:
        return len(self._open)

    def names(self) -> list[str]:
        """Return the names of the items."""
        return list(self._open)

    def add(self, proposed: WatchProposed) -> None:
        """Watch a pull request from now on."""
        name = proposed.filename
        is_new = name not in self._open
        self._open[name] = proposed
        if is_new and self._starts is not None:
            self._starts.on_next(self._told(name))

    def end(self, name: str) -> None:
        """Watch that of the item no longer; a story that waits for it is released."""
        if self._open.pop(name, None) is not None:
            self._changed.on_next(name)

    def until_changed(self, name: str) -> Callable[[Observable[Any]], Observable[Any]]:
        """Return an operator that ends what a story waits for, with `end` or `look_again`."""
        return interrupt_when(self._changed.pipe(ops.filter(lambda one: one == name)))

    def look_again(self, name: str) -> None:
        """End what the story of the item waits for, as its item has changed."""
        self._changed.on_next(name)

    def beside(self) -> Observable[WatchEvent]:
        """Run the stories of all, and of those that are added. Cold, never completes."""

        def begin(
            observer: Subscription[Observable[WatchEvent]], _scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            self._starts = observer
            for name in self.names():
                observer.on_next(self._told(name))
            return Disposable(self._rest)

        return managed(begin).pipe(merge_at_most(sys.maxsize))

    def _rest(self) -> None:
        self._starts = None

    def _told(self, name: str) -> Observable[WatchEvent]:
        return flow(partial(self._story, name)).pipe(ops.map(methodcaller("of_item", name)))
