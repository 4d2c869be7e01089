"""Failures: when to retry an item, when to fall back, and cooldowns across processes."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta
from typing import get_args

from hypothesis import given, strategies as st

from cuggino.domain.attempts import Attempts, hits_every_item, is_full_disk, needs_login
from cuggino.domain.fallback import (
    AgentCooldown,
    Moment,
    Roster,
    cooldown_end,
    fallback_reason,
    recorded_cooldowns,
    when_to_fall_back,
)
from cuggino.errors import (
    AgentFailed,
    AgentFailure,
    AgentNotFound,
    AgentStalled,
    BudgetExceeded,
    ConfigError,
    CugginoError,
    GuardNotLive,
    LoopError,
    ProcessError,
    QuotaExceeded,
    StorageError,
)
from cuggino.events import AgentFellBack, AgentMessage, Event
from cuggino.operators.supervision import is_transient
from tests.vectors import each

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_pauses_double_up_to_an_hour() -> None:
    """Each failure doubles the pause, up to an hour."""
    attempts = Attempts(max_attempts=20, retry_seconds=60)
    pauses = [attempts.failed("a", NOW) for _ in range(9)]
    assert [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600] == pauses


def test_the_last_attempt_clears_the_count() -> None:
    """At `max_attempts` the pause is None, and the count is cleared."""
    attempts = Attempts(max_attempts=2, retry_seconds=60)
    assert 60 == attempts.failed("a", NOW)
    assert 1 == attempts.count("a")
    assert attempts.failed("a", NOW) is None
    assert 0 == attempts.count("a")
    assert ["a"] == [*attempts.due(["a"], NOW)]


def test_a_limit_that_is_renewed() -> None:
    """After 20 limits in a row without a finished item, short reported pauses no longer count."""
    attempts = Attempts(max_attempts=3, retry_seconds=60)
    pauses = [attempts.limited(NOW, later(60)) for _ in range(24)]
    assert [60.0] * 20 + [900, 1800, 3600, 7200] == pauses
    assert 86_400 == attempts.limited(NOW, later(86_400))
    attempts.succeeded("a")
    assert 60 == attempts.limited(NOW, later(60))


def test_only_the_item_itself_is_paused() -> None:
    """A paused item blocks no other item, and is ready once its pause is over."""
    attempts = Attempts(max_attempts=3, retry_seconds=60)
    attempts.failed("a", NOW)
    assert ["b"] == [*attempts.due(["a", "b"], later(59.9))]
    assert ["a", "b"] == [*attempts.due(["a", "b"], later(60))]
    assert 60 == attempts.next_due(["a", "b"], NOW)
    assert attempts.next_due(["a", "b"], later(60)) is None


def test_a_run_without_an_error_clears_the_count() -> None:
    """A run that ends without an error clears the failures."""
    attempts = Attempts(max_attempts=2, retry_seconds=60)
    attempts.failed("a", NOW)
    attempts.succeeded("a")
    assert ["a"] == [*attempts.due(["a"], NOW)]
    assert 60 == attempts.failed("a", NOW)


@each(
    "expected, cause",
    [
        (True, QuotaExceeded("limit")),
        (True, AgentNotFound("none")),
        (True, ConfigError("no prompt")),
        (True, AgentFailed("no login", reason="auth")),
        (True, AgentFailed("no money", reason="billing")),
        (False, AgentFailed("died", reason="crash")),
        (False, AgentStalled("silent")),
    ],
)
def test_failures_unrelated_to_an_item(expected: bool, cause: CugginoError) -> None:
    """Failures that would hit every item are recognized, also inside a loop's error."""
    assert expected == hits_every_item(cause)
    assert expected == hits_every_item(LoopError("planning", "it failed", cause=cause))


def test_a_usage_limit_pauses_everything_and_counts_nothing() -> None:
    """Until the limit is lifted no item is tried, and no attempt is counted."""
    attempts = Attempts(max_attempts=1, retry_seconds=60)
    assert 7200 == attempts.limited(NOW, later(7200))
    assert 0 == attempts.count("a")
    assert [] == [*attempts.due(["a", "b"], later(7199))]
    assert ["a", "b"] == [*attempts.due(["a", "b"], later(7200))]


def test_how_long_all_items_are_paused() -> None:
    """It is the rest of the latest pause."""
    attempts = Attempts(max_attempts=1, retry_seconds=60)
    assert 0 == attempts.paused(NOW)
    attempts.limited(NOW, None)
    assert 600 == attempts.paused(later(300))
    assert 0 == attempts.paused(later(901))


def test_a_limit_without_a_time_backs_off() -> None:
    """Backoff starts at 15 minutes and doubles up to five hours; a past time is ignored."""
    attempts = Attempts(max_attempts=1, retry_seconds=60)
    pauses = [attempts.limited(NOW, None) for _ in range(7)]
    assert [900, 1800, 3600, 7200, 14400, 18000, 18000] == pauses
    attempts.succeeded("a")
    assert 900 == attempts.limited(NOW, later(-1))


FULL = ProcessError("git", f"cannot write: {os.strerror(errno.ENOSPC)}")


@each(
    "login, disk, cause",
    [
        (True, False, AgentFailed("no login", reason="auth")),
        (False, False, AgentFailed("no money", reason="billing")),
        (False, True, FULL),
        (False, False, ProcessError("git", "no such branch")),
        (False, False, ConfigError(FULL.message)),
    ],
)
def test_failures_that_only_a_person_ends(login: bool, disk: bool, cause: CugginoError) -> None:
    """A missing login and a full disk are recognized, also inside a loop's error."""
    for error in (cause, LoopError("planning", "it failed", cause=cause)):
        assert (login, disk) == (needs_login(error), is_full_disk(error))
        assert hits_every_item(error) or not (login or disk)


def test_everything_waits_for_a_person() -> None:
    """All items are paused until the next look."""
    attempts = Attempts(max_attempts=1, retry_seconds=60)
    seconds = attempts.wait(NOW)
    assert seconds == attempts.paused(NOW) > 0
    assert [] == [*attempts.due(["a"], later(seconds - 1))]
    assert ["a"] == [*attempts.due(["a"], later(seconds))]


def test_a_stalled_run_is_repeated_once() -> None:
    """The latest review is kept until the item is forgotten."""
    attempts = Attempts(max_attempts=3, retry_seconds=60)
    assert attempts.review("a") is None
    assert [True, False] == [attempts.stalled("a", review) for review in ("first", "second")]
    assert "second" == attempts.review("a")
    attempts.forget("a")
    assert attempts.stalled("a", "third")


def test_the_counts_of_an_earlier_process() -> None:
    """A restored count, due time and number of usage limits are continued."""
    attempts = Attempts(max_attempts=3, retry_seconds=60)
    attempts.restore("a", 2, later(60))
    assert 2 == attempts.count("a")
    assert [] == [*attempts.due(["a"], later(59))]
    assert ["a"] == [*attempts.due(["a"], later(60))]
    assert attempts.failed("a", NOW) is None
    for _ in range(20):
        attempts.restore_limit()
    assert 900 == attempts.limited(NOW, later(60))


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
REASONS: tuple[AgentFailure, ...] = get_args(AgentFailure)
CHAIN = ("a", "b", "c")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


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
        assert "a" == roster.chosen(CHAIN, NOON)
        cooldown = roster.failed("a", quota(3600), NOON)
        assert (at(3600), at(3600), True) == (cooldown.until, cooldown.resets_at, cooldown.is_quota)
        assert "b" == roster.chosen(CHAIN, at(3599))
        assert "a" == roster.chosen(CHAIN, at(3600))

    def test_without_a_time_the_pauses_grow(self) -> None:
        """Cooldowns start at 15 minutes and double per consecutive failure, up to five hours."""
        roster: Roster[str] = Roster()
        pauses = [
            (roster.failed("a", failed(), NOON).until - NOON).total_seconds() / 60 for _ in range(7)
        ]
        assert [15, 30, 60, 120, 240, 300, 300] == pauses

    def test_success_resets_the_cooldown(self) -> None:
        """A successful agent is available immediately, and its cooldowns start over."""
        roster: Roster[str] = Roster()
        roster.failed("a", failed(), NOON)
        roster.failed("a", failed(), NOON)
        roster.succeeded("a")
        assert "a" == roster.chosen(CHAIN, NOON)
        assert at(900) == roster.failed("a", failed(), NOON).until

    def test_a_past_time_is_ignored(self) -> None:
        """A limit with a past reset counts as one without a reset."""
        cooldown = Roster[str]().failed("a", quota(-1), NOON)
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
            roster.failed("a", quota(3600, "resets 3pm"), NOON)
            again = roster.failed("a", quota(resets, said), at(later))
            assert at(until) == again.until

    def test_all_on_cooldown(self) -> None:
        """With all on cooldown the one whose cooldown ends first is used; on a tie the first."""
        roster: Roster[str] = Roster()
        for name, seconds in (("a", 300), ("b", 100), ("c", 100)):
            roster.failed(name, quota(seconds), NOON)
        assert roster.available(CHAIN, NOON) is None
        assert "b" == roster.chosen(CHAIN, NOON)
        assert "b" == roster.chosen(CHAIN, at(100))
        assert "a" == roster.chosen(CHAIN, at(300))

    def test_the_limit_that_is_over_first(self) -> None:
        """It is the earliest end of a usage limit, or None while an agent is available."""
        roster: Roster[str] = Roster()
        roster.failed("a", quota(3600), NOON)
        roster.failed("b", quota(1800), NOON)
        assert roster.limit(CHAIN, NOON) is None
        roster.failed("c", failed(), NOON)
        limit = roster.limit(CHAIN, NOON)
        assert limit is not None
        assert at(1800) == limit.resets_at
        assert roster.limit(("c",), NOON) is None

    def test_a_limit_without_a_time_may_be_over_first(self) -> None:
        """An unknown end sorts before one in an hour."""
        roster: Roster[str] = Roster()
        roster.failed("a", quota(3600), NOON)
        roster.failed("b", quota(), NOON)
        limit = roster.limit(("a", "b"), NOON)
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
    assert at(5 * 3600) == cooldown_end(None, NOON, 10**6)


def test_a_limit_that_is_lifted_by_now_gives_no_time() -> None:
    """A cooldown always ends in the future."""
    assert [at(900), at(1)] == [cooldown_end(at(seconds), NOON) for seconds in (0, 1)]


Recorded = tuple[datetime, Event]


def fell(
    when: float, until: float | None, *, by: str = "ab", reason: str = "quota", role: str = "coding"
) -> Recorded:
    """Return the cooldown until then, recorded at `when`."""
    event = AgentFellBack(
        role=role,
        from_agent=by[0],
        to_agent=by[1],
        reason=reason,
        message="why",
        until=None if until is None else at(until),
    )
    return at(when), event


def until(entries: list[Recorded], now: float) -> dict[str, float]:
    """Return the ends of the agents' cooldowns, in seconds since noon."""
    return {
        one.agent: (one.cooldown.until - NOON).total_seconds()
        for one in recorded_cooldowns(entries, at(now))
    }


@each(
    "entries, now, expected",
    [
        ([], 0, {}),
        ([(NOON, AgentMessage(text="hi")), fell(10, 7000)], 20, {"a": 7000}),
        ([fell(10, 7000)], 6999, {"a": 7000}),
        ([fell(10, 7000)], 7000, {}),
        # Without a time, the cooldown is the pause of that moment, from the failure on.
        ([fell(10, 910, reason="auth")], 20, {"a": 910}),
        ([fell(10, None, reason="auth")], 909, {"a": 910}),
        ([fell(10, None)], 910, {}),
        # The latest record of an agent replaces earlier ones.
        ([fell(0, 9000), fell(100, 2000, reason="crash")], 200, {"a": 2000}),
        # A fallback that ended a session well is available despite earlier records.
        (
            [fell(0, 9000), fell(100, 8000, by="ba"), fell(200, 7000, by="cd", role="plan")],
            300,
            {"b": 8000, "c": 7000},
        ),
    ],
)
def test_recorded_cooldowns(
    entries: list[Recorded], now: float, expected: dict[str, float]
) -> None:
    """An agent is on cooldown until the recorded time, exclusively."""
    assert expected == until(entries, now)


def test_each_role_has_its_own() -> None:
    """The same name may be another agent in another role."""
    entries = [fell(0, 9000), fell(100, 8000, role="plan")]
    found = [
        (one.role, one.agent, one.cooldown.until) for one in recorded_cooldowns(entries, at(200))
    ]
    assert [("coding", "a", at(9000)), ("plan", "a", at(8000))] == found


@each(
    "entry, resets_at, is_quota, failures",
    [
        (fell(0, 7000), at(7000), True, 1),
        (fell(0.5, 900), None, True, 1),
        (fell(0, 3600, reason="crash"), None, False, 3),
        (fell(0, 18000, reason="server"), None, False, 6),
        (fell(0, 5000, reason="auth"), None, False, 1),
    ],
)
def test_kinds_of_cooldowns(
    entry: Recorded, resets_at: datetime | None, is_quota: bool, failures: int
) -> None:
    """A cooldown is a known limit, or a pause with the number of failures."""
    (one,) = recorded_cooldowns([entry], at(100))
    cooldown = one.cooldown
    assert (resets_at, is_quota, failures) == (
        cooldown.resets_at,
        cooldown.is_quota,
        cooldown.failures,
    )
    assert ("coding", "a", "why") == (one.role, one.agent, cooldown.message)


class TestRestore:
    def restored(self, *entries: Recorded, now: float = 20) -> Roster[str]:
        roster: Roster[str] = Roster()
        for one in recorded_cooldowns(entries, at(now)):
            roster.restore(one.agent, one.cooldown)
        return roster

    def test_pauses_keep_growing(self) -> None:
        """The next failure doubles the pause of the earlier process."""
        roster = self.restored(fell(0, 900, reason="auth"))
        assert "b" == roster.chosen(CHAIN, at(899))
        assert "a" == roster.chosen(CHAIN, at(900))
        again = roster.failed("a", AgentFailed("no", reason="auth"), at(1000))
        assert at(1000 + 1800) == again.until

    def test_the_limit_is_restored(self) -> None:
        """When no agent is left the limit is the recorded one."""
        roster = self.restored(fell(0, 7000))
        left = roster.final_error({"a": "A", "b": "B"}, "b", RuntimeError("no"), at(100))
        assert isinstance(left, QuotaExceeded)
        assert (at(7000), "no agent is available (A: why; B: no)") == (
            left.resets_at,
            left.message,
        )

    def test_of_two_the_longer(self) -> None:
        """Of several failures in earlier processes the one with the longest cooldown counts."""
        for story in (
            (fell(0, 7000), fell(0, 5000, role="plan")),
            (fell(0, 5000), fell(0, 7000, role="plan")),
        ):
            found = self.restored(*story).cooldown_of("a", at(100))
            assert found is not None
            assert at(7000) == found.until

    def test_own_observations_count_more(self) -> None:
        """An agent that worked or failed in this process keeps that state."""
        (one,) = recorded_cooldowns([fell(0, 9000)], at(20))
        roster: Roster[str] = Roster()
        roster.succeeded("a")
        roster.restore("a", one.cooldown)
        assert roster.cooldown_of("a", at(30)) is None
        roster.failed("b", QuotaExceeded("soon", resets_at=at(50)), at(30))
        roster.restore("b", one.cooldown)
        assert roster.cooldown_of("b", at(50)) is None


@given(
    st.lists(
        st.tuples(
            st.none() | st.floats(60, 1e5),
            st.floats(1, 2e4),
            st.booleans(),
        )
    ),
    st.floats(0, 1e5),
)
def test_as_without_an_interruption(
    story: list[tuple[float | None, float, bool]], later: float
) -> None:
    """For any failures a restored agent is available when it would have been."""
    roster: Roster[str] = Roster()
    entries: list[Recorded] = []
    now = 0.0
    for resets, pause, is_quota in story:
        name = roster.chosen(CHAIN, at(now))
        error: Exception = AgentFailed("no", reason="auth")
        if is_quota:
            error = QuotaExceeded("no", resets_at=None if resets is None else at(now + resets))
        cooldown = roster.failed(name, error, at(now))
        other = roster.available(CHAIN, at(now))
        if other is not None:
            entries.append(
                (
                    at(now),
                    AgentFellBack(
                        role="coding",
                        from_agent=name,
                        to_agent=other,
                        reason=fallback_reason(error),
                        message=cooldown.message,
                        until=cooldown.until,
                    ),
                )
            )
        else:  # no event for it, and the run is over
            break
        now += pause
    then = at(now + later)
    recorded: tuple[AgentCooldown, ...] = recorded_cooldowns(entries, then)
    found = {
        name: one.until for name in CHAIN if (one := roster.cooldown_of(name, then)) is not None
    }
    known = {each.agent: each.cooldown.until for each in recorded}
    assert known.items() <= found.items()
    assert len(found.keys() - known.keys()) <= 1  # the last one, when no agent was left
