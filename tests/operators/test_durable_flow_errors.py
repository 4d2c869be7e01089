"""`flow` with a recorder: failing stages, a slow or broken recorder, disposal."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import reactivex as rx
from reactivex import operators as ops

from cuggino.operators import Flow, emit, flow, forward
from cuggino.testing import Marbles
from tests.operators.durable import MemoryRecorder, Story, outcomes_of, undisturbed, values


def test_a_generator_cannot_catch_the_recorders_error() -> None:
    """A generator can catch errors of its stages; for the recorder's only `finally` runs."""
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
    def test_an_error_is_recorded_and_thrown(self) -> None:
        """A stage's error is passed to the recorder and thrown into the generator."""
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
        """A resumed flow starts with the stage that failed, as it has no outcome."""
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

    def test_an_error_that_cannot_be_recorded(self) -> None:
        """A recorder that fails to record a stage's error ends the stream with its own."""
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
    """Events that arrive during a slow append are sent after it, in order."""
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


def test_disposal_records_nothing() -> None:
    """A disposed flow records neither the outcome of its running stage nor anything else."""
    story, recorder = Story(), MemoryRecorder()
    story.play(recorder, dispose_at=5, until=6)
    lines = list(recorder.log)
    story.t.scheduler.advance_to(1000)
    assert lines == recorder.log
    assert [("forwarded", "b")] == recorder.log[-1:]
    assert 1 == story.closed


def test_disposal_at_an_event() -> None:
    """A subscriber that disposes while it receives an event ends recording there."""
    whole = undisturbed().log
    story, recorder = Story(), MemoryRecorder(whole[:1])
    seen = story.t.record(flow(story.told, recorder=recorder).pipe(ops.take(2)))
    assert ["planning", "plan"] == values(seen)
    assert whole[:4] == recorder.log
    assert ["plan 1"] == story.subscribed
    assert [(0.0, 1.0)] == story.subscriptions
    assert 1 == story.closed
