"""Running tools, which may take longer, and what `idle_timeout` leaves behind: nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.disposable import Disposable
from reactivex.testing import TestScheduler

from cuggino import events as ev
from cuggino.operators import LoopScheduler, on_loop
from tests.limits import LIMIT
from tests.operators.idle import check_stalled, marbles, pending, watched


class TestTools:
    @pytest.mark.parametrize("tool", [None, 7200.0])
    def test_twenty_minutes_of_tests_are_healthy(self, tool: float | None) -> None:
        """An agent that prints nothing while its tool runs is left alone."""
        t = marbles()
        source = t.cold("aC 20m c--a|")
        t.check(source.pipe(watched(idle=60, tool=tool)), "aC 20m c--a|")
        assert 1 == len(source.subscriptions)

    def test_silence_after_a_long_tool_is_measured_from_its_result(self) -> None:
        """The shorter limit holds again from the result on, though the longer timer was set."""
        t = marbles(R=ev.AgentReplaced(idle=60))
        replaced = watched(idle=60, tool=7200, replace=lambda _: t.cold("b|"))
        t.check(t.cold("C 20m c").pipe(replaced), "C 20m c 59s (Rb)|")

    def test_a_tool_has_its_own_limit(self) -> None:
        """A tool that runs for too long ends its agent, and is named."""
        t = marbles(
            N=ev.AgentNudged(idle=7200, tool="Bash"), R=ev.AgentReplaced(idle=7200, tool="Read")
        )
        stream = t.cold("C").pipe(
            watched(idle=60, tool=7200, nudge=lambda _: t.cold("D"), replace=lambda _: t.cold("CD"))
        )
        error = check_stalled(t, stream, "C 7199s (ND) 7199s (RC) D 7199s #")
        assert str(error).startswith("the agent was silent for 2 h (Bash and Read were running)")
        assert error.hint is not None
        assert error.hint.startswith("raise toolTimeout")

    def test_of_many_tools_one_is_named(self) -> None:
        """More than two running tools are the first by name and the number of the others."""
        t = marbles(R=ev.AgentReplaced(idle=60, tool="Bash"))
        stream = t.cold("(CDU)").pipe(watched(idle=5, tool=60))
        (*_, (_when, _kind, error)) = t.record(stream)
        assert "the agent was silent for 60 s (Bash and 2 other tools were running)" in str(error)

    def test_parallel_tools_run_until_the_last_result(self) -> None:
        """The first of two results leaves the other tool running."""
        t = marbles(R=ev.AgentReplaced(idle=5))
        replaced = watched(idle=5, replace=lambda _: t.cold("b|"))
        t.check(t.cold("CDc 1m d").pipe(replaced), "CDc 1m d----(Rb)|")
        other = marbles()
        other.check(other.cold("CDd 1m c|").pipe(watched(idle=5)), "CDd 1m c|")

    def test_a_result_that_nobody_waits_for_changes_nothing(self) -> None:
        """A result with another id leaves the tool running, or nothing running."""
        t = marbles()
        t.check(t.cold("Cd? 1m c|").pipe(watched(idle=5)), "Cd? 1m c|")
        other = marbles()
        replaced = watched(idle=5, replace=lambda _: other.cold("b|"))
        other.check(other.cold("d?").pipe(replaced), "d?----(Rb)|")

    def test_a_call_without_an_id_ends_with_a_result_of_unknown_id(self) -> None:
        """An agent that pairs nothing is not taken for silent while its tool runs."""
        t = marbles()
        replaced = watched(idle=5, replace=lambda _: t.cold("b|"))
        t.check(t.cold("U 1m ?").pipe(replaced), "U 1m ?----(Rb)|")
        other = marbles()
        other.check(other.cold("UCc 1m ?|").pipe(watched(idle=5)), "UCc 1m ?|")

    @pytest.mark.parametrize("mark", ["E", "Y", "N", "R"])
    def test_the_end_of_a_session_ends_its_tools(self, mark: str) -> None:
        """After a session ended, was retried, nudged or replaced below, no tool of it runs."""
        t = marbles(r=ev.AgentReplaced(idle=5))
        replaced = watched(idle=5, replace=lambda _: t.cold("b|"))
        t.check(t.cold(f"CU{mark}").pipe(replaced), f"CU{mark}----(rb)|")

    def test_a_remedy_ends_the_tools_of_the_agent_before(self) -> None:
        """The agent that comes instead begins without a running tool."""
        t = marbles(N=ev.AgentNudged(idle=60, tool="Bash"))
        stream = t.cold("C").pipe(watched(idle=5, tool=60, nudge=lambda _: t.cold("b")))
        seen = t.record(stream, until=66)
        assert [*t.parse("C 59s (Nb)----"), (65, "next", ev.AgentReplaced(idle=5))] == seen[:4]


class TestRelease:
    @pytest.mark.parametrize("at", [0.5, 4, 5, 7, 10, 12, 14.5, 15])
    def test_disposal_at_any_moment_leaves_nothing(self, at: float) -> None:
        """On every rung, and in the instant of each timeout, no timer and no agent is left."""
        t = marbles()
        agents = [t.cold("a"), t.cold("b"), t.cold("a")]
        source, nudged, fresh = agents
        stream = source.pipe(watched(idle=5, nudge=lambda _: nudged, replace=lambda _: fresh))
        seen = t.record(stream, until=at, dispose_at=at)
        assert 0 == pending(t)
        assert all(end is not None for agent in agents for _, end in agent.subscriptions)
        assert all(kind == "next" for _, kind, _ in seen)

    def test_a_subscriber_that_leaves_at_a_step_ends_the_ladder(self) -> None:
        """A disposal during the event of a step subscribes no replacement."""
        t = marbles()
        nudged = t.cold("b")
        stream = t.cold("a").pipe(watched(idle=5, nudge=lambda _: nudged), ops.take(2))
        t.check(stream, "a----(N|)")
        assert [] == nudged.subscriptions
        assert 0 == pending(t)

    def test_a_subscriber_that_raises_at_a_step_leaves_nothing(self) -> None:
        """The exception goes to the scheduler, not to the remedies; no agent and no timer stay."""
        t = marbles()
        source, nudged = t.cold("a"), t.cold("b")

        def shaky(event: Any) -> None:
            if isinstance(event, ev.AgentNudged):
                raise ZeroDivisionError

        source.pipe(watched(idle=5, nudge=lambda _: nudged)).subscribe(shaky, scheduler=t.scheduler)
        with pytest.raises(ZeroDivisionError):
            t.scheduler.advance_to(100)
        t.check_subscriptions(source, "^----!")
        assert [] == nudged.subscriptions
        assert 0 == pending(t)

    def test_a_source_that_ends_within_subscribe_leaves_no_timer(self) -> None:
        """A hundred thousand events at once pass in constant stack, with one timer in all."""
        scheduler = _Counting()

        def at_once(observer: Any, _scheduler: Any = None) -> Disposable:
            for number in range(100_000):
                observer.on_next(number)
            observer.on_completed()
            return Disposable()

        seen: list[int] = []
        ended: list[bool] = []
        rx.Observable(at_once).pipe(watched(idle=5)).subscribe(
            seen.append, on_completed=lambda: ended.append(True), scheduler=scheduler
        )
        assert (list(range(100_000)), [True]) == (seen, ended)
        assert 1 == scheduler.scheduled
        assert all(item.is_cancelled() for item, _ in scheduler._queue.items)

    def test_events_cost_no_timers(self) -> None:
        """One timer is pending at any time, and restarted once per limit, not per event."""
        scheduler = _Counting()
        source: rx.subject.Subject[Any] = rx.subject.Subject()
        source.pipe(watched(idle=50, tool=100)).subscribe(scheduler=scheduler)
        most = 0
        for second in range(1, 1001):
            scheduler.advance_to(float(second))
            source.on_next(ev.ToolCall(name="Bash", id="1"))
            source.on_next(ev.PingEvent(timestamp=second))
            source.on_next(ev.ToolResult(name="1", output=""))
            waiting = sum(not item.is_cancelled() for item, _ in scheduler._queue.items)
            most = max(most, waiting)
        assert 1 == most
        assert scheduler.scheduled <= 22

    def test_works_on_the_real_scheduler(self) -> None:
        """On the lane of a run the ladder is climbed in real time as well."""
        lane, ended, seen = LoopScheduler(), threading.Event(), list[str]()

        def failed(error: Exception) -> None:
            seen.append(type(error).__name__)
            ended.set()

        silent: rx.Observable[Any] = rx.never()
        stream = on_loop(silent.pipe(watched(idle=0.02, nudge=lambda _: silent)))
        try:
            stream.subscribe(lambda event: seen.append(event.tag), failed, scheduler=lane)
            assert ended.wait(LIMIT)
        finally:
            lane.close()
        assert ["AgentNudged", "AgentReplaced", "AgentStalled"] == seen


class _Counting(TestScheduler):
    """Virtual time that counts scheduled actions."""

    __test__ = False
    scheduled = 0

    def schedule_absolute(self, duetime: Any, action: Any, state: Any = None) -> Any:
        self.scheduled += 1
        return super().schedule_absolute(duetime, action, state)
