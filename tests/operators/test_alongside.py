"""`alongside`, `only`, `repeat_on` and `StateRef`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, assert_type
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st
from reactivex import Observable, abc, concat, just, operators as ops, throw
from reactivex.disposable import Disposable

from cuggino.errors import AgentFailed
from cuggino.events import AgentMessage, AgentRetry, Done, Event, LlmAgentEvent, Note
from cuggino.operators import Schedule, repeat_on, retry_session
from cuggino.operators.alongside import alongside
from cuggino.operators.interrupt_when import interrupt_when
from cuggino.operators.only import only
from cuggino.operators.state_ref import StateRef
from cuggino.testing import Marbles, VirtualClock


def letters() -> Marbles:
    return Marbles(a="a", b="b", x="x", y="y", z="z")


@pytest.mark.parametrize(
    ("source", "other", "expected", "ends"),
    [
        ("-a--b--|", "--x--y--z--", "-ax-by-|", [7, 7]),
        ("-a---b|", "--x|", "-ax--b|", [6, 3]),
        ("-a---b|", "--#", "-a#", [2, 2]),
        ("-a#", "x--y", "xa#", [2, 2]),
        ("(a|)", "x-x", "(xa|)", [0, 0]),
    ],
    ids=["the source ends", "the other ends", "the other fails", "the source fails", "at once"],
)
def test_both_are_heard_while_the_source_lasts(
    source: str, other: str, expected: str, ends: list[float]
) -> None:
    """The end of the source, and any error, ends both, before it is passed on.

    The end of the other changes nothing. The other is subscribed first.
    """
    t = letters()
    both = [t.cold(source), t.cold(other)]
    seen: list[float | None] = []

    def look(_: object = None) -> None:
        seen.extend(stream.subscriptions[0][1] for stream in both)

    t.check(both[0].pipe(alongside(both[1]), ops.do_action(None, look, look)), expected)
    assert ends == seen


def test_the_others_are_subscribed_in_order() -> None:
    """Immediate events of the others precede those of the source."""
    t = letters()
    t.check(t.cold("(a|)").pipe(alongside(t.cold("x-x"), t.cold("(y|)"))), "(xya|)")


def test_a_source_that_ends_at_once() -> None:
    """It completes within `subscribe`, and leaves nothing subscribed."""
    t = letters()
    other = t.hot("-x")

    def subscribe(
        observer: abc.ObserverBase[object], _scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        observer.on_completed()
        return Disposable()

    t.check(Observable(subscribe).pipe(alongside(other)), "|")
    assert [(0, 0)] == other.subscriptions


def test_it_can_be_subscribed_again() -> None:
    """Each subscription has its own end."""
    t = letters()
    stream = just("a").pipe(alongside(throw(t.error).pipe(ops.delay_subscription(5))))
    t.check(concat(stream, stream), "(aa|)")


EVENTS: dict[str, Any] = {
    "m": AgentMessage(text="m"),
    "d": Done(content="d"),
    "n": Note(content="n"),
    "x": "text",
}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((Done,), "--d-|"),
        ((Done, Note), "--dn|"),
        ((LlmAgentEvent,), "-m--|"),
        ((Event,), "-mdn|"),
        ((Done | Note,), "--dn|"),
        ((Done | Note, str), "x-dn|"),
    ],
)
def test_events_of_these_classes_pass(kinds: tuple[Any, ...], expected: str) -> None:
    """A subclass passes as its base, and whatever is no event is dropped like any other value."""
    t = Marbles(**EVENTS)
    t.check(t.cold("xmdn|").pipe(only(*kinds)), expected)


def test_classes_are_required() -> None:
    """Nothing, or what is no class, is an error where it is written."""
    with pytest.raises(TypeError, match="needs the classes"):
        only()
    with pytest.raises(TypeError):
        only("Done")  # type: ignore[call-overload]


def test_types() -> None:
    """A type checker knows what passes (mypy checks this file)."""
    t = Marbles(**EVENTS)
    stream: Observable[Event] = t.cold("mdn|")
    assert_type(stream.pipe(only(Done)), Observable[Done])
    assert_type(stream.pipe(only(Done, Note)), Observable[Done | Note])
    three = stream.pipe(only(Done, Note, AgentMessage))
    assert_type(three, Observable[Done | Note | AgentMessage])
    t.check(three, "mdn|")


ROME = ZoneInfo("Europe/Rome")
NIGHTLY = Schedule.cron("30 2 * * *", "Europe/Rome")


def marbles(day: str) -> Marbles:
    """Return marbles whose second 0 is 2 am of that day in Rome."""
    start = datetime.fromisoformat(f"{day} 02:00").replace(tzinfo=ROME).astimezone(UTC)
    down = AgentFailed("down", reason="connection")
    return Marbles(clock=VirtualClock(start=start), error=down, a="a")


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-06-06", "a-- 29m57s a-- 23h59m57s a--|"),
        ("2026-03-28", "a-- 29m57s a-- 23h29m57s a--|"),  # at 03:00, as 02:30 is skipped
        ("2026-10-24", "a-- 29m57s a-- 23h59m57s a--|"),  # at the first 02:30
        ("2026-10-25", "a-- 29m57s a-- 24h59m57s a--|"),
    ],
)
def test_each_night(day: str, expected: str) -> None:
    """The work of a night, which takes three seconds, does not delay that of the next one."""
    t = marbles(day)
    t.check(t.cold("a--|").pipe(repeat_on(NIGHTLY.times(2))), expected)


def test_a_retry_at_night() -> None:
    """A failed session is tried again when the expression is due."""
    t = marbles("2026-06-06")
    source, again = t.cold("--#"), t.cold("-|")
    seen = t.record(source.pipe(retry_session(NIGHTLY, again=lambda _: again)), until=90_000)
    assert [1798.0] == [event.retry_in for _, _, event in seen if isinstance(event, AgentRetry)]
    assert (1801, "completed", None) == seen[-1]


def test_the_value_and_then_each_change() -> None:
    """A subscriber sees the current value at once, then all that are set, equal ones too."""
    ref, early, late = StateRef("a"), list[str](), list[str]()
    ref.changes.subscribe(early.append)
    ref.set("b")
    ref.changes.subscribe(late.append)
    ref.set("b")
    assert "bc" == ref.update(lambda value: value + "c") == ref.value
    assert ["a", "b", "b", "bc"] == early
    assert ["b", "b", "bc"] == late


@given(st.lists(st.integers()), st.integers(0, 9))
def test_a_subscriber_sees_the_rest_of_all_values(values: list[int], when: int) -> None:
    """Whenever it subscribes: the value of that moment, and all that follow."""
    ref, seen = StateRef(-1), list[int]()
    for index, value in enumerate(values):
        if index == when:
            ref.changes.subscribe(seen.append)
        ref.set(value)
    assert seen == ([-1, *values][when:] if when < len(values) else [])
    assert ref.value == (values[-1] if values else -1)


def test_a_value_set_by_a_subscriber() -> None:
    """All subscribers see the values in the order in which they were set, the last one last."""
    ref, first, last = StateRef(0), list[int](), list[int]()

    def halve(value: int) -> None:
        first.append(value)
        if value > 1:
            ref.set(value // 2)
            assert ref.value == value // 2

    ref.changes.subscribe(halve)
    ref.changes.subscribe(last.append)
    ref.set(8)
    assert [0, 8, 4, 2, 1] == first == last
    assert 1 == ref.value


def test_a_value_set_while_subscribing() -> None:
    """A subscriber that sets a value when it gets the first one sees both."""
    ref, seen = StateRef(0), list[int]()
    ref.changes.pipe(ops.do_action(lambda n: ref.set(1) if n == 0 else None)).subscribe(seen.append)
    assert [0, 1] == seen
    assert 1 == ref.value


def test_an_exception_where_nobody_handles_it() -> None:
    """A subscriber without `on_error` raises where the value is set; the next one is emitted."""
    ref, seen = StateRef(0), list[int]()

    def fail(value: int) -> None:
        if value == 1:
            ref.set(2)
            raise KeyError(value)

    ref.changes.subscribe(fail)
    ref.changes.subscribe(seen.append)
    with pytest.raises(KeyError):
        ref.set(1)
    assert 2 == ref.value
    ref.set(3)
    assert [0, 2, 3] == seen


def test_a_disposed_subscriber_sees_nothing_more() -> None:
    """Disposal ends it, also in the middle of a change."""
    ref, seen = StateRef(0), list[int]()
    held = ref.changes.subscribe(seen.append)
    ref.changes.subscribe(lambda n: held.dispose() if n == 2 else None)
    for value in (1, 2, 3):
        ref.set(value)
    assert [0, 1, 2] == seen


def test_a_failing_subscriber() -> None:
    """Its exception is its own error; neither the one who sets nor the others notice."""
    ref, errors, seen = StateRef(1), list[Exception](), list[int]()

    def inverse(value: int) -> int:
        return 1 // value

    ref.changes.pipe(ops.map(inverse)).subscribe(lambda _: None, errors.append)

    def fail(value: int) -> None:
        if value == 0:
            raise KeyError(value)

    ref.changes.subscribe(fail, errors.append)
    ref.changes.subscribe(seen.append)
    ref.set(0)
    ref.set(2)
    assert [ZeroDivisionError, KeyError] == [type(error) for error in errors]
    assert [1, 0, 2] == seen


@pytest.mark.parametrize(("at", "expected"), [(0, "(X|)"), (3, "a--(X|)")])
def test_a_state_interrupts_a_stage(at: int, expected: str) -> None:
    """The state of a flag ends a stream when it is set, or at once if it was set before."""
    t = Marbles(a="a", X="X")
    is_asked = StateRef(False)
    stop = is_asked.changes.pipe(ops.filter(bool))
    if not at:
        is_asked.set(True)
    else:
        t.scheduler.schedule_relative(at, lambda *_: is_asked.set(True))
    t.check(t.cold("a-----").pipe(interrupt_when(stop, "X")), expected)
