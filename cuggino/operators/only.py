"""`only`: the events of some classes, with their types."""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import Any, TypeVar, overload

from reactivex import Observable, operators as ops

from cuggino.operators.managed import managed
from cuggino.operators.mistakes import require_classes

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


@overload
def only(kind: type[A], /) -> Callable[[Observable[Any]], Observable[A]]: ...


@overload
def only(first: type[A], second: type[B], /) -> Callable[[Observable[Any]], Observable[A | B]]: ...


@overload
def only(
    first: type[A], second: type[B], third: type[C], /
) -> Callable[[Observable[Any]], Observable[A | B | C]]: ...


@overload
def only(
    first: type[A], second: type[B], third: type[C], fourth: type[D], /
) -> Callable[[Observable[Any]], Observable[A | B | C | D]]: ...


@overload
def only(*kinds: type[A]) -> Callable[[Observable[Any]], Observable[A]]: ...


@overload
def only(*kinds: UnionType) -> Callable[[Observable[Any]], Observable[Any]]: ...


def only(*kinds: type[Any] | UnionType) -> Callable[[Observable[Any]], Observable[Any]]:
    """Pass on the events of these classes, as `isinstance` finds them.

    ::

        source:                     -a-D-b-|
        only(Done):                 ---D---|

    A type checker knows the class of what passes::

        commits: Observable[CommitPerformed] = runtime.run(focus="x").pipe(only(CommitPerformed))
        ends = runtime.watch().pipe(only(WatchItemCompleted, WatchItemParked))

    A union of classes, `only(A | B)`, works as well, but checkers take its events for `Any`.
    (RxPY's `filter` narrows no type.)
    """
    if not kinds:
        raise TypeError("only() needs the classes of the events to pass on")
    require_classes(kinds, "only")
    passing = ops.filter(lambda event: isinstance(event, kinds))
    return lambda source: managed(
        lambda observer, scheduler: source.pipe(passing).subscribe(observer, scheduler=scheduler)
    )
