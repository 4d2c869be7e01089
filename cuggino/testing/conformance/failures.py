"""Rules for the end of a session: the right error in time, and nothing left behind."""

from __future__ import annotations

import os
import signal
from datetime import UTC, datetime, timedelta

import reactivex as rx
from reactivex import operators as ops

from cuggino.errors import AgentNotFound, QuotaExceeded
from cuggino.events import (
    AgentMessage,
    LlmAgentEvent,
    MessageDelta,
    RateLimited,
    SessionEnded,
    ToolCall,
)
from cuggino.testing.conformance.acts import Act, Fail, FailKind, Outcome, Run, Say
from cuggino.testing.conformance.arena import PlayArena, Running
from cuggino.testing.conformance.rules import (
    LONG,
    Rules,
    Sleeper,
    capabilities,
    failed,
    needs,
    nothing_left,
    rule,
    same,
    succeeded,
)


class FailureConformance(Rules):
    """Rules for failures of the service, the program or the subscriber, and for disposal.

    "In time" means within the arena's `patience`.
    """

    @rule
    def test_bad_request(self, arena: PlayArena) -> None:
        """A request that the service rejects is a `bad_request`."""
        failed(_failing(arena, "bad_request"), "bad_request")

    @rule
    def test_bad_key(self, arena: PlayArena) -> None:
        """A rejected key is an `auth`, with a hint."""
        error = failed(_failing(arena, "bad_key"), "auth")
        assert error.hint, f"it gives no hint: {error}"

    @rule
    def test_no_login(self, arena: PlayArena) -> None:
        """An agent without credentials is an `auth`, with a hint."""
        error = failed(arena.session([Say("Over.")], fault="no_login"), "auth")
        assert error.hint, f"it gives no hint: {error}"

    @rule
    def test_prompt_too_long(self, arena: PlayArena) -> None:
        """A prompt longer than the model can read is a `prompt_too_long`."""
        failed(_failing(arena, "too_long"), "prompt_too_long")

    @rule
    def test_rate_limit(self, arena: PlayArena) -> None:
        """Too many requests are a `rate_limit` or a quota, in time."""
        failed(_failing(arena, "rate_limit"), "rate_limit", "quota")

    @rule
    def test_usage_limit(self, arena: PlayArena) -> None:
        """A spent usage limit is a quota, with the time of its reset where that is known."""
        before = datetime.now(UTC)
        outcome = _failing(arena, "usage_limit")
        error = failed(outcome, "quota")
        assert isinstance(error, QuotaExceeded)
        same("quota", outcome.ended.outcome, outcome)
        rejected = [e for e in outcome.of(RateLimited) if e.status == "rejected"]
        same([error.resets_at], [event.resets_at for event in rejected], outcome)
        if arena.limit_lasts is None:
            same(None, error.resets_at, outcome)
            return
        assert error.resets_at is not None, f"it does not report when the limit is lifted: {error}"
        met, about = error.resets_at - timedelta(seconds=arena.limit_lasts), timedelta(minutes=2)
        in_time = before - about < met < datetime.now(UTC) + about
        assert in_time, f"the limit is lifted {met - before} too late"

    @rule
    def test_overload(self, arena: PlayArena) -> None:
        """A service with too much load is `overloaded` or `server`, in time."""
        failed(_failing(arena, "overload"), "overloaded", "server")

    @rule
    def test_server_error(self, arena: PlayArena) -> None:
        """A service that fails is `server` or `overloaded`, in time."""
        failed(_failing(arena, "server_error"), "server", "overloaded")

    @rule
    def test_no_connection(self, arena: PlayArena) -> None:
        """A service that cannot be reached is a `connection`, in time."""
        failed(_failing(arena, "no_connection"), "connection")

    @rule
    def test_cut_stream(self, arena: PlayArena) -> None:
        """An answer that breaks off is a failure, with any exit code of the program."""
        outcome = arena.session([[Say(LONG), Fail("cut")]])
        failed(outcome, "connection", "server", "crash", "overloaded", "unknown")
        whole = [message for message in outcome.of(AgentMessage) if message.text == LONG]
        same([], whole, outcome)

    @rule
    def test_transient_failure(self, arena: PlayArena) -> None:
        """A failure that the agent overcomes by a retry is not one of the session."""
        _assert_recovered(arena.session([Fail("server_error", times=1), Say("Whole.")]))

    @rule
    def test_transient_cut(self, arena: PlayArena) -> None:
        """The text of a broken answer is not a message when the agent's retry succeeds."""
        _assert_recovered(arena.session([[Say(LONG), Fail("cut", times=1)], Say("Whole.")]))

    @rule
    def test_failure_after_success(self, arena: PlayArena) -> None:
        """A session that fails late has failed, and its messages remain."""
        outcome = arena.session([[Say("First."), Run("echo one")], [Fail("bad_key")]])
        failed(outcome, "auth")
        same(["First."], [message.text for message in outcome.of(AgentMessage)], outcome)

    @rule
    def test_resume_after_failure(self, arena: PlayArena) -> None:
        """A session that failed can be resumed when the service works again."""
        needs(capabilities(arena).resume, "resume")
        first = arena.session(
            [[Say("The word is plum."), Run("echo one")], Fail("overload")], prompt="Begin."
        )
        failed(first, "server", "overloaded")
        name = first.ended.session_id
        assert name, f"it has no session id: {first}"
        again = arena.session([Say("Yes.")], prompt="Which word?", resume_session_id=name)
        succeeded(again)
        if again.requests is not None:
            for text in ("Begin.", "The word is plum.", "Which word?"):
                assert text in again.requests[0].text, f"the model does not know {text!r}: {again}"

    @rule
    def test_killed_program(self, arena: PlayArena) -> None:
        """A killed program is a `crash`, and the processes of its tools end too."""
        sleeper = Sleeper()
        command, count = sleeper.stubborn()
        with (
            sleeper.gone(arena.patience),
            arena.start([Run(command), Say("Over.")]) as running,
        ):
            running.until(lambda: len(sleeper.pids()) == count, expected="the agent's command")
            os.kill(arena.program(), signal.SIGKILL)
            error = failed(running.outcome(), "crash")
            named = "SIGKILL" in error.message or "signal 9" in error.message
            assert named, f"it does not name the signal: {error}"

    @rule
    def test_missing_program(self, arena: PlayArena) -> None:
        """A missing program is an `AgentNotFound` without events, with a hint."""
        outcome = arena.session([Say("Over.")], fault="missing_program")
        error = outcome.error
        assert isinstance(error, AgentNotFound), f"it is not reported: {outcome}"
        same((), outcome.events, outcome)
        assert error.hint, f"it gives no hint: {error}"

    @rule
    def test_dispose_at_once(self, arena: PlayArena) -> None:
        """A session that is disposed of before its first event leaves nothing."""
        with (
            nothing_left(arena.patience),
            arena.start([Fail("hang")], system_prompt="Be brief.") as running,
        ):
            _dispose(running)

    @rule
    def test_dispose_while_waiting(self, arena: PlayArena) -> None:
        """A session that is disposed of while the model is silent leaves nothing."""
        with (
            nothing_left(arena.patience),
            arena.start([Fail("hang")], system_prompt="Be brief.") as running,
        ):
            visible = running.requests() is not None
            running.until(
                lambda: bool(running.requests() if visible else running.events),
                expected="the request to the model" if visible else "a first event",
            )
            _dispose(running)

    @rule
    def test_dispose_in_a_message(self, arena: PlayArena) -> None:
        """A session that is disposed of in the middle of a message leaves nothing."""
        deltas = capabilities(arena).deltas

        def writing() -> bool:
            if any(isinstance(event, MessageDelta | AgentMessage) for event in running.events):
                return True
            return not deltas and bool(running.requests())

        with (
            nothing_left(arena.patience),
            arena.start([[Say(LONG), Fail("hang")]]) as running,
        ):
            running.until(writing, expected="the beginning of a message")
            _dispose(running)

    @rule
    def test_dispose_while_a_tool_runs(self, arena: PlayArena) -> None:
        """A session that is disposed of while a tool runs ends every process of the tool."""
        sleeper = Sleeper()
        command, count = sleeper.stubborn()
        with (
            sleeper.gone(arena.patience),
            nothing_left(arena.patience),
            arena.start([Run(command), Say("Over.")]) as running,
        ):
            running.until(lambda: len(sleeper.pids()) == count, expected="the agent's command")
            _dispose(running)
            same([], sleeper.pids(), Outcome(events=tuple(running.events), error=None))

    @rule
    def test_dispose_at_the_end(self, arena: PlayArena) -> None:
        """A subscriber that leaves at `SessionEnded` leaves nothing behind."""

        def before_end(event: LlmAgentEvent) -> bool:
            return not isinstance(event, SessionEnded)

        leaving = ops.take_while(before_end, inclusive=True)
        with nothing_left(arena.patience):
            with arena.start([Say("Over.")], through=leaving) as running:
                outcome = running.outcome()
            same("SessionEnded", outcome.events[-1].tag, outcome)

    @rule
    def test_subscriber_takes_one_event(self, arena: PlayArena) -> None:
        """A subscriber that takes one event ends the session with it."""
        sleeper = Sleeper()

        def first_call(stream: rx.Observable[LlmAgentEvent]) -> rx.Observable[LlmAgentEvent]:
            return stream.pipe(ops.filter(lambda e: isinstance(e, ToolCall)), ops.take(1))

        with sleeper.gone(arena.patience), nothing_left(arena.patience):
            with arena.start(_cut_off(sleeper), through=first_call) as running:
                outcome = running.outcome()
            same(["ToolCall"], [event.tag for event in outcome.events], outcome)
            same(None, outcome.error, outcome)

    @rule
    def test_subscriber_raises(self, arena: PlayArena) -> None:
        """An exception downstream reaches `on_error`, and the session leaves nothing."""
        sleeper = Sleeper()

        def refuse(event: LlmAgentEvent) -> LlmAgentEvent:
            if isinstance(event, ToolCall):
                raise OSError("refused")
            return event

        with sleeper.gone(arena.patience), nothing_left(arena.patience):
            with arena.start(_cut_off(sleeper), through=ops.map(refuse)) as running:
                outcome = running.outcome()
            assert isinstance(outcome.error, OSError), f"the exception is lost: {outcome}"

    @rule
    def test_concurrent_sessions(self, arena: PlayArena) -> None:
        """Sessions of one agent at the same time do not mix."""
        with arena.start([Run("echo one"), Say("One.")]) as first:
            first.until(lambda: bool(first.requests() or first.events), expected="a first event")
            with arena.start([Say("Two.")]) as second:
                outcomes = [first.outcome(), second.outcome()]
        for expected, outcome in zip(("One.", "Two."), outcomes, strict=True):
            succeeded(outcome)
            same([expected], [message.text for message in outcome.of(AgentMessage)], outcome)


def _cut_off(sleeper: Sleeper) -> list[Act]:
    """Return a turn that is cut off in its tool, and one for an agent that notices its end."""
    return [Run(sleeper.command), Say("It was cut off.")]


def _failing(arena: PlayArena, kind: FailKind) -> Outcome:
    return arena.session([Fail(kind)])


def _assert_recovered(outcome: Outcome) -> None:
    succeeded(outcome)
    same(["Whole."], [message.text for message in outcome.of(AgentMessage)], outcome)


def _dispose(running: Running) -> None:
    """Dispose of the session and assert that it emits nothing more."""
    running.dispose()
    count = len(running.events)
    assert not running.has_ended, f"it has ended itself: {running.error!r}"
    running.rest()
    assert count == len(running.events), f"emitted after disposal: {running.events[count:]}"
