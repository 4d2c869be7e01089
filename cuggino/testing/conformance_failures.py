"""The rules for how a session fails: which error, in what time, and never taken for a success."""

from __future__ import annotations

import os
import signal

from cuggino.errors import AgentFailed, AgentNotFound, LlmSessionError, QuotaExceeded
from cuggino.events import AgentMessage
from cuggino.testing.conformance_acts import Fail, FailKind, Outcome, Run, Say
from cuggino.testing.conformance_arena import Arena
from cuggino.testing.conformance_rules import Rules, Sleeper, rule, same
from cuggino.testing.conformance_shared import LONG


class FailureRules(Rules):
    """How a session fails. What is meant by "in time" is `patience` of the arena."""

    @rule
    def test_a_bad_key(self, arena: Arena) -> None:
        """A key that is refused is an `auth`, in time."""
        _assert_failed(arena, "bad_key", "auth")

    @rule
    def test_too_many_requests(self, arena: Arena) -> None:
        """Too many requests are a `rate_limit`, or a quota, in time."""
        _assert_failed(arena, "rate_limit", "rate_limit", "quota")

    @rule
    def test_a_service_with_too_much_to_do(self, arena: Arena) -> None:
        """A service that has too much to do is `overloaded`, or a `server` that fails, in time."""
        _assert_failed(arena, "overload", "overloaded", "server")

    @rule
    def test_a_service_that_fails(self, arena: Arena) -> None:
        """A service that fails is a `server`, or `overloaded`, in time."""
        _assert_failed(arena, "server_error", "server", "overloaded")

    @rule
    def test_nobody_there(self, arena: Arena) -> None:
        """A service that cannot be reached is a `connection`, in time."""
        _assert_failed(arena, "no_connection", "connection")

    @rule
    def test_a_cut_stream_is_no_success(self, arena: Arena) -> None:
        """An answer that breaks off is a failure, whatever code the program ends with."""
        outcome = arena.session([[Say(LONG), Fail("cut")]])
        _assert_ending(outcome, "connection", "server", "crash", "overloaded", "unknown")
        whole = [message for message in outcome.of(AgentMessage) if message.text == LONG]
        same([], whole, outcome)

    @rule
    def test_a_failure_behind_a_success(self, arena: Arena) -> None:
        """A session that fails after it has begun well has failed; what was said stays said."""
        outcome = arena.session([[Say("First."), Run("echo one")], [Fail("bad_key")]])
        _assert_ending(outcome, "auth")
        same(["First."], [message.text for message in outcome.of(AgentMessage)], outcome)

    @rule
    def test_a_program_that_is_killed(self, arena: Arena) -> None:
        """A program that is killed is a `crash`, and what its tools had started ends too."""
        sleeper = Sleeper()
        command, count = sleeper.stubborn()
        with sleeper.gone(), arena.start([Run(command), Say("Over.")]) as running:
            running.until(lambda: len(sleeper.pids()) == count, expected="the agent's command")
            os.kill(arena.program(), signal.SIGKILL)
            outcome = running.outcome()
            _assert_ending(outcome, "crash")

    @rule
    def test_a_missing_program(self, arena: Arena) -> None:
        """A program that is not there is an `AgentNotFound`, alone, with what to do about it."""
        outcome = arena.session([Say("Over.")], fault="missing_program")
        error = outcome.error
        assert isinstance(error, AgentNotFound), f"it was not missed: {outcome}"
        same((), outcome.events, outcome)
        assert error.hint, f"it does not say what to do: {error}"


def _assert_failed(arena: Arena, kind: FailKind, *reasons: str) -> None:
    _assert_ending(arena.session([Fail(kind)]), *reasons)


def _assert_ending(outcome: Outcome, *reasons: str) -> None:
    error = outcome.error
    assert isinstance(error, LlmSessionError), f"it should have failed, and did not: {outcome}"
    found = type(error).__name__
    if isinstance(error, AgentFailed):
        found = error.reason
    elif isinstance(error, QuotaExceeded):
        found = "quota"
    assert found in reasons, f"the error is {found}, not {' or '.join(reasons)}: {error}"
    assert error.message.strip(), "the error says nothing"
    tags = [event.tag for event in outcome.events]
    same(1, tags.count("SessionEnded"), outcome)
    same("SessionEnded", tags[-1], outcome)
    ended = outcome.ended.outcome
    assert ended in ("failed", "quota"), f"a session that failed has ended as {ended}"
    same((), outcome.left, outcome)
