"""Events as JSON lines, and back: every event of the vocabulary."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from cuggino.events import (
    AgentMessage,
    Event,
    LlmMarkerEvent,
    Note,
    RateLimited,
    SessionEnded,
    ToolCall,
    UnknownEvent,
    dump_event,
    event_types,
    parse_event,
)
from tests.events.generated import EVENTS, events_of, json_values


@pytest.mark.parametrize("cls", EVENTS, ids=lambda cls: cls.__name__)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_event_comes_back(cls: type[Event], data: st.DataObject) -> None:
    """An event is one line of JSON with its tag first, and reading it gives an equal event."""
    event = data.draw(events_of(cls))
    line = dump_event(event)
    assert "\n" not in line
    assert line.startswith(f'{{"_tag":"{cls.__name__}"')
    assert event == parse_event(line)
    assert type(event) is type(parse_event(line.encode()))


def test_the_form_of_a_line() -> None:
    """The tag, then the fields in snake_case, not escaped, in the order of the class."""
    event = ToolCall(name="späße", input={"a": [1, None]}, id="t-1")
    assert ('{"_tag":"ToolCall","name":"späße","input":{"a":[1,null]},"id":"t-1"}') == dump_event(
        event
    )
    limited = RateLimited(status="rejected", resets_at=datetime(2026, 2, 5, 12, tzinfo=UTC))
    assert '"resets_at":"2026-02-05T12:00:00Z"' in dump_event(limited)


def test_half_a_surrogate_pair_is_escaped() -> None:
    """A text that is no Unicode still gives a line that can be written and read."""
    event = AgentMessage(text="a\ud83db")
    line = dump_event(event)
    assert line.encode()
    assert event == parse_event(line)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_an_unknown_event_comes_back(fields: dict[str, Any]) -> None:
    """A tag of a newer version is kept with all that came with it."""
    raw = {"_tag": "FromTheFuture", **fields}
    raw["_tag"] = "FromTheFuture"
    event = parse_event(json.dumps(raw))
    assert UnknownEvent(raw=raw) == event
    assert "FromTheFuture" == event.tag
    assert raw == json.loads(dump_event(event))
    assert event == parse_event(dump_event(event))


def test_new_fields_are_ignored() -> None:
    """Fields that a newer version added do not keep an event from being read."""
    assert Note(content="x") == parse_event('{"_tag": "Note", "content": "x", "colour": "blue"}')
    assert "colour" not in dump_event(Note.model_validate({"content": "x", "colour": "blue"}))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("[]", "an event is a JSON object with a `_tag`"),
        ('"Note"', "an event is a JSON object with a `_tag`"),
        ("{}", "an event is a JSON object with a `_tag`"),
        ('{"_tag": 1}', "an event is a JSON object with a `_tag`"),
        ('{"_tag": null}', "an event is a JSON object with a `_tag`"),
        ('{"_tag": "Note"}', "Note: content: Field required"),
        ('{"_tag": "Note", "content": 4}', "Note: content: Input should be a valid string"),
        ('{"_tag": "IterationStart", "iteration": 1}', "IterationStart: max_iterations: "),
        (
            '{"_tag": "SessionEnded", "outcome": "completed", "usage": {"input_tokens": "x"}}',
            "SessionEnded: usage.input_tokens: ",
        ),
        (b"\xff\xfe", ""),
    ],
)
def test_what_is_no_event(line: str | bytes, words: str) -> None:
    """A line that is no event is a ValueError that says where it is wrong."""
    with pytest.raises(ValueError) as caught:
        parse_event(line)
    assert words in str(caught.value)


def test_categories_are_no_tags() -> None:
    """The name of a category is an unknown tag, since nothing is just a category."""
    for name in ("Event", "LlmAgentEvent", "LoopPhaseEvent", "UnknownEvent", "Usage"):
        assert name not in event_types()
        assert isinstance(parse_event(json.dumps({"_tag": name})), UnknownEvent)


@pytest.mark.parametrize("cls", EVENTS, ids=lambda cls: cls.__name__)
def test_an_event_is_a_value(cls: type[Event]) -> None:
    """An event's tag is its class name; it is frozen."""
    event = cls.model_construct()
    assert cls.__name__ == event.tag
    for name in [*cls.model_fields, "new"]:
        with pytest.raises((ValidationError, ValueError)):
            setattr(event, name, "x")


def test_events_are_compared_by_value() -> None:
    """Equal fields of one class are equal events; another class is another event."""
    assert AgentMessage(text="a") == AgentMessage(text="a") != AgentMessage(text="b")
    assert 1 == len({Note(content="a"), Note(content="a")})
    assert SessionEnded(outcome="failed") != SessionEnded(outcome="quota")


def test_the_tag_an_agent_writes() -> None:
    """The class name of a marker in capitals, its words joined by underscores."""
    expected = {
        "Note": "NOTE",
        "SpecIssue": "SPEC_ISSUE",
        "PlanComplete": "PLAN_COMPLETE",
        "Progress": "PROGRESS",
        "Done": "DONE",
        "NoMoreWork": "NO_MORE_WORK",
        "Approved": "APPROVED",
        "RequestChanges": "REQUEST_CHANGES",
        "ToBeDiscussed": "TO_BE_DISCUSSED",
    }
    assert expected == {
        cls.__name__: cls.tag_name() for cls in EVENTS if issubclass(cls, LlmMarkerEvent)
    }
