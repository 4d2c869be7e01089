"""`managed`: the contract of an operator, whatever its source and its subscriber do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, abc
from reactivex.disposable import Disposable

from cuggino.operators import Flow, acquire_release, flow, forward, managed
from cuggino.operators.mapcat import mapcat
from cuggino.testing import Marbles


class Source:
    """A managed stream whose observer is kept, to be called at the wrong time."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.observer: abc.ObserverBase[Any] | None = None

    def subscribe(
        self,
        start: Callable[[Any], None] = lambda _: None,
        on_next: Callable[[Any], object] = lambda _: None,
    ) -> abc.DisposableBase:
        def subscribe(
            observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            self.observer = observer
            start(observer)
            return Disposable(lambda: self.log.append("released"))

        def take(value: Any) -> None:
            self.log.append(value)
            on_next(value)

        return managed(subscribe).subscribe(
            take, lambda error: self.log.append(str(error)), lambda: self.log.append("completed")
        )


ENDINGS: dict[str, Callable[[Any], None]] = {
    "completed": lambda observer: observer.on_completed(),
    "oh": lambda observer: observer.on_error(LookupError("oh")),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("is_within", [True, False])
def test_nothing_follows_the_end(ending: str, is_within: bool) -> None:
    """The end comes once, after the release, also if it came within `subscribe`."""
    source = Source()
    end = ENDINGS[ending]
    source.subscribe(end if is_within else lambda _: None)
    assert source.observer is not None
    source.observer.on_next(1)
    if not is_within:
        end(source.observer)
    source.observer.on_next(2)
    for again in ENDINGS.values():
        again(source.observer)
    assert (["released", ending] if is_within else [1, "released", ending]) == source.log


def test_nothing_follows_disposal() -> None:
    """A source that has not noticed it yet emits to nobody."""
    source = Source()
    source.subscribe().dispose()
    assert source.observer is not None
    source.observer.on_next(1)
    source.observer.on_completed()
    assert ["released"] == source.log


def test_a_subscriber_that_raises() -> None:
    """The source is released, then the exception is the error; the source does not get it."""
    source = Source()

    def fail(_value: object) -> None:
        raise LookupError("here")

    source.subscribe(on_next=fail)
    assert source.observer is not None
    source.observer.on_next(1)
    source.observer.on_next(2)
    assert [1, "released", "here"] == source.log


def test_a_subscription_that_raises() -> None:
    """It is the error of the stream; after the end it is raised."""
    source = Source()

    def fail(_observer: object) -> None:
        raise LookupError("no source")

    source.subscribe(fail)
    assert ["no source"] == source.log


def test_disposal_while_a_resource_is_acquired() -> None:
    """A resource acquired after the disposal is released at once."""
    log: list[str] = []
    held: list[abc.DisposableBase] = []
    t = Marbles()

    def acquire() -> int:
        held[0].dispose()
        return 1

    late = acquire_release(acquire, lambda _: rx.just(1), lambda _: log.append("released"))
    waiting: Observable[int] = rx.timer(1).pipe(mapcat(lambda _: [1]))

    def story() -> Flow[None]:
        yield from forward(waiting)
        yield from forward(late)

    held.append(flow(story).subscribe(lambda _: log.append("event"), scheduler=t.clock))
    t.clock.advance_by(5)
    assert ["event", "released"] == log
