"""The serial scheduler on which a run happens.

All operators, timers and `on_next` calls of a run happen on one serial scheduler, its lane, which
also reads the programs of the run. The Rx grammar then holds without locks; only sources with
threads of their own need them.
"""

from __future__ import annotations

import heapq
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from operator import attrgetter
from typing import Any, TypeVar
from weakref import WeakSet

from reactivex import abc
from reactivex.disposable import Disposable
from reactivex.internal.exceptions import DisposedException
from reactivex.scheduler.periodicscheduler import PeriodicScheduler
from reactivex.typing import AbsoluteTime, RelativeTime

_State = TypeVar("_State")

_FEW_CANCELLED = 64
"""Cancelled timers that may stay in the queue of a lane before it is pruned."""

_LONGEST_WAIT = 60.0
"""Seconds after which a lane looks at its clock again, which may have jumped in a suspend."""


class LoopScheduler(PeriodicScheduler, abc.DisposableBase):
    """An event loop on one daemon thread: actions, timers and descriptors, as in asyncio.

    The thread waits for all three at once, so a program that is read here prints a line without a
    switch of threads. Each turn runs the callbacks of descriptors that are ready, once each, then
    the actions and timers that are due; so none of them can starve the others.

    RxPY's `EventLoopScheduler` waits for no descriptors, and differs in three more ways. It ends
    with the first exception of an action; here that is reported to `threading.excepthook`, and the
    next action runs. It keeps a cancelled timer, with the whole run that it belonged to, until it
    is due; here the queue is pruned. And it waits longer when the clock is set back; here time
    never goes back (see `now`).

    In a forked copy of the process a lane starts over, with nothing to do.
    """

    def __init__(self, name: str = "cuggino-loop") -> None:
        super().__init__()
        self._name = name
        self._clock: Callable[[], float] = ForwardClock()
        self._last_actions: dict[int, Callable[[], object]] = {}
        self._numbers = count()
        self._is_disposed = False
        self._lock = threading.Lock()
        self._ready: deque[_Action] = deque()
        self._timers = _Timers()
        self._selector: _Selector | None = None
        self._thread: threading.Thread | None = None
        self.failure: BaseException | None = None
        """What has ended the thread: an action's `SystemExit`, for example."""
        _LANES.add(self)

    @property
    def now(self) -> datetime:
        """The time in UTC, which never goes back.

        It follows the wall clock forward, also after a suspend. When that is set back by an hour,
        the lane stays an hour ahead, so that no timer is late.
        """
        return datetime.fromtimestamp(self._clock(), UTC)

    @property
    def is_current(self) -> bool:
        """True on the thread of the lane."""
        return threading.current_thread() is self._thread

    @property
    def is_disposed(self) -> bool:
        """True once the lane has been disposed of, or ended by an action."""
        return self._is_disposed

    def schedule(
        self, action: abc.ScheduledAction[_State], state: _State | None = None
    ) -> abc.DisposableBase:
        return self._add(action, state, self._clock())

    def schedule_relative(
        self,
        duetime: RelativeTime,
        action: abc.ScheduledAction[_State],
        state: _State | None = None,
    ) -> abc.DisposableBase:
        now = self._clock()
        seconds = self.to_seconds(duetime)
        return self._add_timer(action, state, now, now + max(0.0, seconds))

    def schedule_absolute(
        self,
        duetime: AbsoluteTime,
        action: abc.ScheduledAction[_State],
        state: _State | None = None,
    ) -> abc.DisposableBase:
        return self._add_timer(action, state, self._clock(), self.to_seconds(duetime))

    def _add_timer(
        self, action: abc.ScheduledAction[Any], state: Any, now: float, due: float
    ) -> abc.DisposableBase:
        if due <= now:
            return self._add(action, state, due)
        timer = _Timer(self, action, state, due)
        with self._lock:
            selector = self._running()
            self._timers.add(timer)
            selector.wake()
        return timer

    def _add(self, action: abc.ScheduledAction[Any], state: Any, due: float) -> abc.DisposableBase:
        item = _Action(self, action, state, due)
        with self._lock:
            selector = self._running()
            self._ready.append(item)
            selector.wake()
        return item

    def watch(self, fd: int, events: int, callback: Callable[[], object]) -> abc.DisposableBase:
        """Call `callback` on the lane whenever `fd` is ready for `events`.

        These are `selectors.EVENT_READ`, `selectors.EVENT_WRITE` or both. Dispose of the watch, on
        any thread, before the descriptor is closed. An exception of the callback is reported like
        an action's, and ends the watch.
        """
        with self._lock:
            watch = _Watch(self, fd, callback)
            selector = self._running()
            selector.register(fd, events, watch)
            selector.wake()
        return watch

    def unwatch(self, watch: _Watch) -> None:
        """End the watch; use its `dispose`."""
        with self._lock:
            if not watch.is_closed:
                watch.is_closed = True
                if self._selector is not None:
                    self._selector.unregister(watch.fd)

    def at_end(self, action: Callable[[], object]) -> abc.DisposableBase:
        """Call `action` as the last one, on the lane, when the lane is disposed of."""
        with self._lock:
            self._running()
            number = next(self._numbers)
            self._last_actions[number] = action

        def cancel() -> None:
            self._last_actions.pop(number, None)

        return Disposable(cancel)

    def prune(self) -> None:
        """Count a timer as cancelled; remove those from the queue when they are many."""
        with self._lock:
            released = self._timers.prune()
        del released  # after the lock: that may run arbitrary code

    def dispose(self) -> None:
        """Drop all scheduled actions and end the thread; safe to call from any thread.

        If an action is running, the thread ends after it.
        """
        with self._lock:
            self._is_disposed = True
            if self._selector is not None:
                self._selector.wake()

    def close(self) -> None:
        """Dispose and wait until the thread has ended, unless it is the current one."""
        self.dispose()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def forget(self) -> None:
        """Start over in a forked copy, which has neither the thread nor its programs."""
        selector, self._selector = self._selector, None
        self._thread = None
        self._lock = threading.Lock()
        self._ready.clear()
        self._timers = _Timers()
        self._last_actions.clear()
        if selector is not None:
            selector.close()

    # -- with the lock

    def _running(self) -> _Selector:
        """Return the selector of the thread, which is started if there is none."""
        if self._is_disposed:
            raise DisposedException
        if self._selector is None:
            selector = _Selector()
            thread = threading.Thread(
                target=self._run, args=(selector,), name=self._name, daemon=True
            )
            self._selector, self._thread = selector, thread
            try:
                thread.start()
            except BaseException:
                self._selector = self._thread = None
                if not thread.is_alive():  # else interrupted after the start: the thread closes it
                    selector.close()
                raise
        return self._selector

    # -- on the thread

    def _run(self, selector: _Selector) -> None:
        try:
            while self._goes_on(selector):
                self._take_turn(selector)
        except BaseException as error:
            self.failure = error
            if not isinstance(error, SystemExit):  # which ends the thread without a word
                raise
        finally:
            if self._selector is selector:
                self._end(selector)
            else:
                selector.close()

    def _goes_on(self, selector: _Selector) -> bool:
        return not self._is_disposed and self._selector is selector

    def _take_turn(self, selector: _Selector) -> None:
        with self._lock:
            timeout = self._timeout() if self._goes_on(selector) else 0.0
            selector.is_waiting = timeout > 0
        for watch in selector.select(timeout):
            if not self._goes_on(selector):
                return
            watch.invoke()
        for action in self._due():
            if not self._goes_on(selector):
                return
            action.invoke()

    def _timeout(self) -> float:
        if self._ready or self._is_disposed:
            return 0.0
        next_timer = self._timers.next_due()
        if next_timer is None:
            return _LONGEST_WAIT
        return min(max(0.0, next_timer - self._clock()), _LONGEST_WAIT)

    def _due(self) -> Iterable[_Action]:
        """Take what is due, ordered by time: a timer goes before an action scheduled after it."""
        with self._lock:
            ready, self._ready = self._ready, deque()
            due = self._timers.take(self._clock())
        return heapq.merge(due, ready, key=attrgetter("due")) if due else ready

    def _end(self, selector: _Selector) -> None:
        with self._lock:
            self._is_disposed = True
            last = list(self._last_actions.values())
        for action in last:
            try:
                action()
            except Exception as error:
                self.report(error)
        with self._lock:
            self._selector = None
            self._ready.clear()
            self._timers = _Timers()
        selector.close()

    def report(self, error: Exception) -> None:
        """Report an exception of an action, and continue."""
        # A timer may have ended the run; RxPY then restarts that timer.
        if not (self._is_disposed and isinstance(error, DisposedException)):
            threading.excepthook(
                threading.ExceptHookArgs(
                    (type(error), error, error.__traceback__, threading.current_thread())
                )
            )


class _Action(abc.DisposableBase):
    """An action of a lane. Disposal cancels it, or disposes of the disposable that it returned."""

    __slots__ = ("_action", "_returned", "_state", "due", "is_cancelled", "lane")

    def __init__(
        self, lane: LoopScheduler, action: abc.ScheduledAction[Any], state: Any, due: float
    ) -> None:
        self.lane = lane
        self.due = due
        self.is_cancelled = False
        self._action = action
        self._state = state
        self._returned: abc.DisposableBase | None = None

    def invoke(self) -> None:
        if self.is_cancelled:
            return
        try:
            self._returned = self._action(self.lane, self._state)
        except Exception as error:
            self.lane.report(error)
        if self.is_cancelled:  # by the action itself
            self.dispose()

    def dispose(self) -> None:
        self.is_cancelled = True
        returned, self._returned = self._returned, None
        if returned is not None:
            returned.dispose()


class _Timer(_Action):
    """An action that waits in the queue of a lane."""

    __slots__ = ()

    def dispose(self) -> None:
        if not self.is_cancelled:
            super().dispose()
            self.lane.prune()


class _Timers:
    """The timers of a lane, ordered by time; those of one moment in the order of their calls."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, _Timer]] = []
        self._numbers = count()
        self._cancelled = 0
        """Upper bound of the number of cancelled timers in the heap."""

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, timer: _Timer) -> None:
        heapq.heappush(self._heap, (timer.due, next(self._numbers), timer))

    def next_due(self) -> float | None:
        """Return the time of the first timer, if there is one."""
        while self._heap and self._heap[0][2].is_cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> list[_Timer]:
        """Remove and return the timers that are due, in order."""
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        return due

    def prune(self) -> object:
        """Count a cancelled timer; if they are many, return the old heap to be released."""
        self._cancelled += 1
        before = self._heap
        if self._cancelled <= max(_FEW_CANCELLED, len(before) // 2):
            return None
        self._heap = [entry for entry in before if not entry[2].is_cancelled]
        heapq.heapify(self._heap)
        self._cancelled = 0
        return before


class _Watch(abc.DisposableBase):
    """A descriptor that a lane waits for."""

    def __init__(self, lane: LoopScheduler, fd: int, callback: Callable[[], object]) -> None:
        self.fd = fd
        self.is_closed = False
        self._lane = lane
        self._callback = callback

    def invoke(self) -> None:
        if self.is_closed:  # by a callback of the same turn, or by another thread
            return
        try:
            self._callback()
        except Exception as error:
            self.dispose()  # or it might fail again in each turn
            self._lane.report(error)

    def dispose(self) -> None:
        self._lane.unwatch(self)


class _Selector:
    """What a lane waits for: the watched descriptors, and a pipe that ends the wait."""

    def __init__(self) -> None:
        self.is_waiting = False
        """True while the thread may wait; only then a byte is written to the pipe."""
        self._selector = selectors.DefaultSelector()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)
        self._selector.register(self._read_end, selectors.EVENT_READ)
        self._watches = 0
        self._is_closed = False

    def register(self, fd: int, events: int, watch: _Watch) -> None:
        self._selector.register(fd, events, watch)
        self._watches += 1

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)
        self._watches -= 1

    def select(self, timeout: float) -> list[_Watch]:
        """Wait until something is ready; return the watches that are."""
        if timeout <= 0 and not self._watches:
            return []
        ready = self._selector.select(timeout)
        self.is_waiting = False
        watches = []
        for key, _ in ready:
            if key.data is None:
                with suppress(BlockingIOError):
                    os.read(self._read_end, 4096)
            else:
                watches.append(key.data)
        return watches

    def wake(self) -> None:
        """End the wait, if there is one; with the lane's lock."""
        if self.is_waiting:
            self.is_waiting = False
            with suppress(BlockingIOError):  # full: it wakes up anyway
                os.write(self._write_end, b"!")

    def close(self) -> None:
        """Close the descriptors; idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._selector.close()
        os.close(self._read_end)
        os.close(self._write_end)


class ForwardClock:
    """The seconds since the epoch: the wall clock, which never goes back."""

    def __init__(self) -> None:
        self._ahead = 0.0
        """The most by which the wall clock was ahead of the monotonic one."""

    def __call__(self) -> float:
        ahead = time.time() - (passed := time.monotonic())
        if ahead > self._ahead:  # on every event: `max` would double the time
            self._ahead = ahead
        return passed + self._ahead


_LANES: WeakSet[LoopScheduler] = WeakSet()


def _forked() -> None:
    """Start over in a copy of the process, which has none of the threads."""
    for lane in list(_LANES):
        lane.forget()


os.register_at_fork(after_in_child=_forked)
