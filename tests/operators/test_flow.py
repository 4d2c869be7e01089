"""`flow`: each property that the architecture lists, also with a recorder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.disposable import Disposable

import cuggino
from cuggino.operators import Flow, ask, emit, flow, forward, interrupt_when
from cuggino.testing import Marbles
from tests.operators.durable import (
    Line,
    MemoryRecorder,
    Story,
    outcomes_of,
    sent_by,
    undisturbed,
    values,
)


def test_a_finished_stage_is_released_before_the_generator_goes_on() -> None:
    """The `finally_action` of a stage, synchronous or not, runs before the next line."""
    t = Marbles(a="a")
    order: list[str] = []

    def story() -> Flow[None]:
        for name, stream in (("sync", rx.of(1)), ("timed", t.cold("--a|"))):
            released = ops.finally_action(partial(order.append, f"released {name}"))
            yield from forward(stream.pipe(released))
            order.append(f"after {name}")

    t.record(flow(story))
    assert order == ["released sync", "after sync", "released timed", "after timed"]


def test_an_error_that_is_not_caught_ends_the_stream() -> None:
    """An error of a stage or of the generator itself is the error of the stream."""
    t = Marbles(a="a", error=RuntimeError("boom"))

    def story() -> Flow[None]:
        yield from forward(t.cold("a-#"))

    t.check(flow(story), "a-#")

    def bad() -> Flow[None]:
        yield from emit("a")
        raise t.error

    other = Marbles(a="a", error=t.error)
    other.check(flow(bad), "(a#)")


def test_disposal_ends_the_stage_first_and_then_closes_the_generator() -> None:
    """On disposal the running stage is disposed, then the generator's `finally` runs."""
    t = Marbles(a="a")
    order: list[str] = []
    stage = t.cold("-a-a-a-a").pipe(ops.finally_action(lambda: order.append("stage")))

    def story() -> Flow[None]:
        try:
            yield from forward(stage)
        finally:
            order.append("generator")

    t.check(flow(story), "-a-a", dispose_at=4)
    assert order == ["stage", "generator"]


def test_disposal_while_the_generator_runs_closes_it_at_its_next_yield() -> None:
    """Disposed from within its body, a generator reaches its yield and starts no stage."""
    order: list[str] = []
    holder: list[Any] = []
    t = Marbles(a="a")
    never_started = t.cold("a|")

    def story() -> Flow[None]:
        try:
            yield from forward(rx.timer(1))
            holder[0].dispose()
            order.append("body went on")
            yield from forward(never_started)
        finally:
            order.append("closed")

    holder.append(flow(story).subscribe(scheduler=t.scheduler))
    t.scheduler.advance_to(10)
    assert order == ["body went on", "closed"]


def test_a_body_that_was_disposed_and_returns_completes_nothing() -> None:
    """The end of a generator that its subscriber has left is not reported."""
    told: list[object] = []
    holder: list[Any] = []
    stage: rx.Subject[str] = rx.Subject()

    def story() -> Flow[None]:
        yield from forward(stage)
        holder[0].dispose()
        told.append("body returned")

    holder.append(flow(story).subscribe(told.append, told.append, lambda: told.append("done")))
    stage.on_completed()
    assert ["body returned"] == told


def test_an_error_of_a_body_that_was_disposed_is_not_lost() -> None:
    """Without a subscriber the error is raised where the stage ended, and nothing is emitted."""
    told: list[object] = []
    holder: list[Any] = []
    stage: rx.Subject[str] = rx.Subject()

    def story() -> Flow[None]:
        yield from forward(stage)
        holder[0].dispose()
        raise OSError("in the midst of its end")

    holder.append(flow(story).subscribe(told.append, told.append, lambda: told.append("done")))
    with pytest.raises(OSError, match="in the midst of its end"):
        stage.on_completed()
    assert [] == told


def test_take_inside_an_emit_stops_at_once() -> None:
    """A subscriber that has had enough in the middle of an `emit` gets nothing more."""
    seen: list[int] = []
    closed: list[bool] = []

    def story() -> Flow[None]:
        try:
            yield from emit(1, 2, 3)
            yield from emit(4)
        finally:
            closed.append(True)

    flow(story).pipe(ops.take(2)).subscribe(seen.append)
    assert seen == [1, 2]
    assert closed == [True]


@pytest.mark.parametrize("kind", ["current thread", "trampolined", "in the subscription"])
def test_the_stack_stays_constant_over_many_synchronous_stages(kind: str) -> None:
    """Thousands of stages that end within their subscription need no deeper stack than ten."""
    depths: set[int] = set()

    def now(observer: Any, scheduler: Any = None) -> Any:
        observer.on_next(1)
        observer.on_completed()
        return Disposable()

    stages: dict[str, Callable[[], rx.Observable[int]]] = {
        "current thread": lambda: rx.of(1),
        "trampolined": lambda: rx.defer(lambda _: rx.of(1)),
        "in the subscription": lambda: rx.create(now),
    }

    def story() -> Flow[None]:
        for n in range(1_500):
            yield from ask(stages[kind]())
            if n in (100, 1_499):
                depths.add(_depth())
        yield from emit("done")

    seen: list[str] = []
    flow(story).subscribe(seen.append)
    assert seen == ["done"]
    assert len(depths) == 1


def _is_small(n: int) -> bool:
    return n < 3


def endless() -> Flow[None]:
    """Emit all numbers, without ever waiting."""
    for n in count():
        yield from emit(n)


@pytest.mark.parametrize("end", [ops.take(3), ops.take_while(_is_small), ops.first()])
def test_a_subscriber_ends_an_endless_generator(end: Any) -> None:
    """A story that never waits is closed when its subscriber has enough, on any scheduler."""
    seen: list[int] = []
    flow(endless).pipe(end).subscribe(seen.append)
    assert seen == list(range(len(seen)))
    assert cuggino.run(flow(endless).pipe(end)) == seen[-1]
    assert cuggino.run(flow(lambda: ask(flow(endless).pipe(end))).pipe(ops.count())) == 0


def test_an_endless_generator_takes_turns() -> None:
    """The lane of a story that never waits runs its timers too."""
    cuggino.run(flow(endless).pipe(interrupt_when(rx.timer(0.01))))


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def test_each_subscription_has_a_generator_of_its_own() -> None:
    """Two subscriptions tell the story twice."""

    def story() -> Flow[None]:
        yield from emit("once")

    seen: list[str] = []
    stream = flow(story)
    stream.subscribe(seen.append)
    stream.subscribe(seen.append)
    assert seen == ["once", "once"]


def test_the_subscribers_failure_is_not_thrown_into_the_generator() -> None:
    """An exception in `on_next` ends the stream with it; the story's `except` does not see it."""
    order: list[str] = []

    def story() -> Flow[None]:
        try:
            yield from forward(rx.of(1, 2))
        except ValueError:
            order.append("thrown into the story")
        finally:
            order.append("closed")

    def fail(_value: int) -> None:
        raise ValueError("subscriber")

    errors: list[Exception] = []
    flow(story).subscribe(fail, errors.append)
    assert order == ["closed"]
    assert [str(error) for error in errors] == ["subscriber"]


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
    """Thousands of recorded stages are replayed without recursion."""

    def story() -> Flow[None]:
        total = 0
        for _ in range(3_000):
            one: Any = yield from ask(rx.never(), name="stage")
            total += one
        yield from emit(total)

    log: list[Line] = [("finished", ("stage", 1))] * 3_000
    seen: list[int] = []
    flow(story, recorder=MemoryRecorder(log)).subscribe(seen.append)
    assert [3_000] == seen


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
