"""The failures that trigger a fallback, and the duration of cooldowns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

from hypothesis import given, strategies as st

from cuggino.domain.fallback import Moment, Roster, cooldown_end, fallback_reason, when_to_fall_back
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    AgentNotFound,
    AgentStalled,
    BudgetExceeded,
    GuardNotLive,
    LoopError,
    QuotaExceeded,
    StorageError,
)
from cuggino.operators.supervision import is_transient
from tests.vectors import each

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
REASONS: tuple[AgentFailure, ...] = get_args(AgentFailure)
CHAIN = ("a", "b", "c")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def quota(seconds: float | None = None, message: str = "limit") -> QuotaExceeded:
    return QuotaExceeded(message, resets_at=None if seconds is None else at(seconds))


def failed(reason: AgentFailure = "auth") -> AgentFailed:
    return AgentFailed(f"it was {reason}", reason=reason)


class TestWhen:
    @each(
        "error, moment",
        [
            (quota(60), "at_once"),
            (quota(), "at_once"),
            (AgentNotFound("gone"), "at_once"),
            (failed("auth"), "at_once"),
            (failed("billing"), "at_once"),
            (failed("overloaded"), "after_retries"),
            (failed("crash"), "after_retries"),
            (failed("prompt_too_long"), "never"),
            (failed("bad_request"), "never"),
            (failed("aborted"), "never"),
            (failed("max_turns"), "never"),
            (GuardNotLive("no"), "never"),
            (BudgetExceeded("spent"), "never"),
            (AgentStalled("silent"), "never"),
            (LoopError("planning", "no marker"), "never"),
            (StorageError("read", "no"), "never"),
            (RuntimeError("bug"), "never"),
        ],
    )
    def test_each_failure(self, error: Exception, moment: Moment) -> None:
        """A permanent failure triggers the fallback immediately, a shared one never."""
        assert moment == when_to_fall_back(error)

    @each("reason", REASONS)
    def test_retries_come_first(self, reason: AgentFailure) -> None:
        """Failures that are retried trigger the fallback only after the retries."""
        error = failed(reason)
        assert is_transient(error) == (when_to_fall_back(error) == "after_retries")

    @each(
        "error, reason",
        [
            (quota(), "quota"),
            (AgentNotFound("gone"), "not_found"),
            (failed("billing"), "billing"),
            (RuntimeError(), "RuntimeError"),
        ],
    )
    def test_reasons(self, error: Exception, reason: str) -> None:
        """The reason is `quota`, `not_found`, or that of the failure."""
        assert reason == fallback_reason(error)


class TestRoster:
    def test_the_first_is_asked_until_it_fails(self) -> None:
        """The first agent is used until it fails, then the next, until the limit is lifted."""
        roster: Roster[str] = Roster()
        assert "a" == roster.chosen(CHAIN, NOW)
        cooldown = roster.failed("a", quota(3600), NOW)
        assert (at(3600), at(3600), True) == (cooldown.until, cooldown.resets_at, cooldown.is_quota)
        assert "b" == roster.chosen(CHAIN, at(3599))
        assert "a" == roster.chosen(CHAIN, at(3600))

    def test_without_a_time_the_pauses_grow(self) -> None:
        """Cooldowns start at 15 minutes and double per consecutive failure, up to five hours."""
        roster: Roster[str] = Roster()
        pauses = [
            (roster.failed("a", failed(), NOW).until - NOW).total_seconds() / 60 for _ in range(7)
        ]
        assert [15, 30, 60, 120, 240, 300, 300] == pauses

    def test_success_resets_the_cooldown(self) -> None:
        """A successful agent is available immediately, and its cooldowns start over."""
        roster: Roster[str] = Roster()
        roster.failed("a", failed(), NOW)
        roster.failed("a", failed(), NOW)
        roster.succeeded("a")
        assert "a" == roster.chosen(CHAIN, NOW)
        assert at(900) == roster.failed("a", failed(), NOW).until

    def test_a_past_time_is_ignored(self) -> None:
        """A limit with a past reset counts as one without a reset."""
        cooldown = Roster[str]().failed("a", quota(-1), NOW)
        assert (at(900), None) == (cooldown.until, cooldown.resets_at)

    def test_the_same_clock_time_is_not_tomorrow(self) -> None:
        """`resets 3pm`, repeated after 3 pm, means a pause; other wordings or times do not."""
        tomorrow, in_three_days = 25 * 3600.0, 73 * 3600.0
        for said, resets, later, until in (
            ("resets 3pm", tomorrow, 3660.0, 3660.0 + 1800),
            ("resets 3pm", in_three_days, 3660.0, in_three_days),
            ("other words", tomorrow, 3660.0, tomorrow),
            ("resets 3pm", tomorrow, 8 * 3600.0, tomorrow),
        ):
            roster: Roster[str] = Roster()
            roster.failed("a", quota(3600, "resets 3pm"), NOW)
            again = roster.failed("a", quota(resets, said), at(later))
            assert at(until) == again.until

    def test_all_on_cooldown(self) -> None:
        """With all on cooldown the one whose cooldown ends first is used; on a tie the first."""
        roster: Roster[str] = Roster()
        for name, seconds in (("a", 300), ("b", 100), ("c", 100)):
            roster.failed(name, quota(seconds), NOW)
        assert roster.available(CHAIN, NOW) is None
        assert "b" == roster.chosen(CHAIN, NOW)
        assert "b" == roster.chosen(CHAIN, at(100))
        assert "a" == roster.chosen(CHAIN, at(300))

    def test_the_limit_that_is_over_first(self) -> None:
        """It is the earliest end of a usage limit, or None while an agent is available."""
        roster: Roster[str] = Roster()
        roster.failed("a", quota(3600), NOW)
        roster.failed("b", quota(1800), NOW)
        assert roster.limit(CHAIN, NOW) is None
        roster.failed("c", failed(), NOW)
        limit = roster.limit(CHAIN, NOW)
        assert limit is not None
        assert at(1800) == limit.resets_at
        assert roster.limit(("c",), NOW) is None

    def test_a_limit_without_a_time_may_be_over_first(self) -> None:
        """An unknown end sorts before one in an hour."""
        roster: Roster[str] = Roster()
        roster.failed("a", quota(3600), NOW)
        roster.failed("b", quota(), NOW)
        limit = roster.limit(("a", "b"), NOW)
        assert limit is not None
        assert limit.resets_at is None

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(CHAIN),
                st.none() | st.floats(-1e5, 1e5),
                st.floats(0, 1e4),
                st.booleans(),
            )
        )
    )
    def test_an_agent_is_always_chosen(
        self, story: list[tuple[str, float | None, float, bool]]
    ) -> None:
        """For any failures an agent is chosen, preferring those not on cooldown."""
        roster: Roster[str] = Roster()
        now = 0.0
        for name, resets, later, succeeds in story:
            cooldown = roster.failed(name, quota(resets), at(now))
            assert cooldown.until > at(now)
            if succeeds:
                roster.succeeded(name)
            now += later
            free = [each for each in CHAIN if roster.cooldown_of(each, at(now)) is None]
            chosen = roster.chosen(CHAIN, at(now))
            assert (chosen in free) == bool(free)
            assert (free[0] if free else None) == roster.available(CHAIN, at(now))


def test_pauses_do_not_overflow() -> None:
    """Any number of failures gives a finite pause."""
    assert at(5 * 3600) == cooldown_end(None, NOW, 10**6)


def test_a_limit_that_is_lifted_by_now_gives_no_time() -> None:
    """A cooldown always ends in the future."""
    assert [at(900), at(1)] == [cooldown_end(at(seconds), NOW) for seconds in (0, 1)]
