"""Events that come at once, as those of an agent that prints many lines with one write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc
from reactivex.disposable import BooleanDisposable, SerialDisposable
from reactivex.subject import Subject

from cuggino import events as ev
from cuggino.domain.schedule import Schedule
from cuggino.domain.spending import Budget
from cuggino.operators import (
    Flow,
    emit,
    extract_markers,
    flow,
    forward,
    idle_timeout,
    interrupt_when,
    marker_tags,
    retry_session,
    stage_timeout,
    until_terminal,
    wait_for_quota,
    within_budget,
)
from cuggino.operators.merge_now import merge_now
from cuggino.testing import Marbles
from tests.operators.test_contract import EVERY

ENDED = ev.SessionEnded(outcome="completed", cost_usd=0.5, usage=ev.Usage(input_tokens=900))
TAGS = marker_tags(ev.Note, ev.Done, ev.Approved)


def tokens(count: int) -> ev.UsageUpdate:
    return ev.UsageUpdate(usage=ev.Usage(input_tokens=count))


WORK: list[ev.Event] = [
    ev.AgentMessage(text="one", message_id="m1"),
    ev.MessageDelta(text="two", message_id="m2"),
    ev.ToolCall(name="Bash", input={}, id="t"),
    tokens(10),
    ev.ToolResult(name="t", output="out"),
]


def burst(events: Iterable[Any], *, ends: bool = True) -> Observable[Any]:
    """A source that emits all events in one action of its lane, unless it is disposed."""
    given = list(events)

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        is_cut = BooleanDisposable()

        def act(*_: object) -> None:
            for event in given:
                if is_cut.is_disposed:
                    return
                observer.on_next(event)
            if ends:
                observer.on_completed()

        assert scheduler is not None
        return rx.disposable.CompositeDisposable(is_cut, scheduler.schedule(act))

    return Observable(subscribe)


def one_by_one(events: Sequence[Any]) -> Observable[Any]:
    """The same events, each in an action of its own."""

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return rx.from_iterable(events, scheduler).subscribe(observer, scheduler=scheduler)

    return Observable(subscribe)


def seen_of(stream: Observable[Any]) -> list[tuple[str, Any]]:
    """Return the notifications, errors as text."""
    return [
        (kind, str(value) if isinstance(value, Exception) else value)
        for _, kind, value in Marbles().record(stream)
    ]


PASSING = {
    name: operator
    for name, operator in {**EVERY, "merge_now": merge_now}.items()
    if "," not in name and name not in ("only", "repeat_on")
}
"""Operators that pass every event on once; these two choose and repeat."""


@pytest.mark.parametrize("name", PASSING)
def test_order(name: str) -> None:
    """Every operator passes the events on one by one, in order."""
    expected = [("next", event) for event in [*WORK, ENDED]]
    assert [*expected, ("completed", None)] == seen_of(PASSING[name](burst([*WORK, ENDED])))


@pytest.mark.parametrize("name", PASSING)
@pytest.mark.parametrize("position", [0, 2])
def test_disposal_between_two_events(name: str, position: int) -> None:
    """Nothing comes after the event whose subscriber disposes the subscription."""
    seen: list[ev.Event] = []
    held = SerialDisposable()

    def take(event: ev.Event) -> None:
        seen.append(event)
        if event == WORK[position]:
            held.dispose()

    t = Marbles()
    stream = PASSING[name](burst([*WORK, ENDED]))
    held.disposable = stream.subscribe(take, scheduler=t.clock)
    t.clock.advance_by(1)
    assert WORK[: position + 1] == seen


def supervised(agent: Observable[Any]) -> Observable[Any]:
    """The agent with all that is around it in a stage."""
    policies: list[Any] = [
        extract_markers(TAGS, at_end=lambda e: isinstance(e, ev.Approved)),
        until_terminal(
            lambda e: isinstance(e, ev.Approved),
            linger=1,
            settle=lambda e: isinstance(e, ev.SessionEnded),
        ),
        idle_timeout(idle=60, tool=120),
        stage_timeout(3600),
        retry_session(Schedule.exponential("1s").times(1)),
        wait_for_quota(wait=False),
        within_budget(Budget(tokens=100)),
    ]
    for policy in policies:
        agent = policy(agent)
    return agent


EVENTS = st.one_of(
    st.sampled_from(
        [
            *WORK,
            ev.MessageDelta(text="Look <NOTE>", message_id="m3"),
            ev.MessageDelta(text="n</NOTE> on.", message_id="m3"),
            ev.AgentMessage(text="Look <NOTE>n</NOTE> on.", message_id="m3"),
            ev.AgentMessage(text="<DONE>d</DONE>", message_id="m4"),
            ev.AgentMessage(text="a <APPROVED>yes</APPROVED>", message_id="m5"),
            ENDED,
        ]
    ),
    st.integers(0, 120).map(tokens),
)


@given(events=st.lists(EVENTS, max_size=20))
def test_a_supervised_agent_is_the_same(events: Sequence[ev.Event]) -> None:
    """Markers, budget and endings fall on the same events, at once as one by one."""
    assert seen_of(supervised(one_by_one(events))) == seen_of(supervised(burst(events)))


def test_a_session_that_is_cut_by_its_subscriber() -> None:
    """Nothing of it follows, though the stream goes on."""
    stop: Subject[None] = Subject()
    agent = burst(WORK, ends=False)

    def story() -> Flow[None]:
        yield from forward(agent.pipe(interrupt_when(stop)))
        yield from emit(ENDED)

    seen: list[ev.Event] = []

    def take(event: ev.Event) -> None:
        seen.append(event)
        if event is WORK[1]:
            stop.on_next(None)

    t = Marbles()
    flow(story).subscribe(take, scheduler=t.clock)
    t.clock.advance_by(1)
    assert [*WORK[:2], ENDED] == seen
