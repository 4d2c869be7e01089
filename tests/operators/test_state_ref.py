"""`StateRef`: a value and its changes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from reactivex import operators as ops

from cuggino.operators.interrupt_when import interrupt_when
from cuggino.operators.state_ref import StateRef
from cuggino.testing import Marbles


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
