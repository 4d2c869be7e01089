"""Silent agents: the events that count as activity, and the response to silence."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from reactivex.disposable import Disposable

from cuggino.errors import AgentFailed, AgentStalled
from cuggino.events import (
    AgentNudged,
    AgentReplaced,
)
from cuggino.operators.supervision import Remedies
from cuggino.testing import Marbles
from tests.operators.idle import check_stalled, marbles, pending, watched


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
            watched(idle=5, nudge=lambda _: agent("nudged"), replace=lambda _: agent("fresh")),
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
            "first begins",
            "first gone",
            "AgentNudged",
            "nudged begins",
            "nudged gone",
            "AgentReplaced",
            "fresh begins",
            "fresh gone",
            "AgentStalled",
        ] == order

    def test_events_after_a_remedy_give_none_back(self) -> None:
        """An agent that works well after a nudge and falls silent again is replaced."""
        t = marbles()
        nudged, fresh = t.cold("b--b--b--b"), t.cold("a|")
        stream = t.cold("a").pipe(watched(idle=5, nudge=lambda _: nudged, replace=lambda _: fresh))
        t.check(stream, "a----(Nb)--b--b--b----(Ra)|")

    def test_an_agent_that_ends_after_a_nudge_ends_the_stream(self) -> None:
        """Completion after a remedy is completion, with no timer left."""
        t = marbles()
        t.check(t.cold("a").pipe(watched(idle=5, nudge=lambda _: t.cold("-b|"))), "a----N b|")
        assert 0 == pending(t)

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
    def test_a_stream_that_speaks_is_passed_on_unchanged(self) -> None:
        """Nothing is added to an agent that is never silent for long, and no timer is left."""
        t = marbles()
        source = t.cold("a--b----a|")
        t.check(source.pipe(watched(idle=5)), "a--b----a|", until=9)
        t.check_subscriptions(source, "^--------!")
        assert 0 == pending(t)

    def test_is_counted_from_the_subscription(self) -> None:
        """An agent without any event counts as silent."""
        t = marbles()
        t.check(t.cold("").pipe(watched(idle=5, replace=lambda _: t.cold("b|"))), "-----(Rb)|")

    def test_a_ping_is_a_sign_of_life(self) -> None:
        """Any event keeps an agent alive, for an hour of pings and longer."""
        t = marbles()
        pings = "p---" * 900
        t.check(t.cold(pings + "|").pipe(watched(idle=5)), pings + "|")

    def test_an_event_of_the_very_instant_counts(self) -> None:
        """An event or an end at the very instant of the timeout is in time."""
        t = marbles()
        replaced = watched(idle=5, replace=lambda _: t.cold("b|"))
        t.check(t.cold("a----a").pipe(replaced), "a----a----(Rb)|")
        other = marbles()
        other.check(other.cold("a----|").pipe(watched(idle=5)), "a----|")
        third = marbles()
        third.check(third.cold("a----#").pipe(watched(idle=5)), "a----#")

    def test_an_error_of_the_agent_passes_through(self) -> None:
        """A failure is not silence: it is passed on at once, the agent gone before it."""
        failure = AgentFailed("no", reason="crash")
        order: list[str] = []
        t = Marbles(a=1, error=failure)
        source = t.cold("a-#")
        stream: rx.Observable[Any] = source.pipe(
            ops.finally_action(lambda: order.append("gone")),
            watched(idle=5),
            ops.do_action(on_error=lambda _: order.append("error")),
        )
        t.check(stream, "a-#")
        t.check_subscriptions(source, "^-!")
        assert ["gone", "error"] == order
        assert 0 == pending(t)

    def test_none_means_no_limit(self) -> None:
        """With `idle=None` the operator gives the source itself."""
        source = marbles().cold("a")
        assert source is source.pipe(watched(idle=None, tool=5))

    @pytest.mark.parametrize("limits", [{"idle": 0}, {"idle": -1}, {"idle": 5, "tool": 0}])
    def test_a_limit_of_nothing_is_refused(self, limits: dict[str, float]) -> None:
        """A limit of no seconds or fewer is a mistake of the caller."""
        with pytest.raises(ValueError, match="more than 0 seconds"):
            watched(**limits)

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
