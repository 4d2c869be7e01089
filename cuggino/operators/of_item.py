"""Mark the events of an attempt with its backlog item."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, abc

from cuggino.events import Event
from cuggino.operators.batches import EventBatch, unopened
from cuggino.operators.managed import Subscription, attach, managed

T = TypeVar("T")


def of_item(item: str) -> Callable[[Observable[T]], Observable[T]]:
    """Set `item` of every event that has none to the file name of a backlog item.

    ::

        source:         -a-b|
        of_item("x"):   -c-d|

    Values that are not events pass unchanged. (RxPY's `map` does not support batches.)
    """

    def marked(value: Any) -> Any:
        if type(value) is EventBatch:
            return EventBatch([event.of_item(item) for event in value.events], value.is_cut)
        return value.of_item(item) if isinstance(value, Event) else value

    def operator(source: Observable[Any]) -> Observable[Any]:
        def subscribe(
            observer: Subscription[Any], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            return attach(
                source,
                lambda value: observer.on_next(marked(value)),
                observer.on_error,
                observer.on_completed,
                scheduler=scheduler,
            )

        return managed(subscribe)

    return unopened(operator)
