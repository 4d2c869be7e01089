"""The virtual clock: it skips waits and waits for processes and threads."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from reactivex import interval, operators as ops, timer

from cuggino.processes.process import process_lines
from cuggino.testing import StandsStill, VirtualClock, no_leaks
from cuggino.testing.clock import seconds, time_text
from cuggino.testing.doubles import changes_seen_by
from cuggino.testing.runtime import play


@pytest.mark.parametrize(
    ("words", "length"),
    [("100ms", 0.1), ("30s", 30), ("5m", 300), ("2h30m", 9000), ("1d", 86_400), (7, 7)],
)
def test_durations(words: str | float, length: float) -> None:
    """A duration is a number of seconds or text with units."""
    assert length == seconds(words)


@pytest.mark.parametrize("words", ["", "5", "h", "5 h", "5x", "-5s", "1m later"])
def test_invalid_durations(words: str) -> None:
    """An invalid duration is rejected with valid examples."""
    with pytest.raises(ValueError, match="is not a duration; write it as 100ms"):
        seconds(words)


def test_timedelta_is_a_duration() -> None:
    """A timedelta needs no text."""
    assert 5400 == seconds(timedelta(minutes=90))


@pytest.mark.parametrize(
    ("when", "words"),
    [(0, "0 s"), (119.5, "119.5 s"), (120, "2m"), (3723, "1h 2m 3s"), (90_000.25, "1d 1h 0.25s")],
)
def test_readable_times(when: float, words: str) -> None:
    """A short time is printed in seconds, a long one in its units."""
    assert words == time_text(when)


def test_years_take_no_time() -> None:
    """The clock jumps from timer to timer."""
    clock = VirtualClock()
    story = play(timer(5e7), clock=clock)
    assert (5e7, [5e7]) == (clock.elapsed, story.times(int))


def test_given_start_time() -> None:
    """`now`, `at` and `after` count from the given start."""
    start = datetime(2030, 3, 1, 9, tzinfo=UTC)
    clock = VirtualClock(start=start)
    assert (start, 0.0) == (clock.now, clock.elapsed)
    clock.advance_to(clock.at("90m"))
    assert (start + timedelta(minutes=90), 5400) == (clock.now, clock.elapsed)
    assert start + timedelta(hours=2) == clock.after("30m")


def test_thousands_at_one_instant() -> None:
    """Time does not advance while actions at the same instant remain."""
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


def test_process_takes_no_virtual_time() -> None:
    """Its output arrives at the instant of its start, before any later timer."""
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


def test_last_post_of_a_thread() -> None:
    """Work posted by a thread runs at the current instant, even just before the thread ends."""
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


def test_older_threads_are_ignored() -> None:
    """The clock does not wait for threads that started before it."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait, name="cuggino-notify-mail")
    thread.start()
    clock = VirtualClock(patience=0.2)
    clock.schedule_relative(5, lambda *_: None)
    clock.advance_to(clock.at(10))
    assert 10 == clock.elapsed
    ended.set()
    thread.join()


def test_hanging_process_fails_the_test() -> None:
    """A process that exceeds the patience of an instant fails the test and is named."""
    clock = VirtualClock(patience=0.2)
    with no_leaks():
        subscription = process_lines(["sleep", "100"]).subscribe(scheduler=clock)
        with pytest.raises(StandsStill, match=r"still for 0.2 real seconds at 0 s: cuggino-sleep"):
            clock.advance_to(clock.at("1h"))
        subscription.dispose()


def test_polls_run_before_jumps() -> None:
    """A poll runs once at the end of each instant and may add to it."""
    clock = VirtualClock()
    looks: list[float] = []
    with clock.before_jumps(lambda: looks.append(clock.elapsed)):
        play(interval(10).pipe(ops.take(2)), clock=clock)
    clock.advance_to(clock.at(100))
    assert [0, 10] == looks


def test_pending_timers() -> None:
    """Canceled timers do not count; the last action of a series does."""
    clock = VirtualClock()
    first = clock.schedule_relative(10, lambda *_: None)
    clock.schedule_relative(20, lambda *_: None)
    first.dispose()
    assert 1 == clock.pending
    clock.advance_to(clock.at(20))
    assert 0 == clock.pending


def test_time_does_not_go_back() -> None:
    """A past time leaves the clock unchanged; an action may not advance it."""
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


def test_clock_survives_an_exception() -> None:
    """An exception of an action is raised, and the clock continues afterward."""
    clock = VirtualClock()

    def fail(*_: object) -> None:
        raise RuntimeError("no")

    clock.schedule_relative(1, fail)
    with pytest.raises(RuntimeError):
        clock.advance_to(clock.at(5))
    clock.advance_to(clock.at(5))
    assert 5 == clock.elapsed


def test_folder_changes_in_virtual_time(tmp_path: Path) -> None:
    """Every change is seen before time advances, also of a link to nothing."""
    clock = VirtualClock()
    seen: list[float] = []
    held = changes_seen_by(clock)(tmp_path).subscribe(lambda _: seen.append(clock.elapsed))
    link = tmp_path / "link"
    clock.schedule_absolute(clock.at(1), lambda *_: link.symlink_to("nowhere"))
    clock.schedule_absolute(clock.at(3), lambda *_: link.unlink())
    clock.advance_to(clock.at(5))
    assert [1, 3] == seen
    held.dispose()
    link.symlink_to("nowhere")
    clock.advance_to(clock.at(6))
    assert [1, 3] == seen
