"""`flow` with a recorder in memory: its records and their order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import reactivex as rx
from reactivex import operators as ops

from cuggino.operators import Flow, ask, emit, flow
from tests.operators.durable import (
    Line,
    MemoryRecorder,
    Story,
    sent_by,
    undisturbed,
    values,
)

WHOLE = undisturbed().log
CALLS = undisturbed().calls


def test_a_recorder_changes_nothing() -> None:
    """A flow with an empty recorder emits the same events at the same times as one without."""
    plain = Story()
    assert plain.t.record(flow(plain.told)) == Story().play(MemoryRecorder())


def test_everything_is_recorded_in_order() -> None:
    """Each stage's start, events and outcome are recorded, and only events sent downstream."""
    assert [
        ("said", "round 1"),
        ("said", "planning"),
        ("started", "plan"),
        ("forwarded", "plan"),
        ("finished", ("plan", "plan")),
        ("started", "size"),
        ("finished", ("size", "y")),
        ("started", "work"),
        ("forwarded", "a"),
        ("forwarded", "b"),
        ("forwarded", "more"),
        ("finished", ("work", "more")),
        ("said", "plan y more"),
    ] == WHOLE[:13]
    assert ("said", "over") == WHOLE[-1]
    assert [value for kind, value in WHOLE if kind in ("said", "forwarded")] == values(
        Story().play(MemoryRecorder())
    )


def test_an_event_is_recorded_before_it_is_sent() -> None:
    """Each event is in the journal, with the scheduler's time, when a subscriber receives it."""
    story, recorder = Story(), MemoryRecorder()
    last: list[tuple[Any, timedelta]] = []

    def look(_event: Any) -> None:
        since = recorder.times[-1] - story.t.scheduler.to_datetime(0)
        last.append((recorder.log[-1][1], since))

    seen = story.t.record(flow(story.told, recorder=recorder).pipe(ops.do_action(look)))
    expected = [(value, timedelta(seconds=at)) for at, kind, value in seen if kind == "next"]
    assert expected == last


class TestFailingRecorder:
    """A recorder that raises at each of its calls in turn."""

    def test_the_error_ends_the_stream(self) -> None:
        """An exception of the recorder ends the stream, its stage and its generator at once."""
        for call, name in enumerate(CALLS, 1):
            story = Story()
            seen = story.play(MemoryRecorder(fails_at=call))
            at, kind, error = seen[-1]
            assert ("error", f"no space for {name}") == (kind, str(error)), call
            assert [] == [event for event in seen[:-1] if event[1] != "next"], call
            assert [] == [s for s in story.subscriptions if s[1] is None or s[1] > at], call
            assert 1 == story.closed, call

    def test_nothing_happens_unrecorded(self) -> None:
        """No event is sent and no stage is run that could not be recorded."""
        for call in range(1, len(CALLS) + 1):
            story, recorder = Story(), MemoryRecorder(fails_at=call)
            seen = story.play(recorder)
            recorded = [value for kind, value in recorder.log if kind in ("said", "forwarded")]
            assert recorded == values(seen), call
            starts = [value for kind, value in recorder.log if kind == "started"]
            assert len(starts) == len(story.subscribed), call

    def test_the_flow_can_be_resumed(self) -> None:
        """A flow resumes with a working recorder where the failing one stopped."""
        for call in range(1, len(CALLS) + 1):
            recorder = MemoryRecorder(fails_at=call)
            Story().play(recorder)
            seen = Story().play(MemoryRecorder(recorder.log))
            assert sent_by(WHOLE) == sent_by(recorder.log) + values(seen), call


def test_a_journal_of_other_stages() -> None:
    """A flow with other stage names than its journal fails before it subscribes to anything."""
    story = Story()
    log: list[Line] = [*WHOLE[:5], ("started", "volume"), ("finished", ("volume", "y"))]
    seen = story.play(MemoryRecorder(log))
    assert ["error"] == [kind for _, kind, _ in seen]
    assert "volume is recorded, not size" == str(seen[0][2])
    assert [] == story.subscribed
    assert 1 == story.closed


def test_surplus_outcomes_are_ignored() -> None:
    """Outcomes recorded after the end of the story are no error."""
    story = Story()
    seen = story.play(MemoryRecorder([*WHOLE, ("finished", ("extra", 1))]))
    assert [(0.0, "completed", None)] == seen


def test_a_long_replay_needs_no_stack() -> None:
    """Ten thousand recorded stages are replayed without recursion."""

    def story() -> Flow[None]:
        total = 0
        for _ in range(10_000):
            one: Any = yield from ask(rx.never(), name="stage")
            total += one
        yield from emit(total)

    log: list[Line] = [("finished", ("stage", 1))] * 10_000
    seen: list[int] = []
    flow(story, recorder=MemoryRecorder(log)).subscribe(seen.append)
    assert [10_000] == seen
