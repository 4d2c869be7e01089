"""`ready_by`: what may begin, by what has landed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from reactivex import Observable, operators as ops

from cuggino.domain import ready_order


def ready_by(
    after: Mapping[str, Collection[str]],
) -> Callable[[Observable[Collection[str]]], Observable[tuple[str, ...]]]:
    """Map what has landed to what may begin: all whose predecessors have landed, in order.

    ::

        source:             -N---A---B-|     N: nothing has landed; A: a has; B: a and b have
        ready_by(after):    -x---y---z-|     x: a and d; y: b and d; z: c and d

    Here b comes after a, and c after b. What has landed is not emitted again. What comes after
    itself, or after something unknown, never is.
    """
    return ops.map(lambda landed: ready_order(_without(after, landed), landed=landed).ready)


def _without(
    after: Mapping[str, Collection[str]], landed: Collection[str]
) -> Mapping[str, Collection[str]]:
    return {name: before for name, before in after.items() if name not in landed}
