"""`repetition_limit`: an agent that repeats a tool call, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.events import AgentMessage, AgentNudged, AgentReplaced, ToolCall, ToolResult
from cuggino.operators.supervision import Remedies, repetition_limit
from cuggino.testing import Marbles
from tests.operators.idle import check_stalled

CALL, RESULT = ToolCall(name="Bash", input="ls", id="1"), ToolResult(name="1", output="a")


def limited(times: int | None, **options: Any) -> Any:
    """Return the operator, untyped to fit a `pipe`; these tests are not about types."""
    return repetition_limit(times, **options)


def marbles() -> Marbles:
    return Marbles(
        a=AgentMessage(text="a"),
        C=CALL,
        c=RESULT,
        d=ToolResult(name="1", output="another"),
        N=AgentNudged(tool="Bash", repeated=2),
        R=AgentReplaced(tool="Bash", repeated=2),
    )


def test_the_steps() -> None:
    """A nudge, a fresh agent, and the error, each after the same number of calls."""
    t = marbles()
    source, nudged, fresh = t.cold("CcCca-Cc"), t.cold("aCcaCc-Cc"), t.cold("CcCc-Cc")
    stream = source.pipe(limited(2, nudge=lambda _: nudged, replace=lambda _: fresh))
    error = check_stalled(t, stream, "CcC(cNa)CcaC(cRC)cC(c#)")
    t.check_subscriptions(source, "^--!")
    assert (
        "the agent called Bash 2 times in a row with the same input and the same result, "
        "again after a nudge and a fresh agent"
    ) == str(error)
    assert error.hint is not None
    assert error.hint.startswith("raise repetitionLimit in .cuggino.json")


def test_an_agent_that_gets_somewhere() -> None:
    """Other results, and calls without a result, are no repetition; nothing is added."""
    t = marbles()
    t.check(t.cold("CcCdCcCdaCCCCC|").pipe(limited(3)), "CcCdCcCdaCCCCC|")
    t.check(t.cold("CcCcCcCc|").pipe(limited(None)), "CcCcCcCc|")


def test_the_remedies_are_shared() -> None:
    """An agent that was nudged for silence is replaced at once."""
    t = marbles()
    fresh = t.cold("a|")
    source = t.cold("CcCc")
    remedies = Remedies(nudged=True)
    t.check(
        source.pipe(
            limited(2, nudge=lambda _: t.cold("|"), replace=lambda _: fresh, remedies=remedies)
        ),
        "CcC(cRa)|",
    )
    assert remedies.replaced


def test_calls_that_come_at_once() -> None:
    """They are counted one by one, and the agent is replaced when all have been passed on."""
    t = marbles()
    fresh = t.cold("a|")
    source = t.cold("(CcCcCcCcCc)-")
    t.check(source.pipe(limited(2, replace=lambda _: fresh)), "(CcCcCcCcCcRa)|")


def test_a_session_that_ends_in_time() -> None:
    """An end at the same instant as the last call counts."""
    t = marbles()
    t.check(t.cold("CcC(c|)").pipe(limited(2)), "CcC(c|)")


def test_a_limit_without_a_meaning() -> None:
    """A single call repeats nothing."""
    with pytest.raises(ValueError, match="at least 2"):
        repetition_limit(1)
