"""The marbles: what can be drawn, and what is told when a stream is another one."""

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
def test_a_diagram(diagram: str, seen: list[Any]) -> None:
    """A character is a second, a group an instant, a word with a unit that much time."""
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
def test_what_cannot_be_read(diagram: str, why: str) -> None:
    """A diagram that cannot be read is refused: where, and why."""
    with pytest.raises(ValueError) as refused:
        letters(e=RuntimeError("no")).parse(diagram)
    assert why.replace("a b d", "a b d e") in str(refused.value)


@pytest.mark.parametrize("diagram", ["", "---", "!", "-!^", "^-^", "^!!", "^-a-!", "^|"])
def test_what_is_no_subscription(diagram: str) -> None:
    """A subscription begins once, and ends at most once, and nothing else is in it."""
    t = letters()
    with pytest.raises(ValueError, match="subscription"):
        t.check_subscriptions(t.cold("a"), diagram)


def test_a_letter_may_be_an_error() -> None:
    """A letter that stands for an exception ends its stream with it; several errors fit in."""
    q, f = QuotaExceeded("limit"), AgentFailed("it broke", reason="crash")
    t = letters(q=q, f=f)
    first, second = t.cold("-a-q"), t.cold("-b-f")
    t.check(first.pipe(ops.catch(second)), "-a--b-f")
    t.check_subscriptions(first, "^--!")
    t.check_subscriptions(second, "---^--!")


def test_an_error_is_known_by_class_and_words() -> None:
    """An expected error need not be the same object; other words, or another class, differ."""
    t = letters(f=AgentFailed("it broke", reason="crash"), x=RuntimeError("it broke"))
    broken: Observable[Any] = throw(AgentFailed("it broke", reason="crash"))
    t.check(broken, "f")
    for other in ("x", "#", "|", ""):
        with pytest.raises(AssertionError, match="another one than was drawn"):
            letters(x=RuntimeError("it broke")).check(broken, other)


def test_a_class_is_any_of_it() -> None:
    """Expected, a class stands for each event, or error, of it; it cannot be played."""
    t = Marbles(a=A, D=Done, E=RuntimeError)
    t.check(Marbles(d=Done(content="x")).cold("-d#"), "-DE")
    with pytest.raises(ValueError, match="Done in '-D' is a class, which can be expected, but not"):
        t.cold("-D")


def test_a_subscription_is_drawn() -> None:
    """Who comes late to a hot stream misses what was before, and sees none after leaving."""
    t = letters()
    hot = t.hot("a-b-a-b|")
    t.check(hot, "--b-a", subscription="-^---!")
    t.check_subscriptions(hot, "-^---!")


def test_subscriptions_that_differ_are_told() -> None:
    """Both are told, in seconds, with the stream that it is about."""
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


def test_a_difference_is_drawn() -> None:
    """A failure shows both diagrams, and line by line what is missing and what is too much."""
    t = letters(w=AgentFailed("it broke", reason="crash"))
    with pytest.raises(AssertionError) as told:
        t.check(t.cold("-a--(bd) 40s w"), "-a--(bb) 40s |")
    assert [
        "the stream is another one than was drawn",
        "expected  -a--(bb) 40s |",
        "but saw   -a--(bd) 40s w",
        "          1 s  a  AgentMessage(text='one')",
        "          4 s  b  Note(content='two')",
        "-         4 s  b  Note(content='two')",
        "-        45 s  |  completed",
        "+         4 s  d  Done(content='over')",
        "+        45 s  w  AgentFailed('it broke')",
    ] == str(told.value).splitlines()


def test_what_has_no_letter_is_a_question_mark() -> None:
    """An event that was not expected at all is shown below the diagrams."""
    with pytest.raises(AssertionError) as told:
        Marbles(a=A).check(letters().cold("a-b|"), "a-a|")
    assert "but saw   a-?|\n" in str(told.value)
    assert "+         2 s  ?  Note(content='two')" in str(told.value)


@pytest.mark.parametrize(
    "diagram", ["-a-b|", "(ab|)", "a 29s b", "a 100ms b", "-(ab)-(ab)-#", "a 1h b 90s |"]
)
def test_a_drawing_says_the_same(diagram: str) -> None:
    """What was read and is drawn again says the same as before."""
    t = letters()
    seen = t.parse(diagram)
    assert seen == t.parse(drawn(seen, {**t.events, "#": t.error}))


def test_several_checks() -> None:
    """Each check begins with a second 0 of its own, for hot streams too."""
    t = letters()
    cold, hot = t.cold("-a|"), t.hot("--b|")
    for _ in range(3):
        t.check(merge(cold, hot), "-ab|")
    t.check_subscriptions(cold, *["^-!"] * 3)


def test_who_is_left_subscribed_is_told() -> None:
    """`check_released` says which stream is still subscribed, and since when."""
    t = letters()
    agent = t.cold("-a")
    held = agent.subscribe(scheduler=t.clock)
    with pytest.raises(AssertionError, match=r'still subscribed:\n  cold\("-a"\) since 0 s'):
        t.check_released()
    held.dispose()
    t.check_released()


def test_a_clock_that_is_shared() -> None:
    """Two marbles with one clock are one time; it need not begin in 1970."""
    clock = VirtualClock()
    clock.advance_to(clock.at(100))
    one, two = letters(clock=clock), Marbles(clock=clock)
    assert (100, 100) == (one.now, two.now)
    one.check(never(), "", dispose_at="1h", until="2h")
    assert 7200 == clock.elapsed


def test_a_hot_stream_that_is_drawn_by_its_subscriber_runs_once() -> None:
    """Drawn while a record runs, it begins with its subscriber, and says everything once."""
    t = Marbles(a=1)
    t.check(defer(lambda _: t.hot("-a-a|")), "-a-a|")
