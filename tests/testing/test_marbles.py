"""Marble diagrams: parsing, drawing, and the failure messages for differing streams."""

from __future__ import annotations

from typing import Any

import pytest
from reactivex import Observable, concat, defer, merge, never, operators as ops, throw

from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentMessage, Done, Note
from cuggino.testing import Marbles, VirtualClock
from cuggino.testing.diagrams import drawn

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
        "the stream differs from the diagram",
        "expected  -a--(bb) 40s |",
        "but saw   -a--(bd) 40s w",
        "          1 s  a  AgentMessage(text='one')",
        "          4 s  b  Note(content='two')",
        "-         4 s  b  Note(content='two')",
        "-        45 s  |  completed",
        "+         4 s  d  Done(content='over')",
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
