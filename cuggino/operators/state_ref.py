"""`StateRef`: a value and its changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from reactivex import Observable, abc
from reactivex.subject import BehaviorSubject

from cuggino.operators.managed import Subscription, managed

T = TypeVar("T")


class StateRef(Generic[T]):
    """A value, and a stream of it and its changes (Effect's `SubscriptionRef`).

    ::

        ref = StateRef(0)
        ref.changes.subscribe(print)        # prints 0
        ref.update(lambda n: n + 1)         # prints 1

    For use on one lane. Every value that is set is emitted, an equal one too: put
    `distinct_until_changed` after `changes` to leave those out. A value that a subscriber sets is
    emitted after the one that it got, so all subscribers get the same values in the same order.
    (RxPY's `BehaviorSubject` emits it first, so that later subscribers end with the older value; it
    can be ended; and it raises a subscriber's exception where a value is set.)
    """

    def __init__(self, value: T) -> None:
        self._current = BehaviorSubject(value)
        self._pending: deque[T] = deque()
        """Values that subscribers have set while another one is emitted."""
        self._emits = False
        self.changes: Observable[T] = managed(self._listen)
        """Emits the value at subscription, then each that is set. Never completes."""

    @property
    def value(self) -> T:
        """The current value."""
        return self._pending[-1] if self._pending else self._current.value

    def set(self, value: T) -> None:
        """Set the value and emit it."""
        with self._emitting():
            self._pending.append(value)

    def update(self, change: Callable[[T], T]) -> T:
        """Set the value to `change(value)`, emit it, and return it."""
        value = change(self.value)
        self.set(value)
        return value

    def _listen(
        self, observer: Subscription[T], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        with self._emitting():
            return self._current.subscribe(observer, scheduler=scheduler)

    @contextmanager
    def _emitting(self) -> Iterator[None]:
        """Emit the pending values after the block, unless that is already happening."""
        if self._emits:
            yield
            return
        self._emits = True
        try:
            yield
            while self._pending:
                self._current.on_next(self._pending.popleft())
        finally:
            self._emits = False
