"""`acquire_release`: a resource that lives as long as a subscription."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc, using
from reactivex.disposable import Disposable

T = TypeVar("T")
Resource = TypeVar("Resource")


def acquire_release(
    acquire: Callable[[], Resource],
    use: Callable[[Resource], Observable[T]],
    release: Callable[[Resource], None],
) -> Observable[T]:
    """The stream `use(resource)`, with a resource of its own for each subscription.

    `release` is called exactly once: when the stream completes, fails, is disposed, or when `use`
    or the subscription raises. An exception in `acquire` is the stream's error.
    """

    def subscribe_with(held: abc.DisposableBase | None) -> Observable[T]:
        assert isinstance(held, _Held)
        return use(held.resource)

    class _Held(Disposable):
        def __init__(self, resource: Resource) -> None:
            super().__init__(lambda: release(resource))
            self.resource = resource

    return using(lambda: _Held(acquire()), subscribe_with)
