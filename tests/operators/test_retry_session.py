"""`retry_session`: the failures it retries, its delays, and its releases."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any, get_args

import pytest
import reactivex as rx
from reactivex import operators as ops

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
from cuggino.operators.supervision import RETRIES, is_outage, is_transient, retry_session
from cuggino.testing import Marbles, VirtualClock
from tests.operators.policies import pending

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


@pytest.mark.parametrize(
    ("error", "retries", "expected"),
    [(None, 3, "-a-b|"), (WRONG_KEY, 3, "-a-#"), (OVERLOADED, 0, "-a-#")],
    ids=["a success", "a permanent failure", "no retries"],
)
def test_what_is_not_retried(error: Exception | None, retries: int, expected: str) -> None:
    """It passes on at once, without an event, and is subscribed once."""
    t = Marbles(a=A, b=B, error=error)
    source = t.cold(expected)
    t.check(source.pipe(retry_session(RETRIES.times(retries))), expected)
    assert 1 == len(source.subscriptions)


@pytest.mark.parametrize(("told", "waits"), [(-60, 5.0), (3, 5.0), (60, 60.0)])
@pytest.mark.parametrize("within", [False, True])
def test_not_before_the_time_that_the_failure_names(told: int, waits: float, within: bool) -> None:
    """The later of the two: the delay of the schedule, or the service's own time."""
    clock, seen = VirtualClock(), list[Any]()
    limit = AgentFailed("Overloaded", reason="overloaded")
    limit.retry_at = clock.now + timedelta(seconds=told)
    error = LoopError("planning", "x", cause=limit) if within else limit
    attempts = iter([rx.throw(error), rx.just("b")])
    source: rx.Observable[Any] = rx.defer(lambda _: next(attempts))
    operator: Any = retry_session(Schedule.constant(5).times(3))
    source.pipe(operator).subscribe(
        lambda event: seen.append((clock.elapsed, event)), scheduler=clock
    )
    clock.advance_to(100.0)
    assert [(0.0, retry(1, waits)), (waits, "b")] == seen


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (ValueError("odd"), "ValueError", "odd"),
        (LoopError("planning", "x"), "LoopError", str(LoopError("planning", "x"))),
        (LoopError("planning", "Overloaded", cause=OVERLOADED), "overloaded", "Overloaded"),
    ],
    ids=["any error", "a stage", "the cause of a stage"],
)
def test_how_a_failure_is_told(error: Exception, reason: str, message: str) -> None:
    """A predicate of one's own decides; the event has the reason and words of the cause."""
    t = Marbles(error=error)
    policy: Any = retry_session(RETRIES.times(1), transient=lambda _: True, random=steady)
    expected = AgentRetry(reason=reason, message=message, attempt=1, max_retries=1, retry_in=5.0)
    assert expected == t.record(t.cold("#").pipe(policy))[0][2]


def test_backoff_series() -> None:
    """The pauses double from 5 seconds; after the last retry the error passes on."""
    t = Marbles(a=A, X=retry(1, 5.0), Y=retry(2, 10.0), Z=retry(3, 20.0), error=OVERLOADED)
    source = t.cold("a-#")
    stream = source.pipe(retry_session(random=steady))
    t.check(stream, "a-X 4s a-Y 9s a-Z 19s a-#")
    t.check_subscriptions(source, "^-!", "7s ^-!", "19s ^-!", "41s ^-!")


def test_the_default_jitter_is_random() -> None:
    """Without a source of chance the pauses are around the series, a fifth to both sides."""
    t = Marbles(error=OVERLOADED)
    for nominal, actual in zip(
        [5.0, 10.0, 20.0], pauses(t.record(t.cold("#").pipe(retry_session()))), strict=True
    ):
        assert 0.8 * nominal <= actual <= 1.2 * nominal


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


@pytest.mark.parametrize(("function", "when"), [("again", 6.0), ("transient", 1.0)])
def test_a_function_that_fails(function: str, when: float) -> None:
    """Its exception is the stream's error, after the pause or at once."""
    failure = StorageError("read", "no prompt")

    def fail(_: Exception) -> Any:
        raise failure

    t = Marbles(error=OVERLOADED)
    options: dict[str, Any] = {function: fail}
    seen = t.record(t.cold("-#").pipe(retry_session(random=steady, **options)))
    assert (when, "error", failure) == seen[-1]


def test_each_subscription_counts_for_itself() -> None:
    """A successful stage resets the count: the next subscription has all its retries."""
    t = Marbles(a=A, X=retry(1, 5.0, max_retries=1), error=OVERLOADED)
    attempts = iter([t.cold("#"), t.cold("a|"), t.cold("#"), t.cold("a|")])
    stage = rx.defer(lambda _: next(attempts)).pipe(retry_session(RETRIES.times(1), random=steady))
    t.check(rx.concat(stage, stage), "X 4s aX 4s a|")


def pauses(seen: list[Any]) -> list[float]:
    return [value.retry_in for _, _, value in seen if isinstance(value, AgentRetry)]


@pytest.mark.parametrize("dispose_at", [3.0, 8.0], ids=["pause", "again"])
def test_disposal_leaves_nothing(dispose_at: float) -> None:
    """Disposed in a pause or in the next attempt, no timer and no subscription is left."""
    t = Marbles(a=A, error=OVERLOADED)
    source = t.cold("a-#")
    t.record(
        source.pipe(retry_session(random=steady)), until=dispose_at + 0.5, dispose_at=dispose_at
    )
    assert 0 == pending(t)
    began = len(source.subscriptions)
    t.scheduler.advance_to(1000.0)
    assert began == len(source.subscriptions)
    assert None not in [end for _, end in source.subscriptions]


def test_disposal_by_the_event_itself() -> None:
    """A subscriber that leaves at `AgentRetry` leaves no timer behind."""
    t = Marbles(error=OVERLOADED)
    source = t.cold("#")
    t.record(source.pipe(retry_session(random=steady), ops.take(1)), until=1.0)
    assert [(0.0, 0.0)] == source.subscriptions
    assert 0 == pending(t)


@pytest.mark.real_agent
def test_the_stack_stays_constant() -> None:
    """A source that fails within `subscribe` again and again takes no more stack at the end."""
    depths: list[int] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        depths.append(len(inspect.stack(0)))
        observer.on_error(OVERLOADED)
        return lambda: None

    t = Marbles()
    stream = rx.create(subscribe).pipe(retry_session(Schedule.constant(0.001).times(100)))
    seen = t.record(stream)
    assert 101 == len(depths) == len(seen)
    assert ("error", OVERLOADED) == seen[-1][1:]
    assert 1 == len(set(depths[1:]))
