"""`within_quota` and `repetition_limit` in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino.domain import Overage, QuotaPlan
from cuggino.errors import QuotaExceeded
from cuggino.events import (
    AgentMessage,
    AgentNudged,
    AgentReplaced,
    QuotaUsed,
    RateLimited,
    SessionEnded,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)
from cuggino.operators.supervision import Remedies, repetition_limit, within_quota
from cuggino.testing import Marbles
from tests.operators.idle import check_stalled
from tests.operators.quotas import second

FULL = QuotaUsed(window="five_hour", used=1, resets_at=second(100))
USAGE = Usage(output_tokens=7)
EVENTS: dict[str, Any] = {
    "a": AgentMessage(text="a"),
    "q": QuotaUsed(window="five_hour", used=0.85, resets_at=second(100)),
    "Q": QuotaUsed(window="five_hour", used=0.85, resets_at=second(100), agent="A", nearly=True),
    "l": QuotaUsed(window="five_hour", used=0.1, resets_at=second(200)),
    "L": QuotaUsed(window="five_hour", used=0.1, resets_at=second(200), agent="A"),
    "r": RateLimited(status="rejected", limit="five_hour", resets_at=second(100)),
    "o": RateLimited(status="rejected", limit="five_hour", resets_at=second(100), overage=True),
    "u": UsageUpdate(usage=USAGE, cost_usd=0.5),
    "s": SessionEnded(outcome="completed"),
    "e": SessionEnded(outcome="quota", duration=2),
    "f": SessionEnded(outcome="quota", duration=2, usage=USAGE, cost_usd=0.5),
}


def drawn() -> Marbles:
    t = Marbles(**EVENTS)
    t.error = QuotaExceeded  # type: ignore[assignment]  # any error of this class
    return t


@pytest.mark.parametrize(
    ("source", "overage", "expected"),
    [
        ("-a-s|", "pay", "-a-s|"),
        # A window is emitted when it changes, with the agent.
        ("-q-q-l-l-q-s|", "pay", "-Q---L---Q-s|"),
        # A limit without overage is the agent's own matter.
        ("-r-s|", "stop", "-r-s|"),
        # Overage is paid for, or ends the session, with its usage so far.
        ("-ao-s|", "pay", "-ao-s|"),
        ("-ao-s|", "stop", "-a(oe#)"),
        ("-uo-s|", "stop", "-u(of#)"),
        ("-u(oas)|", "stop", "-u(of#)"),
    ],
)
def test_one_session(source: str, overage: Overage, expected: str) -> None:
    """A session reports windows, and ends before more is paid for."""
    t = drawn()
    plan = QuotaPlan(overage=overage)
    t.check(t.cold(source).pipe(within_quota(plan, agent="A")), expected)


def test_the_source_is_released_first() -> None:
    """When the end of the session is emitted, its program has ended."""
    t = drawn()
    order: list[Any] = []
    source = t.cold("-o-s|")

    def seen(event: Any) -> None:
        if isinstance(event, SessionEnded):
            order.append([subscription[1] for subscription in source.subscriptions])

    plan = QuotaPlan(overage="stop")
    source.pipe(within_quota(plan, agent="A")).subscribe(
        seen, lambda error: order.append(getattr(error, "resets_at", None)), scheduler=t.scheduler
    )
    t.scheduler.advance_to(10)
    assert [[1], second(100)] == order


@pytest.mark.parametrize(
    ("begins", "start", "expected"),
    [(True, 0, "#"), (True, 99, "99s #"), (True, 100, "100s -a|"), (False, 0, "-a|")],
)
def test_a_session_in_the_reserve(begins: bool, start: float, expected: str) -> None:
    """A new session does not start until the window is reset; a resumed one does."""
    t = drawn()
    plan = QuotaPlan(reserve=0.2)
    plan.windows.add(FULL.model_copy(update={"agent": "A"}))
    t.scheduler.advance_to(start)
    t.check(t.cold("-a|").pipe(within_quota(plan, agent="A", begins=begins)), expected)


def test_another_account() -> None:
    """The windows of one agent do not hold back another."""
    t = drawn()
    plan = QuotaPlan(reserve=0.2)
    plan.windows.add(FULL.model_copy(update={"agent": "A"}))
    t.check(t.cold("-a|").pipe(within_quota(plan, agent="B")), "-a|")


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
