"""`catch_tag`: handle errors by their class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc

from cuggino.operators.managed import Held, Subscription, managed
from cuggino.operators.mistakes import require_classes, require_result

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


def catch_tag(
    tag: type[E] | tuple[type[E], ...], handle: Callable[[E], Observable[T]]
) -> Callable[[Observable[T]], Observable[T]]:
    """Continue with `handle(error)` when the source fails with an error of these classes.

    ::

        source:         -a-#                # is QuotaExceeded
        handled:        b-|
        catch_tag:      -a-b-|

        source:         -a-#                # is another error
        catch_tag:      -a-#

    `tag` is one of the errors in `cuggino.errors`, or several::

        session.pipe(catch_tag(QuotaExceeded, lambda limit: notice(limit.resets_at)))

    The source is released before `handle` is called. Other errors pass unchanged, and so does an
    exception of the subscriber. An exception of `handle` is the stream's error. (RxPY's `catch`
    takes every error, and releases the source after its successor has begun.)
    """
    require_classes(tag, "catch_tag")

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: Subscription[T], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            running = Held()
            failure: list[E] = []

            def fail(error: Exception) -> None:
                if not isinstance(error, tag) or observer.closed:
                    observer.on_error(error)
                    return
                failure.append(error)
                if subscribed:
                    recover()

            @observer.safely
            def recover() -> None:
                error = running.release(failure[0])
                if error is not None and error is not failure[0]:
                    observer.on_error(error)
                    return
                successor = handle(failure[0])
                require_result(successor, "`handle` of catch_tag()")
                running.hold(
                    lambda: successor.subscribe(
                        observer.on_next,
                        lambda error: running.end(observer, error),
                        lambda: running.end(observer),
                        scheduler=scheduler,
                    )
                )

            subscribed = False
            running.hold(
                lambda: source.subscribe(
                    observer.on_next, fail, observer.on_completed, scheduler=scheduler
                )
            )
            subscribed = True
            if failure and not observer.closed:
                recover()
            return running

        return managed(subscribe)

    return operator
