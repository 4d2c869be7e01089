"""What is passed in place of a stream is a `TypeError` that says what to do, and never hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx

import cuggino
from cuggino.operators import Flow, ask, emit, flow, forward, on_loop
from cuggino.testing import Marbles


def story() -> Flow[None]:
    yield from emit(1)


async def _collected(stream: Any) -> list[Any]:
    return [event async for event in cuggino.aiterate(stream)]


def _yielded(stage: Callable[[Any], Flow[Any]], stream: Any) -> None:
    def outer() -> Flow[None]:
        yield from stage(stream)

    cuggino.run(flow(outer))


DOORS: dict[str, Callable[[Any], object]] = {
    "run": lambda stream: cuggino.run(stream, print),
    "iterate": lambda stream: list(cuggino.iterate(stream)),
    "aiterate": lambda stream: asyncio.run(_collected(stream)),
    "on_loop": on_loop,
    "forward": lambda stream: _yielded(forward, stream),
    "ask": lambda stream: _yielded(ask, stream),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (story, "not a generator function: write {door}(flow(story)) instead of {door}(story)"),
        (story(), "write {door}(flow(story)), with the function itself, instead of story()"),
        ("story", "{door}() needs an Observable, not str"),
        (None, "{door}() needs an Observable, not NoneType"),
    ],
    ids=["function", "generator", "text", "nothing"],
)
def test_what_is_not_a_stream(door: str, value: Any, advice: str) -> None:
    """The error names the function and what to write instead."""
    with pytest.raises(TypeError) as raised:
        DOORS[door](value)
    assert advice.format(door=door) in str(raised.value)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (story(), "write flow(story) instead of flow(story())"),
        (rx.never(), "this is an Observable already"),
        (None, "flow() needs a generator function, not NoneType"),
    ],
    ids=["generator", "stream", "nothing"],
)
def test_a_flow_of_something_else(value: Any, advice: str) -> None:
    """The error comes where the flow is made."""
    with pytest.raises(TypeError) as raised:
        flow(value)
    assert advice in str(raised.value)


def test_a_function_without_a_yield() -> None:
    """What it returns is known at subscription: the error is the stream's."""
    with pytest.raises(TypeError, match="it returned NoneType"):
        cuggino.run(flow(lambda: None))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(("step", "what"), [(rx.of(1), "a stream"), (1, "int"), (None, "NoneType")])
def test_a_bare_yield(step: Any, what: str) -> None:
    """The error is thrown where the `yield` stands."""
    seen: list[str] = []

    def bare() -> Flow[None]:
        try:
            yield step
        except TypeError as error:
            seen.append(str(error))
            raise

    with pytest.raises(TypeError, match="yield from forward"):
        cuggino.run(flow(bare))
    assert what in seen[0]


def test_a_bare_yield_can_be_survived() -> None:
    """A flow that catches the error goes on."""
    t = Marbles(a="a", x="x")

    def bare() -> Flow[None]:
        try:
            yield t.cold("a|")  # type: ignore[misc]
        except TypeError:
            yield from emit("x")

    t.check(flow(bare), "(x|)")
