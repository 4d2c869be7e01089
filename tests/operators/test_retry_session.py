"""`retry_session`: the failures it retries and its delays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
import reactivex as rx

from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    AgentNotFound,
    AgentStalled,
    BudgetExceeded,
    LoopError,
    ProcessFailed,
    QuotaExceeded,
    StorageError,
)
from cuggino.events import AgentMessage, AgentRetry
from cuggino.operators import Schedule
from cuggino.operators.supervision import (
    RETRIES,
    is_outage,
    is_transient,
    retry_session,
)
from cuggino.testing import Marbles

OVERLOADED = AgentFailed("Overloaded", reason="overloaded")
WRONG_KEY = AgentFailed("Not logged in", reason="auth")
A, B = AgentMessage(text="a"), AgentMessage(text="b")


def retry(attempt: int, retry_in: float, *, max_retries: int = 3) -> AgentRetry:
    return AgentRetry(
        reason="overloaded",
        message="Overloaded",
        attempt=attempt,
        max_retries=max_retries,
        retry_in=retry_in,
    )


def steady() -> float:
    """The random number that leaves the pauses as they are."""
    return 0.5


TRANSIENT = {"connection", "crash", "overloaded", "rate_limit", "server", "unknown"}


@pytest.mark.parametrize("reason", get_args(AgentFailure))
def test_which_reasons_are_transient(reason: AgentFailure) -> None:
    """Failures of the network, the server and the program may pass; the others do not."""
    error = AgentFailed("x", reason=reason)
    assert (reason in TRANSIENT) is is_transient(error)
    assert (reason in TRANSIENT) is is_transient(LoopError("planning", "x", cause=error))
    assert (reason in TRANSIENT - {"crash", "unknown"}) is is_outage(error)
    assert is_outage(error) is is_outage(LoopError("planning", "x", cause=error))


def test_a_failure_without_a_cause_is_told_itself() -> None:
    """A `LoopError` without a cause is reported with its own class and message."""
    error = LoopError("planning", "x")
    t = Marbles(error=error)
    seen = t.record(t.cold("#").pipe(retry_session(RETRIES.times(1), transient=lambda _: True)))
    assert ("LoopError", str(error)) == (seen[0][2].reason, seen[0][2].message)
    assert not is_outage(error)


@pytest.mark.parametrize(
    "error",
    [
        AgentNotFound("x"),
        QuotaExceeded("x"),
        BudgetExceeded("x"),
        AgentStalled("x"),
        LoopError("planning", "no marker"),
        LoopError("planning", "x", cause=QuotaExceeded("x")),
        ProcessFailed("x", 1, ""),
        StorageError("read", "x"),
        RuntimeError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_everything_else_is_permanent(error: Exception) -> None:
    """No other error is taken for one that may pass."""
    assert not is_transient(error)


def test_a_success_passes_unchanged() -> None:
    """A source that completes is passed on as it is, and subscribed once."""
    t = Marbles(a=A, b=B)
    source = t.cold("-a-b|")
    t.check(source.pipe(retry_session()), "-a-b|")
    t.check_subscriptions(source, "^---!")


def test_backoff_series() -> None:
    """The pauses double from 5 seconds; after the last retry the error passes on."""
    t = Marbles(a=A, X=retry(1, 5.0), Y=retry(2, 10.0), Z=retry(3, 20.0), error=OVERLOADED)
    source = t.cold("a-#")
    stream = source.pipe(retry_session(random=steady))
    t.check(stream, "a-X 4s a-Y 9s a-Z 19s a-#")
    t.check_subscriptions(source, "^-!", "7s ^-!", "19s ^-!", "41s ^-!")


def test_backoff_is_capped() -> None:
    """No delay is longer than the cap of the schedule."""
    t = Marbles(error=OVERLOADED)
    schedule = Schedule.exponential(100, 3).capped(500).times(6)
    seen = t.record(t.cold("#").pipe(retry_session(schedule)))
    assert [100.0, 300.0, 500.0, 500.0, 500.0, 500.0] == pauses(seen)
    assert 2400.0 == seen[-1][0]


def test_jitter_spreads_the_pauses() -> None:
    """The random number varies the delay by the jitter to both sides."""
    t = Marbles(error=OVERLOADED)
    numbers = iter([0.0, 0.25, 1.0])
    stream = t.cold("#").pipe(retry_session(RETRIES.jittered(0.5), random=lambda: next(numbers)))
    seen = t.record(stream)
    assert [2.5, 7.5, 30.0] == pauses(seen)
    assert [0.0, 2.5, 10.0, 40.0] == [when for when, _, _ in seen[:3]] + [seen[-1][0]]


def test_the_default_jitter_is_random() -> None:
    """Without a source of chance the pauses are around the series, a fifth to both sides."""
    t = Marbles(error=OVERLOADED)
    for nominal, actual in zip(
        [5.0, 10.0, 20.0], pauses(t.record(t.cold("#").pipe(retry_session()))), strict=True
    ):
        assert 0.8 * nominal <= actual <= 1.2 * nominal


def test_a_permanent_failure_passes_on_at_once() -> None:
    """A failure that stays is the stream's error without an event and without a pause."""
    t = Marbles(a=A, error=WRONG_KEY)
    source = t.cold("a-#")
    t.check(source.pipe(retry_session()), "a-#")
    t.check_subscriptions(source, "^-!")


def test_no_retries() -> None:
    """With 0 retries the first failure passes on, without an event."""
    t = Marbles(a=A, error=OVERLOADED)
    t.check(t.cold("a-#").pipe(retry_session(RETRIES.times(0))), "a-#")


def test_again_takes_the_place_of_the_source() -> None:
    """`again` gets the error and returns the stream to subscribe to after the pause."""
    t = Marbles(a=A, b=B, X=retry(1, 5.0), error=OVERLOADED)
    source, resumed = t.cold("a-#"), t.cold("-b|")
    errors: list[Exception] = []

    def again(error: Exception) -> rx.Observable[Any]:
        errors.append(error)
        return resumed

    t.check(source.pipe(retry_session(random=steady, again=again)), "a-X 5s b|")
    assert [OVERLOADED] == errors
    t.check_subscriptions(source, "^-!")
    t.check_subscriptions(resumed, "7s ^-!")


def test_again_may_fail() -> None:
    """An exception of `again` is the stream's error."""
    failure = StorageError("read", "no prompt")

    def again(_: Exception) -> rx.Observable[Any]:
        raise failure

    t = Marbles(error=OVERLOADED)
    seen = t.record(t.cold("#").pipe(retry_session(random=steady, again=again)))
    assert (5.0, "error", failure) == seen[-1]


def test_a_failure_of_the_predicate_is_the_streams_error() -> None:
    """An exception of `transient` takes the place of the error it was asked about."""
    failure = ValueError("cannot say")

    def transient(_: Exception) -> bool:
        raise failure

    t = Marbles(error=OVERLOADED)
    assert [(1.0, "error", failure)] == t.record(
        t.cold("-#").pipe(retry_session(transient=transient))
    )


def test_any_failure_may_be_called_transient() -> None:
    """A predicate of one's own decides; another error's reason is the name of its class."""
    t = Marbles(error=ValueError("odd"))
    stream = t.cold("#").pipe(retry_session(RETRIES.times(1), transient=lambda _: True))
    event = t.record(stream)[0][2]
    assert ("ValueError", "odd", 1, 1) == (
        event.reason,
        event.message,
        event.attempt,
        event.max_retries,
    )


def test_a_failed_stage_names_its_cause() -> None:
    """The event about a `LoopError` has the reason and the words of its cause."""
    t = Marbles(error=LoopError("planning", "Overloaded", cause=OVERLOADED))
    event = t.record(t.cold("#").pipe(retry_session(random=steady)))[0][2]
    assert retry(1, 5.0) == event


def test_each_subscription_counts_for_itself() -> None:
    """A successful stage resets the count: the next subscription has all its retries."""
    t = Marbles(a=A, X=retry(1, 5.0, max_retries=1), error=OVERLOADED)
    attempts = iter([t.cold("#"), t.cold("a|"), t.cold("#"), t.cold("a|")])
    stage = rx.defer(lambda _: next(attempts)).pipe(retry_session(RETRIES.times(1), random=steady))
    t.check(rx.concat(stage, stage), "X 4s aX 4s a|")


def pauses(seen: list[Any]) -> list[float]:
    return list(_pauses(seen))


def _pauses(seen: list[Any]) -> Iterator[float]:
    for _, _, value in seen:
        if isinstance(value, AgentRetry):
            yield value.retry_in
