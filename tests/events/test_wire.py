"""Events as JSON lines: every event round-trips."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from cuggino import events as ev
from tests.events.generated import EVENTS, events_of, json_values
from tests.vectors import each


@pytest.mark.real_agent
@each("cls", EVENTS)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_every_event_round_trips(cls: type[ev.Event], data: st.DataObject) -> None:
    """An event is one line of JSON with its tag first, and is parsed to an equal event."""
    event = data.draw(events_of(cls))
    line = ev.dump_event(event)
    assert "\n" not in line
    assert line.startswith(f'{{"_tag":"{cls.__name__}"')
    assert event == ev.parse_event(line)
    assert type(event) is type(ev.parse_event(line.encode()))


def test_the_form_of_a_line() -> None:
    """A line has the tag, then the fields in snake_case, unescaped, in class order."""
    event = ev.ToolCall(name="späße", input={"a": [1, None]}, id="t-1")
    assert (
        '{"_tag":"ToolCall","name":"späße","input":{"a":[1,null]},"id":"t-1"}'
    ) == ev.dump_event(event)
    limited = ev.RateLimited(status="rejected", resets_at=datetime(2026, 2, 5, 12, tzinfo=UTC))
    assert '"resets_at":"2026-02-05T12:00:00Z"' in ev.dump_event(limited)


def test_half_a_surrogate_pair_is_escaped() -> None:
    """A text that is not valid Unicode gives a line that can be written and read."""
    event = ev.AgentMessage(text="a\ud83db")
    line = ev.dump_event(event)
    assert line.encode()
    assert event == ev.parse_event(line)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_an_unknown_event_round_trips(fields: dict[str, Any]) -> None:
    """A tag of a newer version is kept with its data."""
    raw = {"_tag": "FromTheFuture", **fields}
    raw["_tag"] = "FromTheFuture"
    event = ev.parse_event(json.dumps(raw))
    assert ev.UnknownEvent(raw=raw) == event
    assert "FromTheFuture" == event.tag
    assert raw == json.loads(ev.dump_event(event))
    assert event == ev.parse_event(ev.dump_event(event))


def test_new_fields_are_ignored() -> None:
    """Fields added by a newer version do not prevent parsing."""
    assert ev.Note(content="x") == ev.parse_event(
        '{"_tag": "Note", "content": "x", "colour": "blue"}'
    )
    assert "colour" not in ev.dump_event(ev.Note.model_validate({"content": "x", "colour": "blue"}))


@each(
    "line, words",
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
def test_invalid_lines(line: str | bytes, words: str) -> None:
    """An invalid line is a `ValueError` with the location of the error."""
    with pytest.raises(ValueError) as caught:
        ev.parse_event(line)
    assert words in str(caught.value)


def test_categories_are_no_tags() -> None:
    """The name of a category is an unknown tag, as categories are abstract."""
    for name in ("Event", "LlmAgentEvent", "LoopPhaseEvent", "UnknownEvent", "Usage"):
        assert name not in ev.event_types()
        assert isinstance(ev.parse_event(json.dumps({"_tag": name})), ev.UnknownEvent)


@each("cls", EVENTS)
def test_an_event_is_a_value(cls: type[ev.Event]) -> None:
    """An event is frozen, and its tag is its class name."""
    event = cls.model_construct()
    assert cls.__name__ == event.tag
    for name in [*cls.model_fields, "new"]:
        with pytest.raises((ValidationError, ValueError)):
            setattr(event, name, "x")


def test_events_are_compared_by_value() -> None:
    """Equal fields of one class are equal events; another class is another event."""
    assert ev.AgentMessage(text="a") == ev.AgentMessage(text="a") != ev.AgentMessage(text="b")
    assert 1 == len({ev.Note(content="a"), ev.Note(content="a")})
    assert ev.SessionEnded(outcome="failed") != ev.SessionEnded(outcome="quota")


def test_marker_tags() -> None:
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
        "Waiting": "WAITING",
    }
    assert expected == {
        cls.__name__: cls.tag_name() for cls in EVENTS if issubclass(cls, ev.LlmMarkerEvent)
    }


def test_the_item_of_an_event() -> None:
    """`item` follows the tag, is left out when it is none, and is read again."""
    event = ev.Note(content="a")
    assert ev.dump_event(event) == '{"_tag":"Note","content":"a"}'
    assert "item" not in repr(event)
    assert repr(event) == str(event)
    marked = event.of_item("spät.md")
    assert ev.dump_event(marked) == '{"_tag":"Note","item":"spät.md","content":"a"}'
    assert "item='spät.md'" in repr(marked)
    assert (
        marked
        == ev.Note(content="a", item="spät.md")
        == ev.parse_event(ev.dump_event(marked))
        != event
    )
    assert event.item is None
    assert marked.of_item("b.md") is marked


def test_the_item_of_any_event() -> None:
    """Half a surrogate pair, an unknown tag, and an event with its own `item`."""
    torn = ev.AgentMessage(text="a\ud83db", item="b.md")
    assert torn == ev.parse_event(ev.dump_event(torn))
    unknown = ev.parse_event('{"_tag":"New","item":"a.md","x":1}')
    assert (unknown.item, ev.dump_event(unknown)) == ("a.md", '{"_tag":"New","item":"a.md","x":1}')
    later = ev.UnknownEvent(raw={"_tag": "New", "x": 1}).of_item("a.md")
    assert ev.dump_event(later) == '{"_tag":"New","item":"a.md","x":1}'
    skipped = ev.SkipAsked(item=None)
    assert ev.dump_event(skipped) == '{"_tag":"SkipAsked","item":null}'
    assert ev.dump_event(skipped.of_item("a.md")) == '{"_tag":"SkipAsked","item":"a.md"}'
