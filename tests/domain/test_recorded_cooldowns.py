"""Cooldowns of a resumed run, restored from its journal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st

from cuggino.domain.fallback import AgentCooldown, Roster, fallback_reason, recorded_cooldowns
from cuggino.errors import AgentFailed, QuotaExceeded
from cuggino.events import AgentFellBack, AgentMessage, Event
from tests.vectors import each

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CHAIN = ("a", "b", "c")
Recorded = tuple[datetime, Event]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


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


def test_until_its_time() -> None:
    """An agent is on cooldown until the recorded time, exclusively."""
    entries = [(NOON, AgentMessage(text="hi")), fell(10, 7000)]
    assert {"a": 7000} == until(entries, 20)
    assert {"a": 7000} == until(entries, 6999)
    assert {} == until(entries, 7000)
    assert () == recorded_cooldowns([], NOON)


def test_an_unknown_time() -> None:
    """The cooldown is the pause of that moment, from the failure on."""
    assert {"a": 910} == until([fell(10, 910, reason="auth")], 20)
    assert {"a": 910} == until([fell(10, None, reason="auth")], 909)
    assert {} == until([fell(10, None)], 910)


def test_the_latest_counts() -> None:
    """The latest record of an agent replaces earlier ones."""
    assert {"a": 2000} == until([fell(0, 9000), fell(100, 2000, reason="crash")], 200)


def test_a_successful_fallback_is_available() -> None:
    """A fallback that ended a session well is available despite earlier records."""
    entries = [fell(0, 9000), fell(100, 8000, by="ba"), fell(200, 7000, by="cd", role="plan")]
    assert {"b": 8000, "c": 7000} == until(entries, 300)


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
        assert (at(7000), "no agent is available (A: why; B: no)") == (left.resets_at, left.message)

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
