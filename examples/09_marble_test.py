"""Tests with marbles: a policy in virtual time, where half an hour takes milliseconds.

Run the tests with `pytest examples/09_marble_test.py`, or run this file as a script.
"""

from collections.abc import Callable

from reactivex import Observable, interval, just, operators as ops
from reactivex.notification import Notification, OnNext

from cuggino.events import AgentMessage, LlmAgentEvent, Note
from cuggino.testing import Marbles

Noted = LlmAgentEvent | Note


def note_silence(every: float) -> Callable[[Observable[Noted]], Observable[Noted]]:
    """Add a note for every `every` seconds of silence."""

    def after(step: Notification[Noted]) -> Observable[Notification[Noted]]:
        if not isinstance(step, OnNext):
            return just(step)  # completion or error
        note: Notification[Noted] = OnNext(Note(content=f"silent for {every:g} s"))
        return interval(every).pipe(ops.map(lambda _: note), ops.start_with(step))

    return lambda session: session.pipe(
        ops.materialize(), ops.map(after), ops.switch_latest(), ops.dematerialize()
    )


def test_silence_is_noted() -> None:
    """Every ten minutes of silence emit a note; a message restarts the count."""
    note = Note(content="silent for 600 s")
    t = Marbles(a=AgentMessage(text="I begin."), b=AgentMessage(text="I go on."), n=note)
    agent = t.cold("a 25m b-|")
    t.check(agent.pipe(note_silence(600)), "a 599s n 599s n 300s b-|")
    t.check_subscriptions(agent, "^ 25m --!")


def test_leaving_ends_the_agent() -> None:
    """Disposal during a silence unsubscribes from the agent at once."""
    note = Note(content="silent for 600 s")
    t = Marbles(a=AgentMessage(text="I begin."), n=note)
    agent = t.cold("a 25m |")
    t.check(agent.pipe(note_silence(600)), "a 599s n", dispose_at=900)
    t.check_subscriptions(agent, "^ 899s !")


if __name__ == "__main__":
    for test in (test_silence_is_noted, test_leaving_ends_the_agent):
        test()
        print("passed:", test.__doc__)

# prints:
# passed: Every ten minutes of silence emit a note; a message restarts the count.
# passed: Disposal during a silence unsubscribes from the agent at once.
