"""The rules for being ended: at any moment, and nothing is left."""

from __future__ import annotations

from reactivex import operators as ops

from cuggino.events import AgentMessage, LlmAgentEvent, MessageDelta, SessionEnded
from cuggino.testing.conformance_acts import Fail, Run, Say
from cuggino.testing.conformance_arena import Arena
from cuggino.testing.conformance_rules import (
    Rules,
    Sleeper,
    capabilities,
    nothing_left,
    rule,
    same,
)
from cuggino.testing.conformance_running import Running
from cuggino.testing.conformance_shared import LONG, long_session


class EndingRules(Rules):
    """Disposal, at any moment."""

    @rule
    def test_a_session_leaves_nothing(self, arena: Arena) -> None:
        """A session that has ended leaves no process, thread, open file or temporary file."""
        left = long_session(self, arena).left
        assert not left, left

    @rule
    def test_ended_before_the_first_event(self, arena: Arena) -> None:
        """A session can be ended as soon as it is begun, and leaves nothing."""
        with nothing_left(), arena.start([Fail("hang")], system_prompt="Be brief.") as running:
            _end(running)

    @rule
    def test_ended_while_it_waits(self, arena: Arena) -> None:
        """A session can be ended while the model is silent, and leaves nothing."""
        with nothing_left(), arena.start([Fail("hang")], system_prompt="Be brief.") as running:
            told = running.told() is not None
            running.until(
                lambda: bool(running.told() if told else running.events),
                expected="the question to the model" if told else "a first event",
            )
            _end(running)

    @rule
    def test_ended_in_the_midst_of_a_message(self, arena: Arena) -> None:
        """A session can be ended while the model speaks, and leaves nothing."""
        deltas = capabilities(arena).deltas

        def speaks() -> bool:
            if any(isinstance(event, MessageDelta | AgentMessage) for event in running.events):
                return True
            return not deltas and bool(running.told())

        with nothing_left(), arena.start([[Say(LONG), Fail("hang")]]) as running:
            running.until(speaks, expected="the beginning of a message")
            _end(running)

    @rule
    def test_ended_while_a_tool_runs(self, arena: Arena) -> None:
        """Ended while a tool runs, a session takes with it all that the tool has started."""
        sleeper = Sleeper()
        command, count = sleeper.stubborn()
        with (
            sleeper.gone(),
            nothing_left(),
            arena.start([Run(command), Say("Over.")]) as running,
        ):
            running.until(lambda: len(sleeper.pids()) == count, expected="the agent's command")
            _end(running)

    @rule
    def test_ended_at_the_last_event(self, arena: Arena) -> None:
        """Whoever leaves at `SessionEnded` leaves nothing behind."""

        def goes_on(event: LlmAgentEvent) -> bool:
            return not isinstance(event, SessionEnded)

        leaving = ops.take_while(goes_on, inclusive=True)
        with nothing_left():
            with arena.start([Say("Over.")], through=leaving) as running:
                outcome = running.outcome()
            same("SessionEnded", outcome.events[-1].tag, outcome)


def _end(running: Running) -> None:
    """Dispose it; nothing may be said from then on."""
    running.dispose()
    count = len(running.events)
    assert not running.has_ended, f"it has ended itself: {running.error!r}"
    running.rest()
    assert count == len(running.events), f"said after its end: {running.events[count:]}"
