"""`flow` with a recorder, when stages fail, the recorder is slow or broken, or nobody listens."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import reactivex as rx
from reactivex import operators as ops

from cuggino.operators import Flow, emit, flow, forward
from cuggino.testing import Marbles
from tests.operators.durable import MemoryRecorder, Story, outcomes_of, undisturbed, values


def test_a_story_does_not_see_the_recorders_failure() -> None:
    """A generator's `except` is for its stages' errors; its `finally` runs for the recorder's."""
    order: list[str] = []

    def story() -> Flow[None]:
        try:
            yield from forward(rx.of(1, 2), name="stage")
        except Exception:
            order.append("thrown into the story")
        finally:
            order.append("closed")

    errors: list[Exception] = []
    seen: list[int] = []
    recorder = MemoryRecorder(fails_at=4)
    flow(story, recorder=recorder).subscribe(seen.append, errors.append)
    assert ["replay", "started", "event", "event"] == recorder.calls
    assert (["closed"], [1], 1) == (order, seen, len(errors))


class TestErrorsOfStages:
    def test_an_error_is_noted_and_thrown(self) -> None:
        """The recorder is told of a stage's error, and the generator gets it at its `yield`."""
        t = Marbles(a="a", c="caught boom", error=RuntimeError("boom"))
        recorder = MemoryRecorder()

        def story() -> Flow[None]:
            try:
                yield from forward(t.cold("a-#"), name="stage")
            except RuntimeError as error:
                yield from emit(f"caught {error}")

        t.check(flow(story, recorder=recorder), "a-(c|)")
        assert ["replay", "started", "event", "failed", "event"] == recorder.calls
        assert [] == outcomes_of(recorder.log)

    def test_a_resumed_flow_runs_the_failed_stage_again(self) -> None:
        """A stage that failed has no outcome: a resumed flow begins with it."""
        t = Marbles(a="a", b="b", c="c", error=RuntimeError("boom"))
        good, bad = t.cold("-a|"), t.cold("b-#")

        def story(second: rx.Observable[Any]) -> Flow[None]:
            yield from forward(good, name="good")
            yield from forward(second, name="second")

        recorder = MemoryRecorder()
        t.check(flow(partial(story, bad), recorder=recorder), "-ab-#", until=100)
        later = Marbles(c="c")
        resumed = flow(partial(story, later.cold("-c|")), recorder=MemoryRecorder(recorder.log))
        later.check(resumed, "-c|")
        t.check_subscriptions(good, "^-!")

    def test_a_failure_that_cannot_be_noted(self) -> None:
        """When noting a stage's error fails, that failure ends the stream."""
        t = Marbles(a="a", error=RuntimeError("boom"))
        stage = t.cold("-#")
        recorder = MemoryRecorder(fails_at=3)
        closed: list[bool] = []

        def story() -> Flow[None]:
            try:
                yield from forward(stage, name="stage")
            finally:
                closed.append(True)

        seen = t.record(flow(story, recorder=recorder))
        assert [(1.0, "error", "no space for failed")] == [(at, k, str(e)) for at, k, e in seen]
        t.check_subscriptions(stage, "^!")
        assert [True] == closed


def test_a_slow_recorder_delays_and_loses_nothing() -> None:
    """While an entry takes its time the clock goes on, and the next events come after it."""
    t = Marbles(a="a", b="b", c="c")
    order: list[str] = []

    class Slow(MemoryRecorder):
        def event(self, event: Any, *, staged: bool, at: datetime) -> bool:
            order.append(f"write {event}")
            t.scheduler.sleep(5)
            order.append(f"written {event}")
            return super().event(event, staged=staged, at=at)

    def story() -> Flow[None]:
        yield from forward(t.cold("-ab|"), name="stage")
        yield from emit("c")

    recorder = Slow()
    stream = flow(story, recorder=recorder).pipe(ops.do_action(lambda e: order.append(f"see {e}")))
    seen = t.record(stream)
    assert ["a", "b", "c"] == values(seen)
    assert "completed" == seen[-1][1]
    assert [f"{what} {e}" for e in "abc" for what in ("write", "written", "see")] == order
    assert [6.0, 11.0, 16.0] == [at for at, kind, _ in seen if kind == "next"]


def test_disposal_writes_nothing_more() -> None:
    """A disposed flow has no outcome of its running stage, and its journal gets no further line."""
    story, recorder = Story(), MemoryRecorder()
    story.play(recorder, dispose_at=5, until=6)
    lines = list(recorder.log)
    story.t.scheduler.advance_to(1000)
    assert lines == recorder.log
    assert [("forwarded", "b")] == recorder.log[-1:]
    assert 1 == story.closed


def test_a_subscriber_that_disposes_at_an_event_is_obeyed() -> None:
    """When a subscriber has had enough at an event, no outcome and nothing later is recorded."""
    whole = undisturbed().log
    story, recorder = Story(), MemoryRecorder(whole[:1])
    seen = story.t.record(flow(story.told, recorder=recorder).pipe(ops.take(2)))
    assert ["planning", "plan"] == values(seen)
    assert whole[:4] == recorder.log
    assert ["plan 1"] == story.subscribed
    assert [(0.0, 1.0)] == story.subscriptions
    assert 1 == story.closed
