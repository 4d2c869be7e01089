"""`acquire_release` and `Scope`: resources that live as long as a subscription."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

from cuggino.operators.managed import Subscription, managed
from cuggino.operators.mistakes import require_result

T = TypeVar("T")
Resource = TypeVar("Resource")


class Scope:
    """Several resources that are released together, the last acquired first.

    Use it as a context manager, such as in a `flow`, whose disposal closes the generator and with
    it the scope::

        def story() -> Flow[None]:
            with Scope() as scope:
                lock = scope.acquire(take_lock, release_lock)
                folder = scope.acquire(make_folder, remove_folder)
                yield from forward(work_in(folder))

    or with `scoped`, for a stream. Every resource is released even when releasing another one
    fails or is interrupted; the first such error, or the interruption, is raised at the end.
    """

    def __init__(self) -> None:
        self._releases: list[Callable[[], object]] = []

    def acquire(
        self, acquire: Callable[[], Resource], release: Callable[[Resource], object]
    ) -> Resource:
        """Acquire a resource; it is released when the scope closes."""
        resource = acquire()
        self.defer(lambda: release(resource))
        return resource

    def defer(self, release: Callable[[], object]) -> None:
        """Call `release` when the scope closes."""
        self._releases.append(release)

    def close(self) -> None:
        """Release everything, in reverse order; any number of times."""
        failure: BaseException | None = None
        while self._releases:
            try:
                self._releases.pop()()
            except Exception as error:
                failure = failure or error
            except BaseException as error:  # an interruption precedes failures
                failure = error
        if failure is not None:
            raise failure

    def __enter__(self) -> Scope:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Together(CompositeDisposable):
    """Disposables that are disposed in order, all of them even when one raises.

    The first such error is raised at the end. (RxPY's `CompositeDisposable` stops with it.)
    """

    def dispose(self) -> None:
        with self.lock:
            self.is_disposed = True
            held, self.disposable = self.disposable, []
        with Scope() as scope:
            for disposable in reversed(held):
                scope.defer(disposable.dispose)


def scoped(use: Callable[[Scope], Observable[T]]) -> Observable[T]:
    """Return the stream `use(scope)`, with a scope of its own for each subscription.

    ::

        inner:      -a-b|
        scoped:     -a-b|

    The scope is closed once: when the stream completes or fails, before that is passed on, when
    it is disposed, or when `use` raises, whose exception is the stream's error.
    (RxPY's `using` holds one resource.)
    """
    return acquire_release(Scope, use, Scope.close)


def acquire_release(
    acquire: Callable[[], Resource],
    use: Callable[[Resource], Observable[T]],
    release: Callable[[Resource], None],
) -> Observable[T]:
    """Return the stream `use(resource)`, with a resource of its own for each subscription.

    ::

        inner:              -a-b|
        acquire_release:    -a-b|

    `release` is called exactly once: when the stream completes or fails, before that is passed
    on, when it is disposed, or when `use` or the subscription raises. An exception of `acquire` is
    the stream's error, and so is one of `release` when the stream ends. (RxPY's `using` needs a
    disposable as its resource, and releases it after the end.)
    """

    def subscribe(
        observer: Subscription[T], scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        resource = acquire()
        held = Disposable(lambda: release(resource))
        try:
            stream = use(resource)
            require_result(stream, "`use` of acquire_release() or scoped()")
            using = stream.subscribe(observer, scheduler=scheduler)
        except BaseException:
            held.dispose()
            raise
        return Together(using, held)

    return managed(subscribe)
