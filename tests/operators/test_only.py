"""`only`: events by class, with their types."""

from __future__ import annotations

from typing import Any, assert_type

import pytest
from reactivex import Observable

from cuggino.events import AgentMessage, Done, Event, LlmAgentEvent, Note
from cuggino.operators.only import only
from cuggino.testing import Marbles

EVENTS: dict[str, Any] = {
    "m": AgentMessage(text="m"),
    "d": Done(content="d"),
    "n": Note(content="n"),
    "x": "text",
}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((Done,), "--d-|"),
        ((Done, Note), "--dn|"),
        ((LlmAgentEvent,), "-m--|"),
        ((Event,), "-mdn|"),
        ((Done | Note,), "--dn|"),
        ((Done | Note, str), "x-dn|"),
    ],
)
def test_events_of_these_classes_pass(kinds: tuple[Any, ...], expected: str) -> None:
    """A subclass passes as its base, and whatever is no event is dropped like any other value."""
    t = Marbles(**EVENTS)
    t.check(t.cold("xmdn|").pipe(only(*kinds)), expected)


def test_classes_are_required() -> None:
    """Nothing, or what is no class, is an error where it is written."""
    with pytest.raises(TypeError, match="needs the classes"):
        only()
    with pytest.raises(TypeError):
        only("Done")  # type: ignore[call-overload]


def test_types() -> None:
    """A type checker knows what passes (mypy checks this file)."""
    t = Marbles(**EVENTS)
    stream: Observable[Event] = t.cold("mdn|")
    assert_type(stream.pipe(only(Done)), Observable[Done])
    assert_type(stream.pipe(only(Done, Note)), Observable[Done | Note])
    three = stream.pipe(only(Done, Note, AgentMessage))
    assert_type(three, Observable[Done | Note | AgentMessage])
    t.check(three, "mdn|")
