"""The virtual clock: it jumps over waits, and waits for what happens outside."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from reactivex import interval, operators as ops, timer

from cuggino.sources.process import process_lines
from cuggino.testing import StandsStill, VirtualClock, no_leaks
from cuggino.testing.clock import seconds, spoken
from cuggino.testing.runtime import play


@pytest.mark.parametrize(
    ("words", "length"),
    [("100ms", 0.1), ("30s", 30), ("5m", 300), ("2h30m", 9000), ("1d", 86_400), (7, 7)],
)
def test_lengths_of_time(words: str | float, length: float) -> None:
    """A length of time is a number of seconds, or words with units."""
    assert length == seconds(words)


@pytest.mark.parametrize("words", ["", "5", "h", "5 h", "5x", "-5s", "1m later"])
def test_what_is_no_length_of_time(words: str) -> None:
    """Words that are no length of time are refused, with words that are."""
    with pytest.raises(ValueError, match="is no length of time; say it as 100ms"):
        seconds(words)


def test_a_timedelta_is_a_length_of_time() -> None:
    """So it needs no words."""
    assert 5400 == seconds(timedelta(minutes=90))


@pytest.mark.parametrize(
    ("when", "words"),
    [(0, "0 s"), (119.5, "119.5 s"), (120, "2m"), (3723, "1h 2m 3s"), (90_000.25, "1d 1h 0.25s")],
)
def test_times_are_told_to_a_person(when: float, words: str) -> None:
    """A short time is told in seconds, a long one in its units."""
    assert words == spoken(when)


def test_years_take_no_time() -> None:
    """The clock jumps from timer to timer."""
    clock, began = VirtualClock(), time.monotonic()
    story = play(timer(5e7), clock=clock)
    assert (5e7, [5e7]) == (clock.elapsed, story.times(int))
    assert time.monotonic() - began < 5


def test_it_begins_when_it_is_told() -> None:
    """`now`, `at` and `after` are moments, counted from the given beginning."""
    start = datetime(2030, 3, 1, 9, tzinfo=UTC)
    clock = VirtualClock(start=start)
    assert (start, 0.0) == (clock.now, clock.elapsed)
    clock.advance_to(clock.at("90m"))
    assert (start + timedelta(minutes=90), 5400) == (clock.now, clock.elapsed)
    assert start + timedelta(hours=2) == clock.after("30m")


def test_thousands_at_one_instant() -> None:
    """However much happens at an instant, it stays that instant."""
    clock = VirtualClock()
    left = 5000

    def again(*_: object) -> None:
        nonlocal left
        left -= 1
        if left:
            clock.schedule(again)

    clock.schedule(again)
    clock.advance_to(clock.at(10), unless=lambda: left == 0)
    assert (0, 0.0) == (left, clock.elapsed)


def test_a_process_takes_no_virtual_time() -> None:
    """Its lines come at the instant at which it was started, before any later timer."""
    clock = VirtualClock()
    seen: list[object] = []
    clock.schedule_relative(0.001, lambda *_: seen.append("a millisecond later"))
    with no_leaks():
        lines = process_lines(["/bin/sh", "-c", "echo one; sleep 0.2; echo two"])
        subscription = lines.subscribe(
            lambda line: seen.append((clock.elapsed, line)), scheduler=clock
        )
        clock.advance_to(clock.at("1h"))
        subscription.dispose()
    assert [(0.0, b"one"), (0.0, b"two"), "a millisecond later"] == seen
    assert 3600 == clock.elapsed


def test_a_thread_that_posts_as_its_last_act() -> None:
    """What a working thread posts is done at the present instant, also just before it ends."""
    for _ in range(50):
        clock = VirtualClock()
        seen: list[float] = []
        post = lambda: clock.schedule(lambda *_: seen.append(clock.elapsed))  # noqa: E731
        thread = threading.Thread(target=post, name="cuggino-worker")
        clock.schedule_relative(1, lambda *_: None)
        thread.start()
        clock.advance_to(clock.at(2))
        thread.join()
        assert [0.0] == seen


def test_others_do_not_keep_it() -> None:
    """A thread that worked before there was the clock is none of its business."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, name="cuggino-notify-mail")
    thread.start()
    clock = VirtualClock(patience=0.2)
    clock.schedule_relative(5, lambda *_: None)
    clock.advance_to(clock.at(10))
    assert 10 == clock.elapsed
    ended.set()
    thread.join()


def test_what_never_ends_is_told() -> None:
    """A process that outlives the patience of an instant fails the test, by its name."""
    clock = VirtualClock(patience=0.2)
    with no_leaks():
        subscription = process_lines(["sleep", "100"]).subscribe(scheduler=clock)
        with pytest.raises(StandsStill, match=r"still for 0.2 real seconds at 0 s: cuggino-sleep"):
            clock.advance_to(clock.at("1h"))
        subscription.dispose()


def test_looks_come_before_jumps() -> None:
    """Who wants to look does so once at the end of each instant, and may add to it."""
    clock = VirtualClock()
    looks: list[float] = []
    with clock.before_jumps(lambda: looks.append(clock.elapsed)):
        play(interval(10).pipe(ops.take(2)), clock=clock)
    clock.advance_to(clock.at(100))
    assert [0, 10] == looks


def test_what_is_pending() -> None:
    """Cancelled timers are not counted, and what is due at the end of a series is."""
    clock = VirtualClock()
    first = clock.schedule_relative(10, lambda *_: None)
    clock.schedule_relative(20, lambda *_: None)
    first.dispose()
    assert 1 == clock.pending
    clock.advance_to(clock.at(20))
    assert 0 == clock.pending


def test_time_does_not_go_back() -> None:
    """A moment that is past leaves the clock as it is; an action may not advance it."""
    clock = VirtualClock()
    clock.advance_to(clock.at(10))
    clock.advance_to(clock.at(5))
    assert 10 == clock.elapsed
    inside: list[float] = []

    def act(*_: object) -> None:
        clock.advance_to(clock.at(100))
        inside.append(clock.elapsed)

    clock.schedule_relative(1, act)
    clock.advance_to(clock.at(20))
    assert ([11.0], 20.0) == (inside, clock.elapsed)


def test_an_exception_leaves_it_usable() -> None:
    """What an action raises is raised, and the clock goes on afterwards."""
    clock = VirtualClock()

    def fail(*_: object) -> None:
        raise RuntimeError("no")

    clock.schedule_relative(1, fail)
    with pytest.raises(RuntimeError):
        clock.advance_to(clock.at(5))
    clock.advance_to(clock.at(5))
    assert 5 == clock.elapsed
