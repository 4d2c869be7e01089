"""`with_state`: the state of a run, for everybody who wants to follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from reactivex import Observable, operators as ops

from cuggino.events import Event
from cuggino.operators import StateRef
from cuggino.runs.state.run import RunState

E = TypeVar("E", bound=Event)


def with_state(state: StateRef[RunState]) -> Callable[[Observable[E]], Observable[E]]:
    """Keep the state of a run in a `StateRef`, and pass its events on unchanged.

    `state.changes` emits the state before the first event, then the one after each, before the
    event is passed on: a view subscribes to it instead of folding the events itself. Times are
    those of the scheduler given at `subscribe`. Another process follows the run's journal with the
    same fold. For one run at a time; begin another one with `state.set(RunState())`.
    """

    def add(stamped: Any) -> None:
        state.update(lambda run: run.add(stamped.value, at=stamped.timestamp))

    def operator(source: Observable[E]) -> Observable[E]:
        stamped: Observable[Any] = source.pipe(ops.timestamp())
        kept: Observable[Any] = stamped.pipe(ops.do_action(add), ops.map(_event))
        return kept

    return operator


def _event(stamped: Any) -> Any:
    return stamped.value
