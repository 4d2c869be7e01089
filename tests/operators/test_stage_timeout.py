"""The time of a whole stage, alone and together with the answer to silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

from cuggino.events import AgentMessage, AgentNudged, AgentReplaced, ToolCall
from cuggino.operators.supervision import Remedies, stage_timeout
from cuggino.testing import Marbles
from tests.operators.idle import check_stalled, watched

BUSY = "a-" * 50
"""An agent that is never silent, and never done."""


def timed(seconds: float | None, **options: Any) -> Any:
    """Return the operator, untyped to fit a `pipe`; these tests are not about types."""
    return stage_timeout(seconds, **options)


def marbles(**more: Any) -> Marbles:
    """Messages, a tool (C), and the remedies: of the stage (R) and of silence (S)."""
    events: dict[str, Any] = {
        "a": AgentMessage(text="a"),
        "b": AgentMessage(text="b"),
        "C": ToolCall(name="Bash", id="1"),
        "N": AgentNudged(idle=None),
        "R": AgentReplaced(idle=None),
        "M": AgentNudged(idle=5),
        "S": AgentReplaced(idle=5),
    }
    return Marbles(**(events | more))


def pending(t: Marbles) -> int:
    """Count the pending timers."""
    return sum(not item.is_cancelled() for item, _ in t.scheduler._queue.items)


def one_after_another(*streams: Any) -> rx.Observable[Any]:
    """A cold source that is another stream at each subscription: agents are never the same."""
    rest = iter(streams)
    return rx.defer(lambda _scheduler: next(rest))


class TestAlone:
    def test_each_remedy_has_the_full_time(self) -> None:
        """Busy or not: a nudge, a fresh agent, and the error after three times the seconds."""
        t = marbles()
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
        t = marbles(R=AgentReplaced(idle=None, tool="Bash"))
        source = t.cold("C")
        error = check_stalled(t, source.pipe(timed(3600)), "C 3599s (RC) 3599s #")
        assert str(error).startswith("the agent was not done after 60 min (Bash was running)")
        assert 2 == len(source.subscriptions)

    def test_a_stage_that_is_done_in_time_is_passed_on_unchanged(self) -> None:
        """Nothing is added, and no timer is left."""
        t = marbles()
        t.check(t.cold("a-b-|").pipe(timed(5)), "a-b-|", until=4.5)
        assert 0 == pending(t)

    def test_what_ends_when_the_time_is_just_up_is_in_time(self) -> None:
        """Completion and failure in the very instant of the timeout win."""
        t = marbles()
        t.check(t.cold("a----|").pipe(timed(5)), "a----|")
        other = marbles()
        other.check(other.cold("a----#").pipe(timed(5)), "a----#")

    def test_an_error_passes_through(self) -> None:
        """A failure is passed on at once, with the agent gone and no timer left."""
        t = marbles()
        source = t.cold("a-#")
        t.check(source.pipe(timed(5)), "a-#", until=3)
        t.check_subscriptions(source, "^-!")
        assert 0 == pending(t)

    def test_a_stage_that_is_done_after_a_remedy_ends_the_stream(self) -> None:
        """Completion of the fresh agent is completion."""
        t = marbles()
        stream = one_after_another(t.cold(BUSY), t.cold("b-|")).pipe(timed(5))
        t.check(stream, "a-a-a(Rb)-|")

    @pytest.mark.parametrize("at", [0.5, 5, 7, 10, 14.5, 15])
    def test_disposal_at_any_moment_leaves_nothing(self, at: float) -> None:
        """On every rung no timer and no agent is left."""
        t = marbles()
        agents = [t.cold(BUSY), t.cold(BUSY), t.cold(BUSY)]
        stream = agents[0].pipe(timed(5, nudge=lambda _: agents[1], replace=lambda _: agents[2]))
        t.record(stream, until=at, dispose_at=at)
        assert 0 == pending(t)
        assert all(end is not None for agent in agents for _, end in agent.subscriptions)

    def test_none_means_no_limit(self) -> None:
        """With None the operator gives the source itself; nothing or less is refused."""
        source = marbles().cold("a")
        assert source is source.pipe(timed(None))
        with pytest.raises(ValueError, match="more than 0 seconds"):
            timed(0)


class TestTogetherWithSilence:
    def both(
        self, remedies: Remedies | None, seconds: float, **options: Any
    ) -> Callable[[rx.Observable[Any]], rx.Observable[Any]]:
        return lambda agent: agent.pipe(
            watched(idle=5, remedies=remedies, **options),
            timed(seconds, remedies=remedies, **options),
        )

    def test_one_ladder_is_shared(self) -> None:
        """A stage that was replaced for silence is not replaced again when its time is up."""
        t = marbles()
        source = one_after_another(t.cold("a"), t.cold(BUSY))
        stream = self.both(Remedies(), 9)(source)
        # Replaced at 5 s: its full time is up at 14 s.
        error = check_stalled(t, stream, "a----(Sa)-a-a-a-a#")
        assert (
            "the agent was not done after 9 s (no tool was running), again after a fresh agent"
        ) == str(error)
        assert 0 == pending(t)

    def test_silence_finds_a_remedy_taken_by_the_stage(self) -> None:
        """A stage that was replaced when its time was up fails at the next silence."""
        t = marbles()
        source = one_after_another(t.cold(BUSY), t.cold("b"))
        error = check_stalled(t, self.both(Remedies(), 9)(source), "a-a-a-a-a(Rb)----#")
        assert str(error).startswith("the agent was silent for 5 s")

    def test_a_nudge_for_silence_leaves_the_stage_a_fresh_agent(self) -> None:
        """Nudged once and replaced once in all, by whichever operator it was."""
        t = marbles()
        nudged = t.cold(BUSY)
        fresh = t.cold("b-|")
        both = self.both(Remedies(), 9, nudge=lambda _: nudged, replace=lambda _: fresh)
        t.check(both(t.cold("a")), "a----(Ma)-a-a-a-a(Rb)-|")
        t.check_subscriptions(nudged, "-----^--------!")

    def test_without_sharing_each_has_its_own(self) -> None:
        """Two ladders: replaced for silence, and again when the stage's time is up."""
        t = marbles()
        source = one_after_another(t.cold("a"), t.cold(BUSY), t.cold("b-|"))
        t.check(self.both(None, 8)(source), "a----(Sa)-a(Rb)-|")

    def test_a_stage_can_guard_what_comes_instead(self) -> None:
        """With `idle_timeout` around the resumed session its silence is noticed as well."""
        t = marbles()
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
        t = marbles()
        shared = Remedies()
        source = one_after_another(t.cold(BUSY), t.cold("b"))
        stream = source.pipe(timed(9, remedies=shared), watched(idle=5, remedies=shared))
        check_stalled(t, stream, "a-a-a-a-a(Rb)----#")
