"""Categories, guards and unions of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuggino import events, events as ev
from tests.vectors import each, not_followed, rows

ROWS = rows("event_categories")
EVENTS = [cls for cls in ev.event_types().values() if cls.__module__.startswith("cuggino.")]
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
