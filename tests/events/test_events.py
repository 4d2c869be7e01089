"""Events: JSON lines, categories, results of runs, and tables of tags."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from cuggino import events, events as ev
from tests.events.generated import EVENTS, events_of, json_values
from tests.vectors import each, not_followed, rows


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


LOOP_RESULTS = (
    ev.LoopApproved(iteration=1),
    ev.LoopSpecIssue(iteration=1, content="unclear", filename="a.md"),
    ev.LoopMaxIterations(iteration=3, max_iterations=3),
    ev.LoopStalled(iteration=2, reason="no_progress", message="3 agents in a row changed nothing"),
)
RESULTS: tuple[ev.RunResult, ...] = (
    *LOOP_RESULTS,
    *(ev.DeliverEnded(reason=reason, error="why") for reason in get_args(ev.DeliverExit)),
    *(ev.PlanBuildEnded(reason=reason, error="why") for reason in get_args(ev.PlanBuildExit)),
)
CODES: dict[ev.RunOutcome, int] = {
    "approved": 0,
    "planned": 0,
    "failed": 1,
    "spec_issue": 10,
    "max_iterations": 11,
    "quota": 12,
    "budget": 13,
    "stalled": 14,
    "blocked": 15,
    "interrupted": 130,
}


@each("result", RESULTS)
def test_exit_code_state_and_resumability(result: ev.RunResult) -> None:
    """Every result of every loop has an outcome, which decides everything else."""
    assert CODES[result.outcome] == result.exit_code
    assert (result.outcome in {"failed", "quota", "budget", "interrupted"}) == result.is_resumable
    expected = "ended" if result.outcome in {"planned", "blocked"} else result.outcome
    assert expected == result.state


@each("result", RESULTS)
def test_only_fields_are_serialized(result: ev.RunResult) -> None:
    """No property of a result is serialized, and a line round-trips."""
    line = ev.dump_event(result)
    assert not {"outcome", "state", "exit_code", "is_resumable"} & set(result.model_dump())
    assert result == ev.parse_event(line)


def test_every_outcome_occurs() -> None:
    """Every outcome has a result, and every registered result is tested here."""
    assert set(get_args(ev.RunOutcome)) == {result.outcome for result in RESULTS}
    known = {cls for cls in ev.event_types().values() if issubclass(cls, ev.RunResult)}
    assert known == {type(result) for result in RESULTS}


def test_messages() -> None:
    """The message has the reason if the outcome does not."""
    assert [
        "",
        "spec issue a.md",
        "not approved within 3 iterations",
        "3 agents in a row changed nothing",
    ] == [result.message for result in LOOP_RESULTS]
    assert {"why"} == {result.message for result in RESULTS[4:]}


ROOT = Path(events.__file__).parents[2]
TAGS = {*events.event_types()}
NAMES = {
    base.__name__
    for kind in events.event_types().values()
    for base in kind.__mro__
    if issubclass(base, events.Event)
}


def tables() -> Iterator[tuple[str, set[str]]]:
    """Yield the place and the texts of each collection with several tags of events.

    The names that a package exports are no tags, and are tested with the packages.
    """
    for path in sorted(ROOT.glob("cuggino*/**/*.py")):
        if path.name == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Set(elts=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                    pass
                case ast.Dict(keys=keys):
                    parts = [key for key in keys if key is not None]
                case _:
                    continue
            texts = {
                part.value
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }
            if len(texts & TAGS) > 1:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", texts


@pytest.mark.real_agent
def test_tables_of_tags_name_events() -> None:
    """A tag in a table is that of an event, or the name of a base of events."""
    found = list(tables())
    assert len(found) > 10
    assert {} == {place: texts - NAMES for place, texts in found if not texts <= NAMES}


ROWS = rows("event_categories")
GUARDS: dict[str, tuple[Callable[[object], bool], type[ev.Event]]] = {
    "agent": (events.is_llm_agent_event, ev.LlmAgentEvent),
    "marker": (events.is_llm_marker_event, ev.LlmMarkerEvent),
    "terminal marker": (events.is_llm_terminal_marker_event, ev.LlmTerminalMarkerEvent),
    "phase": (events.is_loop_phase_event, ev.LoopPhaseEvent),
    "terminal": (events.is_loop_terminal_event, ev.LoopTerminalEvent),
    "command output": (events.is_command_output_event, ev.CommandOutputEvent),
    "watch": (events.is_watch_loop_event, ev.WatchLoopEvent),
    "policy": (events.is_supervision_event, ev.SupervisionEvent),
    "journal": (events.is_journal_event, ev.JournalEvent),
    "deliver": (events.is_deliver_event, ev.DeliverEvent),
    "plan/build": (events.is_plan_build_event, ev.PlanBuildEvent),
}


def sample(cls: type[ev.Event]) -> ev.Event:
    """Return a sample event of the class."""
    return cls.model_construct()


def categories(cls: type[ev.Event]) -> set[str]:
    """Return the categories by guard, asserting that `isinstance` agrees."""
    event = sample(cls)
    guarded = {name for name, (guard, _) in GUARDS.items() if guard(event)}
    assert {name for name, (_, base) in GUARDS.items() if isinstance(event, base)} == guarded
    return guarded


@each("row", ROWS)
def test_categories_match_the_original(row: dict[str, Any]) -> None:
    """An event is in the original's categories, by guard and by `isinstance`."""
    if row["id"] in not_followed():
        assert row["name"] not in ev.event_types()
        return
    found = categories(ev.event_types()[row["name"]])
    if row["kind"] == "marker_category":
        assert (row["is_marker"], row["is_terminal"], row["is_agent"]) == (
            "marker" in found,
            "terminal marker" in found,
            "agent" in found,
        )
    else:
        names = ("agent", "marker", "phase", "terminal", "watch")
        assert {name for name in names if row[name]} == found & set(names)


@each("cls", EVENTS)
def test_every_event_has_one_main_category(cls: type[ev.Event]) -> None:
    """An event belongs to an agent, a marker, a loop, a policy or the journal alone."""
    found = categories(cls)
    main = {"agent", "marker", "phase", "watch", "policy", "journal", "deliver", "plan/build"}
    assert 1 == len(found & main)
    assert "terminal marker" not in found or "marker" in found
    assert not found & {"terminal", "command output"} or "phase" in found


@each("cls", EVENTS)
def test_unions(cls: type[ev.Event]) -> None:
    """The loop's union has no watch events, and no union has journal-only events.

    Plan/build announces its verification commands by the coding loop's event.
    """
    event, found = sample(cls), categories(cls)
    in_loop = bool(found & {"agent", "marker", "phase", "policy"})
    in_deliver = bool(found & {"agent", "policy", "deliver"})
    in_plan_build = bool(found & {"agent", "policy", "plan/build"}) or cls is ev.CheckCommandStarted
    emitted = "journal" not in found
    for union, expected in (
        (ev.LoopEvent, in_loop),
        (ev.WatchEvent, emitted and not found & {"deliver", "plan/build"}),
        (ev.DeliverStreamEvent, in_deliver),
        (ev.PlanBuildStreamEvent, in_plan_build),
    ):
        assert expected == isinstance(event, union)


@each("thing", [None, "Note", {"_tag": "Note"}, ev.Event, ev.UnknownEvent(raw={})])
def test_other_values_have_no_category(thing: object) -> None:
    """Guards accept any value, and return False for anything but known events."""
    assert not any(guard(thing) for guard, _ in GUARDS.values())


def test_custom_events_are_supported() -> None:
    """A subclass of a category is an event: guarded, tagged, parsed."""

    class Mine(ev.LoopPhaseEvent):
        words: str

    try:
        event = Mine(iteration=1, words="x")
        assert isinstance(event, ev.LoopEvent)
        assert event == events.parse_event(events.dump_event(event))
    finally:
        del ev.Event.registry["Mine"]


def test_public_names() -> None:
    """`cuggino.events` exports every event and every guard, sorted."""
    assert sorted(events.__all__) == events.__all__
    assert {cls.__name__ for cls in EVENTS} <= set(events.__all__)
    assert {name for name in dir(events) if name.startswith("is_")} <= set(events.__all__)
