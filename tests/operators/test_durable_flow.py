"""`flow` with a recorder: what was done is not done again, what was said is not said again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

from cuggino.operators import Flow, ask, emit, flow
from tests.operators.durable import (
    Line,
    MemoryRecorder,
    Story,
    outcomes_of,
    sent_by,
    undisturbed,
    values,
)

WHOLE = undisturbed().log
CALLS = undisturbed().calls


def test_a_recorder_changes_nothing() -> None:
    """A flow with an empty recorder sends the same at the same times as one without."""
    plain = Story()
    assert plain.t.record(flow(plain.told)) == Story().play(MemoryRecorder())


def test_everything_is_recorded_in_order() -> None:
    """Each stage's start, events and outcome are written, and only what is sent downstream."""
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


def test_what_is_sent_is_recorded_before() -> None:
    """When a subscriber sees an event, it stands in the journal, with the scheduler's time."""
    story, recorder = Story(), MemoryRecorder()
    last: list[tuple[Any, timedelta]] = []

    def look(_event: Any) -> None:
        since = recorder.times[-1] - story.t.scheduler.to_datetime(0)
        last.append((recorder.log[-1][1], since))

    seen = story.t.record(flow(story.told, recorder=recorder).pipe(ops.do_action(look)))
    expected = [(value, timedelta(seconds=at)) for at, kind, value in seen if kind == "next"]
    assert expected == last


@pytest.mark.parametrize("cut", range(len(WHOLE) + 1))
class TestEveryKillPoint:
    def test_nothing_is_lost_or_sent_twice(self, cut: int) -> None:
        """Killed after any entry and resumed, a flow has sent all once, but for the cut stage."""
        recorder = MemoryRecorder(WHOLE[:cut])
        seen = Story().play(recorder)
        assert "completed" == seen[-1][1]
        assert sent_by(WHOLE) == sent_by(WHOLE[:cut]) + values(seen)
        assert outcomes_of(WHOLE) == outcomes_of(recorder.log)

    def test_no_recorded_stage_is_subscribed(self, cut: int) -> None:
        """A resumed flow subscribes each stage without an outcome once, and no other."""
        story = Story()
        story.play(MemoryRecorder(WHOLE[:cut]))
        whole = Story()
        whole.play(MemoryRecorder())
        done = [name for name, _ in outcomes_of(WHOLE[:cut])]
        before = {f"{name} {n}" for name in set(done) for n in range(1, done.count(name) + 1)}
        assert [name for name in whole.subscribed if name not in before] == story.subscribed

    def test_killed_again_while_resuming(self, cut: int) -> None:
        """A flow that is resumed in two steps sends what one that is resumed at once does."""
        first = MemoryRecorder(WHOLE[:cut])
        Story().play(first, until=4, dispose_at=3)
        seen = Story().play(MemoryRecorder(first.log))
        assert sent_by(WHOLE) == sent_by(first.log) + values(seen)


@pytest.mark.parametrize("call", range(1, len(CALLS) + 1))
class TestFailingRecorder:
    def test_the_error_ends_the_stream(self, call: int) -> None:
        """An exception of the recorder ends the stream, its stage and its generator at once."""
        story = Story()
        seen = story.play(MemoryRecorder(fails_at=call))
        at, kind, error = seen[-1]
        assert ("error", f"no space for {CALLS[call - 1]}") == (kind, str(error))
        assert [] == [event for event in seen[:-1] if event[1] != "next"]
        assert [] == [s for s in story.subscriptions if s[1] is None or s[1] > at]
        assert 1 == story.closed

    def test_what_could_not_be_written_is_not_done(self, call: int) -> None:
        """Nothing is sent that is not recorded, and no stage runs whose start is not."""
        story, recorder = Story(), MemoryRecorder(fails_at=call)
        seen = story.play(recorder)
        assert [v for kind, v in recorder.log if kind in ("said", "forwarded")] == values(seen)
        starts = [value for kind, value in recorder.log if kind == "started"]
        assert len(starts) == len(story.subscribed)

    def test_it_can_be_resumed(self, call: int) -> None:
        """With a recorder that works again the flow goes on where the other one failed."""
        recorder = MemoryRecorder(fails_at=call)
        Story().play(recorder)
        seen = Story().play(MemoryRecorder(recorder.log))
        assert sent_by(WHOLE) == sent_by(recorder.log) + values(seen)


def test_names_that_differ() -> None:
    """A journal of other stages is refused before anything is subscribed."""
    story = Story()
    log: list[Line] = [*WHOLE[:5], ("started", "volume"), ("finished", ("volume", "y"))]
    seen = story.play(MemoryRecorder(log))
    assert ["error"] == [kind for _, kind, _ in seen]
    assert "volume is recorded, not size" == str(seen[0][2])
    assert [] == story.subscribed
    assert 1 == story.closed


def test_more_is_recorded_than_the_story_tells() -> None:
    """Outcomes behind the end of the story are no error."""
    story = Story()
    seen = story.play(MemoryRecorder([*WHOLE, ("finished", ("extra", 1))]))
    assert [(0.0, "completed", None)] == seen


def test_a_long_replay_needs_no_stack() -> None:
    """Ten thousand recorded stages are fed back without recursion."""

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
