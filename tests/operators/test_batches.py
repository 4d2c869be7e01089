"""Batches: the same events in the same order as one by one, for operators and for subscribers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.subject import Subject

from cuggino.domain.schedule import Schedule
from cuggino.domain.spending import Budget
from cuggino.errors import AgentFailed, BudgetExceeded
from cuggino.events import (
    AgentMessage,
    Approved,
    Done,
    Event,
    MessageDelta,
    Note,
    SessionEnded,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)
from cuggino.operators import (
    EventBatch,
    Flow,
    Ledger,
    acquire_release,
    alongside,
    deferred,
    emit,
    events_in,
    extract_markers,
    flow,
    forward,
    idle_timeout,
    in_batches,
    interrupt_when,
    marker_tags,
    on_loop,
    retry_session,
    stage_timeout,
    unopened,
    until_terminal,
    wait_for_quota,
    within_budget,
)
from cuggino.operators.batches import Batched, batched, carrier, each
from cuggino.testing import Marbles
from tests.operators.durable import MemoryRecorder

ENDED = SessionEnded(outcome="completed", cost_usd=0.5, usage=Usage(input_tokens=900))
TAGS = marker_tags(Note, Done, Approved)


def test_each_event_is_looked_at() -> None:
    """One by one and in batches, before it is passed on."""
    seen: list[object] = []
    looked = each(lambda event: seen.append(("look", event)))
    values = ["a", EventBatch(["b", "c"]), "d"]
    looked(rx.from_iterable(values)).subscribe(seen.append)
    assert [("look", "a"), "a", ("look", "b"), ("look", "c")] == seen[:4]
    assert [("look", "d"), "d"] == seen[-2:]


def tokens(count: int) -> UsageUpdate:
    return UsageUpdate(usage=Usage(input_tokens=count))


PLAIN = [
    AgentMessage(text="one", message_id="m1"),
    MessageDelta(text="two", message_id="m2"),
    ToolCall(name="Bash", input={}, id="t"),
    tokens(10),
    ToolResult(name="t", output="out"),
]


def stream_of(values: Iterable[Any]) -> Observable[Any]:
    """A stream on the scheduler of its subscriber, as that of an agent."""
    given = list(values)

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        return rx.from_iterable(given, scheduler).subscribe(observer, scheduler=scheduler)

    return Observable(subscribe)


def source(values: Iterable[Any]) -> Observable[Any]:
    return Batched(stream_of(values))


def seen_of(stream: Observable[Any]) -> list[tuple[str, Any]]:
    """Return the notifications, errors as text."""
    return [
        (kind, str(value) if isinstance(value, Exception) else value)
        for _, kind, value in Marbles().record(stream)
    ]


class TestOpening:
    """A subscriber that knows nothing of batches gets events."""

    def test_a_plain_subscriber_gets_single_events(self) -> None:
        """And so does an RxPY operator."""
        stream = source([ENDED, EventBatch(PLAIN)])
        expected = [*(("next", event) for event in [ENDED, *PLAIN]), ("completed", None)]
        assert expected == seen_of(stream)
        assert expected == seen_of(stream.pipe(ops.filter(lambda _: True)))

    @pytest.mark.parametrize("position", range(len(PLAIN)))
    def test_disposal_in_mid_batch(self, position: int) -> None:
        """Nothing comes after the event that disposes the subscription."""
        seen: list[Event] = []
        held = rx.disposable.SerialDisposable()

        def take(event: Event) -> None:
            seen.append(event)
            if event is PLAIN[position]:
                held.dispose()

        t = Marbles()
        stream = source([EventBatch(PLAIN), ENDED])
        held.disposable = stream.subscribe(take, scheduler=t.clock)
        t.clock.advance_by(1)
        assert PLAIN[: position + 1] == seen

    @pytest.mark.parametrize("position", range(len(PLAIN)))
    def test_a_failing_subscriber_in_mid_batch(self, position: int) -> None:
        """The exception reaches `on_error`, and nothing follows."""
        t = Marbles()
        seen: list[Event] = []
        errors: list[Exception] = []

        def take(event: Event) -> None:
            seen.append(event)
            if event is PLAIN[position]:
                raise LookupError("here")

        stream = on_loop(source([EventBatch(PLAIN), ENDED]))
        stream.subscribe(take, errors.append, scheduler=t.clock)
        t.clock.advance_by(1)
        assert PLAIN[: position + 1] == seen
        assert ["here"] == [str(error) for error in errors]

    def test_in_batches(self) -> None:
        """Events that came at once are one sequence, the others one each."""
        stream = source([ENDED, EventBatch(PLAIN), ENDED])
        assert [[ENDED], PLAIN, [ENDED]] == [list(v) for k, v in seen_of(in_batches(stream))[:-1]]
        assert [[ENDED]] == [list(v) for k, v in seen_of(in_batches(rx.of(ENDED)))[:-1]]

    def test_what_is_batched(self) -> None:
        """Several plain events in a row are a batch; what decides travels alone."""
        done = Done(content="d")
        found = [list(events_in(v)) for v in batched([*PLAIN, done, PLAIN[0], ENDED, *PLAIN[:2]])]
        assert [PLAIN, [done], [PLAIN[0]], [ENDED], PLAIN[:2]] == found
        kinds = [type(v) for v in batched([PLAIN[0], done])]
        assert [AgentMessage, Done] == kinds, "one event is no batch"


def passing() -> dict[str, Any]:
    """Operators around an agent, none of which does anything here."""
    return {
        "acquire_release": lambda s: acquire_release(lambda: 0, lambda _: s, lambda _: None),
        "alongside": alongside(rx.never()),
        "deferred": lambda s: deferred(lambda: s),
        "each": each(lambda _event: None),
        "extract_markers": extract_markers(TAGS),
        "flow": lambda s: flow(lambda: forward(s)),
        "idle_timeout": idle_timeout(idle=60),
        "interrupt_when": interrupt_when(rx.never()),
        "on_loop": on_loop,
        "retry_session": retry_session(Schedule.exponential("1s").times(1)),
        "stage_timeout": stage_timeout(60),
        "unopened": unopened(ops.take_while(lambda _: True)),
        "until_terminal": until_terminal(lambda e: isinstance(e, Approved), linger=1),
        "wait_for_quota": wait_for_quota(wait=True),
        "within_budget": within_budget(Budget(tokens=10_000, cost_usd=9)),
    }


@pytest.mark.parametrize("name", passing())
def test_batches_pass(name: str) -> None:
    """The operators that are around every agent keep a batch together."""
    batch = EventBatch([PLAIN[2], PLAIN[4], tokens(10)])
    stream = passing()[name](source([batch, ENDED]))
    whole = [
        list(events_in(value))
        for _, kind, value in Marbles().record(carrier(stream))
        if kind == "next"
    ]
    assert [batch.events, [ENDED]] == whole


def supervised(agent: Observable[Any]) -> Observable[Any]:
    """The agent with all that is around it in a stage."""
    policies: list[Any] = [
        extract_markers(TAGS, at_end=lambda e: isinstance(e, Approved)),
        until_terminal(
            lambda e: isinstance(e, Approved),
            linger=1,
            settle=lambda e: isinstance(e, SessionEnded),
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
            *PLAIN,
            MessageDelta(text="Look <NOTE>", message_id="m3"),
            MessageDelta(text="n</NOTE> on.", message_id="m3"),
            AgentMessage(text="Look <NOTE>n</NOTE> on.", message_id="m3"),
            AgentMessage(text="<DONE>d</DONE>", message_id="m4"),
            AgentMessage(text="a <APPROVED>yes</APPROVED>", message_id="m5"),
            ENDED,
        ]
    ),
    st.integers(0, 120).map(tokens),
)


@given(events=st.lists(EVENTS, max_size=20))
def test_a_supervised_agent_is_the_same(events: Sequence[Event]) -> None:
    """Markers, budget and endings fall on the same events, in one batch as one by one."""
    assert seen_of(supervised(stream_of(events))) == seen_of(supervised(source(batched(events))))


@pytest.mark.parametrize("position", range(1, 5))
def test_a_budget_that_is_cut_in_mid_batch(position: int) -> None:
    """The event that overdraws is the last; the warning comes right before the event near it."""
    events: list[Event] = [AgentMessage(text=str(n)) for n in range(6)]
    events[position - 1 : position - 1] = [tokens(85)]
    events[position + 1 : position + 1] = [tokens(101)]
    policy = within_budget(Budget(tokens=100))
    found = seen_of(source([EventBatch(events)]).pipe(policy))
    assert found == seen_of(stream_of(events).pipe(within_budget(Budget(tokens=100))))
    assert ["next"] * (len(events[: position + 2]) + 1) + ["error"] == [kind for kind, _ in found]
    assert "BudgetWarning" == found[position - 1][1].tag
    assert ("next", tokens(101)) == found[-2]


def test_a_terminal_event_in_mid_batch() -> None:
    """A predicate of the user sees events, and the first terminal one ends the stream."""
    one, two, three = (AgentMessage(text=text) for text in ("1", "2", "3"))
    ending: Any = until_terminal(lambda e: e == two, linger=0)
    found = seen_of(source([EventBatch([one, two, three])]).pipe(ending))
    assert [("next", one), ("next", two), ("completed", None)] == found


def test_a_session_that_is_cut_by_its_subscriber() -> None:
    """Of a session that ends in mid-batch nothing follows, though the stream goes on."""
    stop: Subject[None] = Subject()
    held = rx.disposable.BooleanDisposable()
    batch = EventBatch(PLAIN, lambda: held.is_disposed)
    agent: Observable[Any] = Batched(rx.merge(stream_of([batch]), rx.never()))

    def story() -> Flow[None]:
        session = acquire_release(lambda: held, lambda _: agent, lambda it: it.dispose())
        yield from forward(session.pipe(interrupt_when(stop)))
        yield from emit(ENDED)

    seen: list[Event] = []

    def take(event: Event) -> None:
        seen.append(event)
        if event is PLAIN[1]:
            stop.on_next(None)

    t = Marbles()
    flow(story).subscribe(take, scheduler=t.clock)
    t.clock.advance_by(1)
    assert [*PLAIN[:2], ENDED] == seen


def test_the_other_accounts_of_a_ledger() -> None:
    """A batch that overdraws the budget of another stream ends that stream."""
    t, ledger = Marbles(), Ledger()
    errors: list[Exception] = []
    poor = rx.never().pipe(within_budget(Budget(tokens=5), ledger=ledger))
    poor.subscribe(lambda _: None, errors.append, scheduler=t.clock)
    rich: Any = within_budget(Budget(tokens=1000), ledger=ledger)
    source([EventBatch(PLAIN)]).pipe(rich).subscribe(scheduler=t.clock)
    t.clock.advance_by(1)
    assert [BudgetExceeded] == [type(error) for error in errors]


@pytest.mark.parametrize("before", [[], PLAIN[:1], PLAIN, [ENDED], [ENDED, *PLAIN]])
def test_events_that_end_with_an_exception(before: Sequence[Event]) -> None:
    """Those that precede it come first."""

    def events() -> Iterable[Event]:
        yield from before
        raise LookupError("no more")

    seen: list[Event] = []
    with pytest.raises(LookupError):
        for value in batched(events()):
            seen.extend(events_in(value))
    assert before == seen


def test_a_tag_that_fails_in_mid_batch() -> None:
    """Events before the marker are emitted, then the error."""

    def refuse(_content: str) -> Event:
        raise LookupError("no such note")

    batch = EventBatch([PLAIN[0], AgentMessage(text="<NOTE>n</NOTE>", message_id="m9")])
    found = seen_of(on_loop(source([batch]).pipe(extract_markers({"NOTE": refuse}))))
    assert [("next", PLAIN[0]), ("error", "no such note")] == found


class TestRecording:
    def test_a_recorder_without_batches(self) -> None:
        """It records the events one by one."""

        class Plain:
            """The methods of a recorder, and no other."""

            def __init__(self) -> None:
                of = MemoryRecorder()
                self.log = of.log
                self.replay, self.started, self.event = of.replay, of.started, of.event
                self.finished, self.failed = of.finished, of.failed

        recorder = Plain()
        stream = flow(lambda: forward(source([EventBatch(PLAIN)])), recorder=recorder)
        assert [*(("next", event) for event in PLAIN), ("completed", None)] == seen_of(stream)
        assert PLAIN == [value for kind, value in recorder.log if kind == "forwarded"]

    def test_written_before_delivery(self) -> None:
        """At the first event all of the batch is in the journal, in order."""
        recorder = MemoryRecorder()
        logged: list[int] = []

        def story() -> Flow[None]:
            yield from forward(source([EventBatch(PLAIN)]), name="agent")

        t = Marbles()
        stream = flow(story, recorder=recorder)
        stream.subscribe(lambda _: logged.append(len(recorder.log)), scheduler=t.clock)
        t.clock.advance_by(1)
        assert [1 + len(PLAIN)] * len(PLAIN) == logged, "the start of the stage and the batch"
        assert PLAIN == [value for kind, value in recorder.log if kind == "forwarded"]
        assert ("finished", ("agent", PLAIN[-1])) == recorder.log[-1]

    def test_a_journal_that_fails(self) -> None:
        """An event that cannot be recorded is not shown: no subscriber sees any of the batch."""
        recorder = MemoryRecorder(fails_at=3)  # replay, started, batch

        def story() -> Flow[None]:
            yield from forward(source([EventBatch(PLAIN)]), name="agent")

        assert [("error", "no space for batch")] == seen_of(flow(story, recorder=recorder))

    @pytest.mark.parametrize("position", range(len(PLAIN)))
    def test_a_crash_between_write_and_delivery(self, position: int) -> None:
        """A process that dies in mid-batch has recorded all of it; the stage runs again."""
        recorder = MemoryRecorder()
        runs: list[int] = []

        def agent() -> Observable[Any]:
            runs.append(1)
            return source([EventBatch(PLAIN)])

        def story() -> Flow[None]:
            yield from forward(deferred(agent), name="agent")

        t = Marbles()
        seen: list[Event] = []
        held = rx.disposable.SerialDisposable()

        def take(event: Event) -> None:
            seen.append(event)
            if event is PLAIN[position]:
                held.dispose()  # as a process that is killed: nothing is recorded any more

        held.disposable = flow(story, recorder=recorder).subscribe(take, scheduler=t.clock)
        t.clock.advance_by(1)
        assert PLAIN[: position + 1] == seen
        assert ["started", *["forwarded"] * len(PLAIN)] == [kind for kind, _ in recorder.log]
        again = MemoryRecorder(recorder.log)
        resumed = seen_of(flow(story, recorder=again))
        assert [*(("next", event) for event in PLAIN), ("completed", None)] == resumed
        assert 2 == len(runs)


def test_a_retry_after_a_batch() -> None:
    """The failure after a batch is answered like any other."""
    failure = AgentFailed("cut", reason="crash")
    failing: Observable[Any] = Batched(rx.concat(stream_of([EventBatch(PLAIN)]), rx.throw(failure)))
    retry: Any = retry_session(Schedule.exponential("1s").times(1), again=lambda _: source([ENDED]))
    tags = [value.tag for kind, value in seen_of(failing.pipe(retry)) if kind == "next"]
    assert [*(event.tag for event in PLAIN), "AgentRetry", "SessionEnded"] == tags
