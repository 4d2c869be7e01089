"""The settled count, drawn in virtual time."""

from __future__ import annotations

import asyncio
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.subject import Subject

from cuggino.folders import PollingStarted, watch_file_count
from cuggino.folders.file_count import settled
from cuggino.testing import Marbles, VirtualClock

FOLDER = Path("backlog")


class Counts:
    """A counter that returns the numbers in turn, then the last one, and records its calls."""

    def __init__(self, t: Marbles, *numbers: int) -> None:
        self._t = t
        self._numbers = list(numbers)
        self.asked_at: list[float] = []

    def __call__(self, folder: Path) -> int:
        assert folder == FOLDER
        self.asked_at.append(self._t.now)
        return self._numbers.pop(0) if len(self._numbers) > 1 else self._numbers[0]


def scheduled(t: Marbles) -> int:
    """Count the pending actions of the scheduler."""
    return sum(not item.is_cancelled() for item, _ in t.scheduler._queue.items)


def marbles(**events: Any) -> Marbles:
    numbers: dict[str, Any] = {str(i): i for i in range(10)}
    return Marbles(c="changed", **numbers, **events)


def test_the_first_count_comes_within_subscribe() -> None:
    """The present number is emitted before `subscribe` returns, and never completes."""
    t = marbles()
    t.check(watch_file_count(FOLDER, changes=lambda _: t.hot("-"), count=Counts(t, 3)), "3")
    seen: list[int] = []
    stream = watch_file_count(FOLDER, changes=lambda _: rx.never(), count=lambda _: 3)
    subscription = stream.subscribe(seen.append, scheduler=t.scheduler)
    assert seen == [3]
    subscription.dispose()


def test_the_watch_starts_before_the_first_count() -> None:
    """CUG-105: the folder is watched before it is counted."""
    order: list[str] = []

    def changes(_: Path) -> Observable[object]:
        def subscribe(_: object, __: object = None) -> abc.DisposableBase:
            order.append("watch")
            return Disposable()

        return Observable(subscribe)

    def count(_: Path) -> int:
        order.append("count")
        return 0

    stream = watch_file_count(FOLDER, changes=changes, count=count)
    stream.subscribe(scheduler=marbles().scheduler).dispose()
    assert order == ["watch", "count"]


def test_a_change_at_the_start_is_not_lost() -> None:
    """CUG-105: a change reported before the first number is out leads to a recount."""
    t = marbles()

    def subscribe(observer: abc.ObserverBase[object], _: Any = None) -> abc.DisposableBase:
        observer.on_next("changed")
        return Disposable()

    stream = watch_file_count(
        FOLDER, changes=lambda _: Observable(subscribe), count=Counts(t, 1, 2)
    )
    t.check(stream, "1 29s 2")


@pytest.mark.parametrize(
    ("changes", "numbers", "expected", "asked_at"),
    [
        ("---c", (0, 1), "0 32s 1", [0, 33]),
        ("---c 29s c", (0, 1), "0 62s 1", [0, 63]),  # 30 s after the second one
        ("---c 28s c 29s c", (0, 1), "0 91s 1", [0, 92]),
        ("---c 31s c", (0, 1, 2), "0 32s 1 31s 2", [0, 33, 65]),
        ("---(ccc)", (0, 5), "0 32s 5", [0, 33]),
        ("---c", (4, 4), "4", [0, 33]),  # an edit
        ("---c 40s c", (4, 4, 0), "4 73s 0", [0, 33, 74]),
        ("c", (2, 3), "2 29s 3", [0, 30]),
        ("---c|", (0, 1), "0 32s 1", [0, 33]),
        ("|", (2,), "2", [0]),
    ],
)
def test_thirty_seconds_of_rest(
    changes: str, numbers: tuple[int, ...], expected: str, asked_at: list[float]
) -> None:
    """CUG-101: 30 s after the last change the files are counted; only a new number is emitted."""
    t = marbles()
    source = t.hot(changes)
    count = Counts(t, *numbers)
    t.check(watch_file_count(FOLDER, changes=lambda _: source, count=count), expected, until=3600)
    assert asked_at == count.asked_at
    assert source.subscriptions[0][0] == 0


@pytest.mark.parametrize(
    ("settle", "expected"),
    [(1.0, "0---1"), (0.25, "0-- 250ms 1"), (0.0, "0--1"), (90.0, "0 92s 1")],
)
def test_other_settle_times(settle: float, expected: str) -> None:
    """`settle` is the time of rest, in seconds."""
    t = marbles()
    stream = watch_file_count(
        FOLDER, settle=settle, changes=lambda _: t.hot("---c"), count=Counts(t, 0, 1)
    )
    t.check(stream, expected, until=200)


def test_a_negative_settle_time_is_refused() -> None:
    """A time of rest below 0, or a longest wait below it, is a ValueError at once."""
    with pytest.raises(ValueError, match="settle"):
        watch_file_count(FOLDER, settle=-1)
    with pytest.raises(ValueError, match="longest"):
        watch_file_count(FOLDER, settle=2, longest=1)


@pytest.mark.parametrize(
    ("longest", "asked_at"), [(None, [0, 51, 103]), (12, [0, 13, 27, 41, 55, 69, 83, 97, 104])]
)
def test_changes_that_never_end(longest: float | None, asked_at: list[float]) -> None:
    """A file that is written every 2 s is counted after the longest wait: 10 times the settling."""
    t = marbles()
    count = Counts(t, *range(20))
    stream = watch_file_count(
        FOLDER, settle=5, longest=longest, changes=lambda _: t.hot("-c" * 50), count=count
    )
    t.record(stream, until=200)
    assert count.asked_at == asked_at


class Late(VirtualClock):
    """A clock of a busy machine, on which each timer fires 1.5 s late."""

    def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> Any:
        return super().schedule_relative(self.to_seconds(duetime) + 1.5, action, state)


def test_late_timers_do_not_prolong_a_series() -> None:
    """A timer that is due stays so when further changes arrive before it fires."""
    t = Marbles(clock=Late(), c="changed")
    changes = t.hot("-c" * 50)
    seen = t.record(changes.pipe(settled(5, longest=9)), until=100)
    assert 8 == len(seen)


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.integers(1, 10),
    st.integers(1, 4),
)
def test_no_change_waits_longer_than_the_longest(gaps: list[int], settle: int, times: int) -> None:
    """Every change is followed by a count, in time, and no series that rests is cut short."""
    t = Marbles()
    longest = settle * times
    changed_at = list(accumulate(gaps))
    changes = rx.merge(rx.never(), *(rx.timer(float(when)) for when in changed_at))
    seen = t.record(changes.pipe(settled(settle, longest=longest)), until=2000)
    counted_at = [when for when, kind, _ in seen if kind == "next"]
    for when in changed_at:
        assert any(when <= counted <= when + longest for counted in counted_at)
    last_at = changed_at[-1]
    assert last_at <= counted_at[-1] <= last_at + settle
    if min(gaps) > settle:
        assert counted_at == [when + settle for when in changed_at]


def test_subscriptions_are_drawn() -> None:
    """The changes are watched from the subscription to the disposal, which ends the timer too."""
    t = marbles()
    source, count = t.hot("---c 60s c"), Counts(t, 0, 1)
    t.check(watch_file_count(FOLDER, changes=lambda _: source, count=count), "0", dispose_at=20)
    t.check_subscriptions(source, "^ 19s !")
    assert scheduled(t) == 0
    assert count.asked_at == [0]


def test_an_idle_hour_schedules_nothing() -> None:
    """Without a change nothing waits in the scheduler, before and after a settled change."""
    t = marbles()
    source: Subject[object] = Subject()
    seen: list[int] = []
    numbers = iter([0, 1])
    stream = watch_file_count(FOLDER, changes=lambda _: source, count=lambda _: next(numbers))
    subscription = stream.subscribe(seen.append, scheduler=t.scheduler)
    assert scheduled(t) == 0
    t.scheduler.advance_to(3600)
    source.on_next("changed")
    t.scheduler.advance_to(3631)
    assert (seen, scheduled(t)) == ([0, 1], 0)
    subscription.dispose()


def test_a_storm_costs_two_timers() -> None:
    """However many changes come, two timers are pending at most: of the rest, and the longest."""
    t = marbles()
    source: Subject[object] = Subject()
    stream = watch_file_count(FOLDER, changes=lambda _: source, count=Counts(t, 0))
    subscription = stream.subscribe(scheduler=t.scheduler)
    most = 0
    for second in range(1, 300):
        for _ in range(20):
            source.on_next("changed")
        t.scheduler.advance_to(second)
        most = max(most, scheduled(t))
    assert most == 2
    subscription.dispose()


def test_polling_is_no_change() -> None:
    """`PollingStarted` is handed to `on_polling`, and does not lead to a recount."""
    notice = PollingStarted(FOLDER, "no watches left")
    t = marbles(p=notice)
    count = Counts(t, 0, 1, 2)
    heard: list[PollingStarted] = []
    stream = watch_file_count(
        FOLDER, changes=lambda _: t.hot("p--c 10s p"), count=count, on_polling=heard.append
    )
    t.check(stream, "0 32s 1", until=3600)
    assert heard == [notice, notice]
    assert count.asked_at == [0, 33]


def test_polling_may_be_ignored() -> None:
    """Without `on_polling` the notice is dropped."""
    t = marbles(p=PollingStarted(FOLDER, ""))
    t.check(watch_file_count(FOLDER, changes=lambda _: t.hot("p"), count=Counts(t, 0)), "0")


def test_a_failing_source_fails_the_stream() -> None:
    """An error of `changes` is passed on at once and ends the timer."""
    t = marbles()
    source = t.hot("-c--#")
    t.check(watch_file_count(FOLDER, changes=lambda _: source, count=Counts(t, 0, 1)), "0---#")
    t.check_subscriptions(source, "^---!")
    assert scheduled(t) == 0


@pytest.mark.parametrize(("counted", "drawn", "ends"), [([], "#", 0), ([7], "7 30s #", 31)])
def test_a_failing_count_fails_the_stream(counted: list[int], drawn: str, ends: float) -> None:
    """An exception of `count`, the first or a later one, releases the watch and is the error."""
    t = marbles()
    source = t.hot("-c")
    numbers = iter(counted)

    def count(_: Path) -> int:
        for number in numbers:
            return number
        raise t.error

    t.check(watch_file_count(FOLDER, changes=lambda _: source, count=count), drawn)
    assert source.subscriptions == [(0, ends)]


def test_failing_to_watch_fails_the_stream() -> None:
    """An exception of `changes` reaches `on_error`; nothing is counted."""
    t = marbles()
    count = Counts(t, 0)

    def changes(_: Path) -> Observable[object]:
        raise t.error

    t.check(watch_file_count(FOLDER, changes=changes, count=count), "#")
    assert count.asked_at == []


@pytest.mark.parametrize("bad", [0, 1])
def test_a_failing_subscriber_gets_its_own_error(bad: int) -> None:
    """An exception in `on_next` releases the watch and arrives in `on_error`."""
    t = marbles()
    source: Subject[object] = Subject()
    errors: list[Exception] = []

    def on_next(number: int) -> None:
        if number == bad:
            raise t.error

    stream = watch_file_count(FOLDER, changes=lambda _: source, count=Counts(t, 0, 1))
    stream.subscribe(on_next, errors.append, scheduler=t.scheduler)
    source.on_next("changed")
    t.scheduler.advance_to(100)
    assert errors == [t.error]
    assert source.observers == []


def test_take_one_releases_the_watch() -> None:
    """A subscriber that only wants the present number leaves nothing behind."""
    t = marbles()
    source = t.hot("-c")
    stream = watch_file_count(FOLDER, changes=lambda _: source, count=Counts(t, 5))
    t.check(stream.pipe(ops.take(1)), "(5|)")
    assert source.subscriptions == [(0, 0)]


def test_a_scheduler_of_an_event_loop() -> None:
    """The first number comes on the loop, which is not blocked for it."""

    async def first() -> int:
        loop = asyncio.get_running_loop()
        counted = loop.create_future()
        held = watch_file_count(FOLDER, changes=lambda _: rx.never(), count=lambda _: 3).subscribe(
            counted.set_result, scheduler=AsyncIOScheduler(loop)
        )
        number: int = await asyncio.wait_for(counted, 10)
        held.dispose()
        return number

    assert 3 == asyncio.run(first())
