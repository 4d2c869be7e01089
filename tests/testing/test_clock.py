"""The virtual clock, marble diagrams, and leaks."""

from __future__ import annotations

import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from reactivex import (
    Observable,
    concat,
    defer,
    interval,
    merge,
    never,
    operators as ops,
    throw,
    timer,
)

from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, Done, Note
from cuggino.processes.process import process_lines
from cuggino.testing import Marbles, StandsStill, VirtualClock, no_leaks
from cuggino.testing.clock import seconds, time_text
from cuggino.testing.diagrams import drawn
from cuggino.testing.doubles import changes_seen_by
from cuggino.testing.leaks import is_guardian
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


A, B = AgentMessage(text="one"), Note(content="two")


def letters(**events: Any) -> Marbles:
    return Marbles(a=A, b=B, d=Done(content="over"), **events)


@pytest.mark.parametrize(
    ("diagram", "seen"),
    [
        ("", []),
        ("a", [(0, "next", A)]),
        ("-a-b|", [(1, "next", A), (3, "next", B), (4, "completed", None)]),
        ("-(ab)a", [(1, "next", A), (1, "next", B), (2, "next", A)]),
        ("a 29s b", [(0, "next", A), (30, "next", B)]),
        ("a 1h30m b", [(0, "next", A), (5401, "next", B)]),
        ("100ms a", [(0.1, "next", A)]),
        ("- a -  b", [(1, "next", A), (3, "next", B)]),
    ],
)
def test_diagram(diagram: str, seen: list[Any]) -> None:
    """A character is a second, a group one instant, a word with a unit that duration."""
    assert seen == letters().parse(diagram)


@pytest.mark.parametrize(
    ("diagram", "why"),
    [
        ("-x", "'-x': 'x' is no event; known: a b d\n  ^"),
        ("-a 25m|", "'2' is no event; known: a b d; a time is a word of its own"),
        ("-(ab", "'(' has no counterpart"),
        ("-ab)", "')' has no counterpart"),
        ("-((a))", "'(' has no counterpart"),
        ("-|a", "'a' comes after the end"),
        ("-#|", "'|' comes after the end"),
        ("-e-a", "'a' comes after the end"),
        ("-^a", "'^' belongs into the diagram of a subscription"),
    ],
)
def test_invalid_diagram(diagram: str, why: str) -> None:
    """An invalid diagram is rejected with the position and the reason."""
    with pytest.raises(ValueError) as refused:
        letters(e=RuntimeError("no")).parse(diagram)
    assert why.replace("a b d", "a b d e") in str(refused.value)


@pytest.mark.parametrize("diagram", ["", "---", "!", "-!^", "^-^", "^!!", "^-a-!", "^|"])
def test_invalid_subscription_diagram(diagram: str) -> None:
    """A subscription has one start, at most one end, and nothing else."""
    t = letters()
    with pytest.raises(ValueError, match="subscription"):
        t.check_subscriptions(t.cold("a"), diagram)


def test_letter_for_an_error() -> None:
    """A letter for an exception ends its stream; one diagram can have several errors."""
    q, f = QuotaExceeded("limit"), AgentFailed("it broke", reason="crash")
    t = letters(q=q, f=f)
    first, second = t.cold("-a-q"), t.cold("-b-f")
    t.check(first.pipe(ops.catch(second)), "-a--b-f")
    t.check_subscriptions(first, "^--!")
    t.check_subscriptions(second, "---^--!")


def test_errors_are_equal_by_class_and_message() -> None:
    """An expected error may be another object, but not another class or message."""
    t = letters(f=AgentFailed("it broke", reason="crash"), x=RuntimeError("it broke"))
    broken: Observable[Any] = throw(AgentFailed("it broke", reason="crash"))
    t.check(broken, "f")
    for other in ("x", "#", "|", ""):
        with pytest.raises(AssertionError, match="differs from the diagram"):
            letters(x=RuntimeError("it broke")).check(broken, other)


def test_class_matches_any_instance() -> None:
    """An expected class matches each of its events or errors; it cannot be played."""
    t = Marbles(a=A, D=Done, E=RuntimeError)
    t.check(Marbles(d=Done(content="x")).cold("-d#"), "-DE")
    with pytest.raises(ValueError, match="Done in '-D' is a class, which can be expected, but not"):
        t.cold("-D")
    with pytest.raises(AssertionError, match="-         1 s  D  any Done"):
        t.check(Marbles(d=A).cold("-d|"), "-D|")


def test_hot_stream_played_late() -> None:
    """A hot stream that is not recorded drops the events before its first subscriber."""
    t = letters()
    hot = t.hot("a---b|")
    t.clock.advance_to(t.at(2))
    seen: list[object] = []
    hot.subscribe(seen.append, scheduler=t.clock)
    t.clock.advance_to(t.at(10))
    assert [t.events["b"]] == seen


def test_hot_subscription() -> None:
    """A late subscriber of a hot stream misses earlier events, and later ones after leaving."""
    t = letters()
    hot = t.hot("a-b-a-b|")
    t.check(hot, "--b-a", subscription="-^---!")
    t.check_subscriptions(hot, "-^---!")


def test_different_subscriptions_are_reported() -> None:
    """Both are reported in seconds, with the name of the stream."""
    t = letters()
    agent = t.cold("-a-b|")
    t.record(concat(agent, agent), dispose_at=6)
    t.check_subscriptions(agent, "^---!", "----^-!")
    with pytest.raises(AssertionError) as told:
        t.check_subscriptions(agent, "^---!", "----^")
    assert (
        'expected subscriptions of cold("-a-b|")\n  from 0 s to 4 s\n  from 4 s to the end\n'
        "but saw\n  from 0 s to 4 s\n  from 4 s to 6 s"
    ) == str(told.value)
    with pytest.raises(AssertionError, match=r"expected subscriptions of .*\n  none\nbut saw"):
        t.check_subscriptions(agent)


def test_difference_is_drawn() -> None:
    """A failure shows both diagrams and lists missing and unexpected events."""
    t = letters(w=AgentFailed("it broke", reason="crash"))
    with pytest.raises(AssertionError) as told:
        t.check(t.cold("-a--(bd) 40s w"), "-a--(bb) 40s |")
    assert [
        *("the stream differs from the diagram", "expected  -a--(bb) 40s |"),
        *("but saw   -a--(bd) 40s w", "          1 s  a  AgentMessage(text='one')"),
        *("          4 s  b  Note(content='two')", "-         4 s  b  Note(content='two')"),
        *("-        45 s  |  completed", "+         4 s  d  Done(content='over')"),
        "+        45 s  w  AgentFailed('it broke')",
    ] == str(told.value).splitlines()


def test_unexpected_event_is_a_question_mark() -> None:
    """An event without a letter is listed below the diagrams."""
    with pytest.raises(AssertionError) as told:
        Marbles(a=A).check(letters().cold("a-b|"), "a-a|")
    assert "but saw   a-?|\n" in str(told.value)
    assert "+         2 s  ?  Note(content='two')" in str(told.value)


@pytest.mark.parametrize(
    "diagram", ["-a-b|", "(ab|)", "a 29s b", "a 100ms b", "-(ab)-(ab)-#", "a 1h b 90s |"]
)
def test_drawing_round_trips(diagram: str) -> None:
    """Drawing a parsed diagram gives an equivalent diagram."""
    t = letters()
    seen = t.parse(diagram)
    assert seen == t.parse(drawn(seen, {**t.events, "#": t.error}))


def test_several_checks() -> None:
    """Each check starts at its own second 0, for hot streams too."""
    t = letters()
    cold, hot = t.cold("-a|"), t.hot("--b|")
    for _ in range(3):
        t.check(merge(cold, hot), "-ab|")
    t.check_subscriptions(cold, *["^-!"] * 3)


def test_open_subscription_is_reported() -> None:
    """`check_released` names the stream that is still subscribed, and since when."""
    t = letters()
    agent = t.cold("-a")
    held = agent.subscribe(scheduler=t.clock)
    with pytest.raises(AssertionError, match=r'still subscribed:\n  cold\("-a"\) since 0 s'):
        t.check_released()
    held.dispose()
    t.check_released()


def test_shared_clock() -> None:
    """Two marbles can share a clock, which need not start in 1970."""
    clock = VirtualClock()
    clock.advance_to(clock.at(100))
    one, two = letters(clock=clock), Marbles(clock=clock)
    assert (100, 100) == (one.now, two.now)
    one.check(never(), "", dispose_at="1h", until="2h")
    assert 7200 == clock.elapsed


def test_hot_stream_made_on_subscribe_runs_once() -> None:
    """A hot stream made during recording starts with its subscriber and emits once."""
    t = Marbles(a=1)
    t.check(defer(lambda _: t.hot("-a-a|")), "-a-a|")


def hidden(_process: psutil.Process) -> Any:
    raise psutil.AccessDenied


def test_a_file_without_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open file is reported by number where the names cannot be read."""
    path = tmp_path / "a"
    with pytest.raises(AssertionError) as told, no_leaks(within=0):
        file = path.open("w")
    file.close()
    assert f"left behind: open files {path}" == str(told.value)
    monkeypatch.setattr(psutil.Process, "open_files", hidden)
    with pytest.raises(AssertionError) as told, no_leaks(within=0):
        file = path.open("w")
    file.close()
    assert "left behind: open files" == str(told.value)


def test_a_process_without_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process is reported by its id where its name cannot be read."""
    monkeypatch.setattr(psutil.Process, "name", hidden)
    with pytest.raises(AssertionError, match="left behind: ") as told, no_leaks(within=0):
        child = subprocess.Popen(["sleep", "60"])
    child.kill()
    child.wait()
    assert f"process {child.pid} " in str(told.value)


def test_a_child_that_has_just_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose command line cannot be read counts as ended."""
    assert not is_guardian(psutil.Process())
    monkeypatch.setattr(psutil.Process, "cmdline", hidden)
    assert is_guardian(psutil.Process())
