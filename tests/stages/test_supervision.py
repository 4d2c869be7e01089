"""`Supervision`: the policies of a stage, in one flow and one observer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, operators as ops

from cuggino import events as ev
from cuggino.domain import Budget, Schedule
from cuggino.errors import AgentFailed, LlmSessionError, QuotaExceeded
from cuggino.operators import Flow, catch_tag, flow, forward
from cuggino.operators.supervision import (
    Ledger,
    QuotaGate,
    QuotaWaits,
    Remedies,
    Retries,
    liveness,
    retry_session,
    wait_for_quota,
    within_budget,
)
from cuggino.stages.sessions import Sessions
from cuggino.stages.supervision import Supervision
from cuggino.testing import Marbles

CRASH = AgentFailed("crashed", reason="crash")
OUTAGE = AgentFailed("overloaded", reason="overloaded")
REFUSED = AgentFailed("no login", reason="auth")
QUOTA = QuotaExceeded("a limit")

Session = tuple[Sequence[ev.Event], LlmSessionError | str]
"""Its events, a second apart, and its error, or `ends` or `hangs`."""

EVENTS = st.sampled_from(
    [
        ev.AgentMessage(text="a"),
        ev.RateLimited(status="rejected"),
        ev.SessionEnded(outcome="completed", usage=ev.Usage(output_tokens=20)),
        ev.SessionEnded(outcome="failed"),
        ev.ToolCall(name="Bash", input={}, id="t"),
        *(ev.UsageUpdate(usage=ev.Usage(output_tokens=n)) for n in (10, 60, 90)),
    ]
)
SESSIONS = st.lists(
    st.tuples(
        st.lists(EVENTS, max_size=4),
        st.sampled_from(["ends", "ends", "hangs", CRASH, OUTAGE, REFUSED, QUOTA]),
    ),
    max_size=7,
)


class Played:
    """Sessions that play a list; the last one ends."""

    can_resume = True
    account = None

    def __init__(self, sessions: Sequence[Session], fallbacks: int) -> None:
        self._sessions = list(sessions)
        self._fallbacks = fallbacks
        self.waits = QuotaWaits()

    def first(self, _error: Exception | None = None) -> Observable[ev.Event]:
        def play(_scheduler: object) -> Observable[ev.Event]:
            events, end = self._sessions.pop(0) if self._sessions else ([], "ends")
            ending: Any = rx.empty() if end == "ends" else rx.never()
            if isinstance(end, Exception):
                ending = rx.throw(end)
            timed: Any = [rx.of(event).pipe(ops.delay(1.0)) for event in events]
            return rx.concat(*timed, ending)

        return rx.defer(play)

    again = fresh = replaced = first

    def fall_back(self, error: Exception) -> Observable[ev.Event]:
        if not self._fallbacks or not isinstance(error, LlmSessionError):
            return rx.throw(error)
        self._fallbacks -= 1
        fell = ev.AgentFellBack(role="", from_agent="a", to_agent="b", reason="auth", message="m")
        return rx.of(fell)


def composed(given: Supervision, sessions: Played) -> Observable[ev.Event]:
    """The same policies as a stream each."""
    remedies, retries = Remedies(), Retries()
    alive: Callable[[Observable[Any]], Observable[Any]] = liveness(
        idle=given.idle_timeout,
        stage=given.stage_timeout,
        nudge=sessions.again,
        replace=sessions.fresh,
        remedies=remedies,
    )

    def retried(agent: Observable[Any]) -> Observable[Any]:
        def elsewhere(error: Exception) -> Flow[None]:
            left: Exception | None = None
            try:
                yield from forward(sessions.fall_back(error))
            except LlmSessionError as failure:
                left = failure if given.transient(error) else error
            if left is not None:
                raise left
            retries.count = 0
            yield from forward(retried(sessions.fresh()))

        return alive(agent).pipe(
            retry_session(
                Schedule.exponential(given.retry_pause)
                .jittered()
                .capped("5m")
                .times(given.max_retries),
                again=lambda error: alive(sessions.again(error)),
                retries=retries,
            ),
            catch_tag(Exception, lambda error: flow(lambda: elsewhere(error))),
        )

    return retried(sessions.first()).pipe(
        wait_for_quota(
            gate=QuotaGate(),
            wait=given.wait_for_quota,
            max_waits=2,
            waits=sessions.waits,
            again=lambda error: retried(sessions.again(error)),
        ),
        within_budget(given.budget, ledger=Ledger()),
    )


@given(
    played=SESSIONS,
    fallbacks=st.integers(0, 2),
    waits=st.booleans(),
    tokens=st.sampled_from([None, 100]),
)
def test_one_flow_is_as_the_policies_composed(
    played: Sequence[Session], fallbacks: int, waits: bool, tokens: int | None
) -> None:
    """Every event and error comes at the same time from both."""

    def supervision() -> Supervision:
        return Supervision(
            max_retries=2,
            wait_for_quota=waits,
            max_quota_waits=2,
            idle_timeout=10,
            stage_timeout=60,
            budget=Budget(tokens=tokens),
        )

    def recorded(make: Callable[[Supervision, Played], Observable[ev.Event]]) -> list[Any]:
        random.seed(1)  # of the pauses
        sessions = Played(played, fallbacks)
        record = Marbles().record(make(supervision(), sessions))
        return [
            (when, kind, value if kind == "next" else str(value)) for when, kind, value in record
        ]

    def fused(given: Supervision, sessions: Played) -> Observable[ev.Event]:
        return given.around(cast("Sessions", sessions), sessions.first())

    assert recorded(composed) == recorded(fused)
