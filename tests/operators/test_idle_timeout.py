"""Silent agents, running tools, and the time of a whole stage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from reactivex.disposable import Disposable
from reactivex.testing import TestScheduler

from cuggino import events as ev
from cuggino.errors import AgentStalled
from cuggino.events import AgentNudged, AgentReplaced
from cuggino.operators import LoopScheduler, on_loop
from cuggino.operators.supervision import Remedies, stage_timeout
from cuggino.testing import Marbles
from tests.limits import LIMIT
from tests.operators.policies import check_stalled, marbles, one_after_the_other, pending, watched


def timed(seconds: float | None, **options: Any) -> Any:
    """Return the operator, untyped to fit a `pipe`; these tests are not about types."""
    return stage_timeout(seconds, **options)


PINGS = "p---" * 900
DRAWN: dict[str, tuple[str, dict[str, Any], dict[str, str], str]] = {
    "an agent that speaks is left alone": ("a--b----a|", {}, {}, "a--b----a|"),
    "silence is counted from the subscription": ("", {}, {"replace": "b|"}, "-----(Rb)|"),
    "a ping is a sign of life, for an hour": (f"{PINGS}|", {}, {}, f"{PINGS}|"),
    "an event of the instant": ("a----a", {}, {"replace": "b|"}, "a----a----(Rb)|"),
    "an end of the instant is in time": ("a----|", {}, {}, "a----|"),
    "an error of the instant is in time": ("a----#", {}, {}, "a----#"),
    "an end after a nudge is the end": ("a", {}, {"nudge": "-b|"}, "a----N b|"),
    "events after a remedy give none back": (
        *("a", {}, {"nudge": "b--b--b--b", "replace": "a|"}),
        "a----(Nb)--b--b--b----(Ra)|",
    ),
    "a tool may run for long": ("aC 20m c--a|", {"idle": 60}, {}, "aC 20m c--a|"),
    "and up to its own limit": ("aC 20m c--a|", {"idle": 60, "tool": 7200}, {}, "aC 20m c--a|"),
    "silence after a long tool begins at its result": (
        *("C 20m c", {"idle": 60, "tool": 7200}, {"replace": "b|"}),
        "C 20m c 59s (Rb)|",
    ),
    "the other of two tools still runs": ("CDd 1m c|", {}, {}, "CDd 1m c|"),
    "until the last result": ("CDc 1m d", {}, {"replace": "b|"}, "CDc 1m d----(Rb)|"),
    "a result with another id ends no tool": ("Cd? 1m c|", {}, {}, "Cd? 1m c|"),
    "nor begins one": ("d?", {}, {"replace": "b|"}, "d?----(Rb)|"),
    "a call without an id runs": ("UCc 1m ?|", {}, {}, "UCc 1m ?|"),
    "until a result of unknown id": ("U 1m ?", {}, {"replace": "b|"}, "U 1m ?----(Rb)|"),
    "of which each ends one": ("UU? 1m ?|", {}, {}, "UU? 1m ?|"),
    "an ended session has no tools": ("CUE", {}, {"replace": "b|"}, "CUE----(Rb)|"),
    "nor a retried one": ("CUY", {}, {"replace": "b|"}, "CUY----(Rb)|"),
    "nor a nudged one": ("CUN", {}, {"replace": "b|"}, "CUN----(Rb)|"),
    "nor a replaced one": ("CUR", {}, {"replace": "b|"}, "CUR----(Rb)|"),
    "a stage that is done in time": ("a-b-|", {"stage": 5}, {}, "a-b-|"),
    "a stage that ends at the instant": ("a----|", {"stage": 5}, {}, "a----|"),
    "a stage that fails at the instant": ("a----#", {"stage": 5}, {}, "a----#"),
    "a stage that fails before": ("a-#", {"stage": 5}, {}, "a-#"),
    "and one that is done after a remedy": (
        *("a-" * 50, {"stage": 5}, {"replace": "b-|"}),
        "a-a-a(Rb)-|",
    ),
}
"""Agents, the limits, the agents of the remedies, and the stream, each by what it shows."""


@pytest.mark.parametrize("shown", DRAWN)
def test_drawn(shown: str) -> None:
    """The stream is as it is drawn; no agent and no timer is left."""
    said, limits, instead, expected = DRAWN[shown]
    t = marbles(R=AgentReplaced(idle=limits.get("idle", None if "stage" in limits else 5)))
    source = t.cold(said)
    agents = {name: t.cold(diagram) for name, diagram in instead.items()}
    remedies = {name: lambda _, agent=agent: agent for name, agent in agents.items()}
    operator = (
        timed(limits["stage"], **remedies)
        if "stage" in limits
        else watched(**{"idle": 5, **limits}, **remedies)
    )
    t.check(source.pipe(operator), expected)
    assert all(
        end is not None for one in (source, *agents.values()) for _, end in one.subscriptions
    )
    assert 0 == pending(t)


class TestTheLadder:
    def test_is_climbed_one_rung_at_a_time(self) -> None:
        """A nudge, a fresh agent, the error: each after a new silence, each ends the one before."""
        t = marbles()
        source, nudged, fresh = t.cold("a"), t.cold("b"), t.cold("a")
        stream = source.pipe(watched(idle=5, nudge=lambda _: nudged, replace=lambda _: fresh))
        error = check_stalled(t, stream, "a----(Nb)----(Ra)----#")
        t.check_subscriptions(source, "^----!")
        t.check_subscriptions(nudged, "-----^----!")
        t.check_subscriptions(fresh, "----------^----!")
        assert (
            "the agent was silent for 5 s (no tool was running), "
            "again after a nudge and a fresh agent"
        ) == str(error)
        assert error.hint is not None
        assert error.hint.startswith("raise idleTimeout in .cuggino.json")
        assert 14 == error.code

    def test_ends_at_an_agent_that_cannot_be_released(self) -> None:
        """No other agent begins; the error of the release is the stream's."""

        def fail() -> None:
            raise t.error

        t = marbles()
        stuck: rx.Observable[Any] = rx.never().pipe(ops.finally_action(fail))
        fresh = t.cold("a")
        t.check(stuck.pipe(watched(idle=5, replace=lambda _: fresh)), "-----#")
        t.check_subscriptions(fresh)

    def test_without_a_nudge_begins_with_a_fresh_agent(self) -> None:
        """The first step is left out, and the source itself is subscribed again."""
        t = marbles()
        source = t.cold("a")
        error = check_stalled(t, source.pipe(watched(idle=5)), "a----(Ra)----#")
        t.check_subscriptions(source, "^----!", "-----^----!")
        assert str(error).endswith("again after a fresh agent")

    def test_each_step_tells_the_remedy_why(self) -> None:
        """The callables are given the error that would have ended the stage, with its reason."""
        t = marbles(N=AgentNudged(idle=60, tool="Bash"))
        told: list[str] = []

        def instead(error: AgentStalled) -> rx.Observable[Any]:
            told.append(f"{error} / {error.hint}")
            return t.cold("-|")

        stream = t.cold("C").pipe(watched(idle=5, tool=60, nudge=instead))
        t.check(stream, "C 59s N|")
        (reason,) = told
        assert reason.startswith(
            "the agent was silent for 60 s (Bash was running) / raise toolTimeout in .cuggino.json"
        )

    def test_the_agent_is_gone_before_each_step_is_said(self) -> None:
        """Release, event, next subscription, in this order; release again before the error."""
        order: list[Any] = []

        def agent(name: str) -> rx.Observable[Any]:
            def subscribe(_observer: Any, _scheduler: Any = None) -> Disposable:
                order.append(f"{name} begins")
                return Disposable(lambda: order.append(f"{name} gone"))

            return rx.Observable(subscribe)

        t = marbles()
        stream = agent("first").pipe(
            watched(idle=5, nudge=lambda _: agent("nudged"), replace=lambda _: agent("fresh"))
        )
        t.record(
            stream.pipe(
                ops.do_action(
                    lambda step: order.append(type(step).__name__),
                    lambda error: order.append(type(error).__name__),
                )
            )
        )
        assert [
            *("first begins", "first gone", "AgentNudged", "nudged begins", "nudged gone"),
            *("AgentReplaced", "fresh begins", "fresh gone", "AgentStalled"),
        ] == order

    def test_a_remedy_that_raises_is_the_streams_error(self) -> None:
        """An exception of `nudge` follows the event, after the release of agent and timer."""
        t = marbles()
        source = t.cold("a")

        def broken(_: AgentStalled) -> rx.Observable[Any]:
            raise t.error

        t.check(source.pipe(watched(idle=5, nudge=broken)), "a----(N#)")
        t.check_subscriptions(source, "^----!")
        assert 0 == pending(t)

    def test_a_remedy_that_is_taken_already_is_not_taken_again(self) -> None:
        """With remedies that were used up elsewhere the first silence is the end."""
        t = marbles()
        used = Remedies(nudged=True, replaced=True)
        stream = t.cold("a").pipe(watched(idle=5, nudge=lambda _: t.cold("b"), remedies=used))
        check_stalled(t, stream, "a----#")

    def test_each_subscription_has_its_own_ladder(self) -> None:
        """Without shared remedies a second subscription begins at the first rung."""
        t = marbles()
        stream = t.cold("a").pipe(watched(idle=5))
        check_stalled(t, rx.concat(stream.pipe(ops.take(2)), stream), "a----(Ra)----(Ra)----#")


class TestSilence:
    @pytest.mark.parametrize("operator", [watched(idle=None, tool=5), timed(None)])
    def test_none_means_no_limit(self, operator: Any) -> None:
        """Without a limit the operator gives the source itself."""
        source = marbles().cold("a")
        assert source is source.pipe(operator)

    @pytest.mark.parametrize(
        ("operator", "limits"),
        [
            *((watched, limits) for limits in ({"idle": 0}, {"idle": -1}, {"idle": 5, "tool": 0})),
            (timed, {"seconds": 0}),
        ],
    )
    def test_a_limit_of_nothing_is_refused(self, operator: Any, limits: dict[str, Any]) -> None:
        """A limit of no seconds or fewer is a mistake of the caller."""
        with pytest.raises(ValueError, match="more than 0 seconds"):
            operator(**limits)

    @given(
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from("aCcDdUE?")), max_size=30),
        st.one_of(st.none(), st.integers(1, 20)),
    )
    def test_agrees_with_a_plain_account(
        self, steps: list[tuple[int, str]], tool: int | None
    ) -> None:
        """Any agent is replaced when a plain count of the seconds predicts it."""
        idle, now, expected, running = 4, 0, None, list[str]()
        timed = []
        for gap, mark in [*steps, (1000, "a")]:
            limit = tool if running else idle
            if limit is not None and gap > limit:
                expected = now + limit
                break
            now += gap
            timed.append((now, mark))
            opened = {"c": "C", "d": "D"}.get(mark)
            if mark in "CDU":
                running = [r for r in running if r != mark or mark == "U"] + [mark]
            elif mark == "E":
                running = []
            elif opened in running:
                running.remove(opened)
            elif mark in "cd?" and "U" in running:
                running.remove("U")
        t = marbles()

        def says(event: Any) -> Any:
            return ops.map(lambda _: event)

        spoken = [rx.timer(float(when)).pipe(says(t.events[mark])) for when, mark in timed]
        source = rx.merge(*spoken, rx.never())
        seen = t.record(source.pipe(watched(idle=idle, tool=tool)))
        replaced = [when for when, _, value in seen if isinstance(value, AgentReplaced)]
        assert ([expected] if expected is not None else []) == replaced[:1]


class TestTools:
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

    def test_a_remedy_ends_the_tools_of_the_agent_before(self) -> None:
        """The agent that comes instead begins without a running tool."""
        t = marbles(N=ev.AgentNudged(idle=60, tool="Bash"))
        stream = t.cold("C").pipe(watched(idle=5, tool=60, nudge=lambda _: t.cold("b")))
        seen = t.record(stream, until=66)
        assert [*t.parse("C 59s (Nb)----"), (65, "next", ev.AgentReplaced(idle=5))] == seen[:4]


class TestRelease:
    @pytest.mark.parametrize("at", [0.5, 4, 5, 7, 10, 12, 14.5, 15])
    @pytest.mark.parametrize(
        ("operator", "limit", "said"),
        [(watched, {"idle": 5}, "a"), (timed, {"seconds": 5}, "a-" * 50)],
        ids=["silence", "a stage"],
    )
    def test_disposal_at_any_moment_leaves_nothing(
        self, at: float, operator: Any, limit: dict[str, float], said: str
    ) -> None:
        """On every rung, and in the instant of each timeout, no timer and no agent is left."""
        t = marbles()
        agents = [t.cold(said), t.cold(said), t.cold(said)]
        source, nudged, fresh = agents
        stream = source.pipe(operator(**limit, nudge=lambda _: nudged, replace=lambda _: fresh))
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


BUSY = "a-" * 50
"""An agent that is never silent, and never done."""


def stage_marbles(**more: Any) -> Marbles:
    """Messages, a tool (C), and the remedies: of the stage (N, R) and of silence (M, S)."""
    remedies = {
        "N": AgentNudged(idle=None),
        "R": AgentReplaced(idle=None),
        "M": AgentNudged(idle=5),
        "S": AgentReplaced(idle=5),
    }
    return marbles(**(remedies | more))


class TestAlone:
    def test_each_remedy_has_the_full_time(self) -> None:
        """Busy or not: a nudge, a fresh agent, and the error after three times the seconds."""
        t = stage_marbles()
        source, nudged, fresh = t.cold(BUSY), t.cold("b---" * 9), t.cold(BUSY)
        stream = source.pipe(timed(5, nudge=lambda _: nudged, replace=lambda _: fresh))
        error = check_stalled(t, stream, "a-a-a(Nb)---b(Ra)-a-a#")
        t.check_subscriptions(source, "^----!")
        t.check_subscriptions(nudged, "-----^----!")
        t.check_subscriptions(fresh, "----------^----!")
        assert (
            "the agent was not done after 5 s (no tool was running), "
            "again after a nudge and a fresh agent"
        ) == str(error)
        assert error.hint is not None
        assert error.hint.startswith("raise stageTimeout in .cuggino.json")

    def test_without_a_nudge_the_stage_begins_anew_at_once(self) -> None:
        """The source is subscribed again, and the stream ends after twice the seconds."""
        t = stage_marbles(R=AgentReplaced(idle=None, tool="Bash"))
        source = t.cold("C")
        error = check_stalled(t, source.pipe(timed(3600)), "C 3599s (RC) 3599s #")
        assert str(error).startswith("the agent was not done after 60 min (Bash was running)")
        assert 2 == len(source.subscriptions)


class TestTogetherWithSilence:
    def both(
        self, remedies: Remedies | None, seconds: float, **options: Any
    ) -> Callable[[rx.Observable[Any]], rx.Observable[Any]]:
        return lambda agent: agent.pipe(
            watched(idle=5, remedies=remedies, **options),
            timed(seconds, remedies=remedies, **options),
        )

    @pytest.mark.parametrize(
        ("agents", "remedies", "seconds", "expected", "error"),
        [
            # Replaced for silence at 5 s, and not again: the full time is up at 14 s.
            (
                *(("a", BUSY), Remedies(), 9, "a----(Sa)-a-a-a-a#"),
                "the agent was not done after 9 s (no tool was running), again after a fresh agent",
            ),
            # Replaced when the time was up, and not again: it fails at the next silence.
            ((BUSY, "b"), Remedies(), 9, "a-a-a-a-a(Rb)----#", "the agent was silent for 5 s"),
            # Two ladders: replaced for silence, and again when the stage's time is up.
            (("a", BUSY, "b-|"), None, 8, "a----(Sa)-a(Rb)-|", ""),
        ],
        ids=["silence first", "the stage first", "not shared"],
    )
    def test_one_ladder_is_shared(
        self,
        agents: tuple[str, ...],
        remedies: Remedies | None,
        seconds: float,
        expected: str,
        error: str,
    ) -> None:
        """A stage is replaced once, for silence or for its time, if the remedies are shared."""
        t = stage_marbles()
        stream = self.both(remedies, seconds)(one_after_the_other(*map(t.cold, agents)))
        if error:
            assert str(check_stalled(t, stream, expected)).startswith(error)
        else:
            t.check(stream, expected)
        assert 0 == pending(t)

    def test_a_nudge_for_silence_leaves_the_stage_a_fresh_agent(self) -> None:
        """Nudged once and replaced once in all, by whichever operator it was."""
        t = stage_marbles()
        nudged = t.cold(BUSY)
        fresh = t.cold("b-|")
        both = self.both(Remedies(), 9, nudge=lambda _: nudged, replace=lambda _: fresh)
        t.check(both(t.cold("a")), "a----(Ma)-a-a-a-a(Rb)-|")
        t.check_subscriptions(nudged, "-----^--------!")

    def test_a_stage_can_guard_what_comes_instead(self) -> None:
        """With `idle_timeout` around the resumed session its silence is noticed as well."""
        t = stage_marbles()
        remedies = Remedies()

        def guarded(agent: rx.Observable[Any]) -> rx.Observable[Any]:
            return agent.pipe(
                watched(idle=5, remedies=remedies, replace=lambda _: guarded(t.cold("b-b")))
            )

        stream = guarded(t.cold(BUSY)).pipe(
            timed(9, nudge=lambda _: guarded(t.cold("b")), remedies=remedies)
        )
        check_stalled(t, stream.pipe(ops.skip(5)), "---------(Nb)----(Sb)-b----#")
        assert 0 == pending(t)

    def test_the_other_order_works_as_well(self) -> None:
        """With the stage's time inside, its remedies are signs of life to the one outside."""
        t = stage_marbles()
        shared = Remedies()
        source = one_after_the_other(t.cold(BUSY), t.cold("b"))
        stream = source.pipe(timed(9, remedies=shared), watched(idle=5, remedies=shared))
        check_stalled(t, stream, "a-a-a-a-a(Rb)----#")
