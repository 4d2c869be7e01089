"""`alongside`, drawn."""

from __future__ import annotations

import pytest
from reactivex import Observable, abc, concat, just, operators as ops, throw
from reactivex.disposable import Disposable
from reactivex.subject import Subject

from cuggino.operators.alongside import alongside
from cuggino.testing import Marbles


def letters() -> Marbles:
    return Marbles(a="a", b="b", x="x", y="y", z="z")


def test_both_are_heard_while_the_source_lasts() -> None:
    """Items of both come as they happen; the end of the source ends the other."""
    t = letters()
    source, other = t.cold("-a--b--|"), t.hot("--x--y--z--")
    released: list[float | None] = []
    stream: Observable[object] = source.pipe(
        alongside(other),
        ops.do_action(on_completed=lambda: released.append(other.subscriptions[0][1])),
    )
    t.check(stream, "-ax-by-|")
    assert [7] == released  # before the end is passed on
    t.check_subscriptions(source, "^------!")
    t.check_subscriptions(other, "^------!")


def test_the_others_are_subscribed_first() -> None:
    """Immediate events of the others precede those of the source."""
    t = letters()
    source, one, two = t.cold("(a|)"), t.cold("x-x"), t.cold("(y|)")
    t.check(source.pipe(alongside(one, two)), "(xya|)")


def test_the_end_of_another_changes_nothing() -> None:
    """An other stream that completes is released, and the source continues."""
    t = letters()
    source, other = t.cold("-a---b|"), t.cold("--x|")
    t.check(source.pipe(alongside(other)), "-ax--b|")
    t.check_subscriptions(source, "^-----!")


def test_the_error_of_another_is_the_error_of_the_stream() -> None:
    """Both are released before the error is passed on."""
    t = letters()
    source, other = t.cold("-a---b|"), t.cold("--#")
    open_then: list[float | None] = []
    stream: Observable[object] = source.pipe(
        alongside(other),
        ops.do_action(on_error=lambda _: open_then.append(source.subscriptions[0][1])),
    )
    t.check(stream, "-a#")
    assert [2] == open_then
    t.check_subscriptions(source, "^-!")


def test_the_error_of_the_source() -> None:
    """The others are released before it is passed on."""
    t = letters()
    source, other = t.cold("-a#"), t.hot("x--y")
    released: list[float | None] = []
    stream: Observable[object] = source.pipe(
        alongside(other),
        ops.do_action(on_error=lambda _: released.append(other.subscriptions[0][1])),
    )
    t.check(stream, "xa#")
    assert [2] == released


@pytest.mark.parametrize("at", [0.5, 1.5, 2.5, 3.5])
def test_disposal_releases_all(at: float) -> None:
    """After it nothing is subscribed or emitted."""
    t = letters()
    source, other = t.cold("-a--b|"), t.hot("--x--y")
    seen = t.record(source.pipe(alongside(other)), dispose_at=at)
    assert all(when < at for when, _, _ in seen)
    assert [(0, at)] == source.subscriptions == other.subscriptions


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


def test_another_that_fails_at_once() -> None:
    """The source is never subscribed to."""
    t = letters()
    source = t.cold("a|")
    failed: Subject[object] = Subject()
    failed.on_error(t.error)
    t.check(source.pipe(alongside(failed)), "#")
    assert [] == source.subscriptions


def test_it_can_be_subscribed_again() -> None:
    """Each subscription has its own end."""
    t = letters()
    stream = just("a").pipe(alongside(throw(t.error).pipe(ops.delay_subscription(5))))
    t.check(concat(stream, stream), "(aa|)")
