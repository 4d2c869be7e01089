"""`QuotaGate`: one usage limit for all streams that share it, in virtual time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
import reactivex as rx

from cuggino.events import QuotaLifted, RateLimited, SessionEnded
from cuggino.operators.supervision import QuotaGate, wait_for_quota
from tests.operators.quotas import (
    HI,
    HOUR,
    limit,
    marbles,
    one_after_the_other,
    second,
    waiting,
)
from tests.vectors import rows


class TestASharedGate:
    def test_a_stream_waits_for_what_another_met(self) -> None:
        """An agent that is to begin during the wait of another waits with it."""
        t, gate = marbles(limit(100)), QuotaGate()
        loop, audit = one_after_the_other(t.cold("#"), t.cold("-d|")), t.cold("a|")
        seen: list[Any] = []
        t.scheduler.schedule_absolute(
            50.0,
            lambda *_: audit.pipe(wait_for_quota(gate=gate, margin=0)).subscribe(
                lambda event: seen.append((t.now, event)), scheduler=t.scheduler
            ),
        )
        t.record(loop.pipe(wait_for_quota(gate=gate, margin=0)))
        assert [(50, waiting(50, 100)), (100, QuotaLifted(waited=50)), (100, HI)] == seen
        t.check_subscriptions(audit, "100s ^!")

    def test_the_margin_of_a_closed_gate_counts(self) -> None:
        """Whoever comes when the limit is lifted, but within the margin, waits for the rest."""
        gate = QuotaGate()
        gate.met(now=second(0), resets_at=second(100), message="limit")
        t = marbles(limit(), x=waiting(30, 100), l=QuotaLifted(waited=30))
        t.record(rx.empty(), until=130)
        t.check(t.cold("d|").pipe(wait_for_quota(gate=gate)), "x 29s (ld)|", until=100)

    def test_a_rejected_request_closes_it_at_once(self) -> None:
        """`RateLimited` with `rejected` closes the gate although the session continues."""
        gate = QuotaGate()
        rejected = RateLimited(status="rejected", resets_at=second(100), limit="five_hour")
        t = marbles(limit(), r=rejected)
        t.check(t.cold("-r-a").pipe(wait_for_quota(gate=gate)), "-r-a", until=10)
        assert 90 == gate.remaining(second(10))
        assert ("five_hour", second(100)) == (gate.message, gate.resets_at)

    def test_a_warning_does_not_close_it(self) -> None:
        """`RateLimited` that only warns changes nothing."""
        gate = QuotaGate()
        t = marbles(limit(), r=RateLimited(status="allowed_warning", resets_at=second(100)))
        t.check(t.cold("-r").pipe(wait_for_quota(gate=gate)), "-r", until=10)
        assert 0 == gate.remaining(second(10))

    def test_paid_overage_does_not_close_it(self) -> None:
        """A rejected limit beyond which the account pays leaves the gate open."""
        gate = QuotaGate()
        over = RateLimited(status="rejected", resets_at=second(100), overage=True)
        t = marbles(limit(), r=over)
        t.check(t.cold("-r").pipe(wait_for_quota(gate=gate)), "-r", until=10)
        assert 0 == gate.remaining(second(10))

    @pytest.mark.parametrize(("planned", "left"), [(False, 0), (True, 90)])
    def test_a_planned_limit_outlasts_other_sessions(self, planned: bool, left: float) -> None:
        """A session that another stream completes lifts a limit of the agent, not a planned one."""
        gate = QuotaGate()
        gate.met(now=second(0), resets_at=second(100), planned=planned)
        gate.open()
        assert left == gate.remaining(second(10))
        gate.pass_by()
        assert 0 == gate.remaining(second(10))

    def test_an_error_without_a_time_waits_for_the_rejected_requests(self) -> None:
        """The time of the structured signal serves an error that names none."""
        rejected = RateLimited(status="rejected", resets_at=second(60))
        t = marbles(limit(), r=rejected, x=waiting(59, 60, ""), l=QuotaLifted(waited=59))
        source = one_after_the_other(t.cold("r#"), t.cold("|"))
        t.check(source.pipe(wait_for_quota(margin=0)), "rx 58s (l|)")

    @pytest.mark.parametrize(
        ("diagram", "opened"),
        [("rd", True), ("r|", True), ("r(f|)", False), ("r(i|)", False), ("rf", False)],
    )
    def test_a_session_that_ends_well_opens_it(self, diagram: str, opened: bool) -> None:
        """A completed session opens the gate, one that failed or was interrupted does not."""
        gate = QuotaGate()
        t = marbles(
            limit(),
            r=RateLimited(status="rejected", resets_at=second(100)),
            f=SessionEnded(outcome="failed"),
            i=SessionEnded(outcome="interrupted"),
        )
        t.check(t.cold(diagram).pipe(wait_for_quota(gate=gate)), diagram, until=10)
        assert (0 if opened else 90) == gate.remaining(second(10))

    def test_it_may_be_opened_and_extended_during_a_wait(self) -> None:
        """Changes of the limit by other streams count from the next tick on."""
        for change, expected in (
            (lambda gate: gate.open(), [0, 60, 120]),
            (
                lambda gate: gate.met(now=second(70), resets_at=second(190)),
                [0, 60, 120, 180, 190],
            ),
        ):
            t, gate = marbles(limit(150)), QuotaGate()
            source = one_after_the_other(t.cold("#"), t.cold("|"))
            t.scheduler.schedule_absolute(70.0, lambda *_, do=change, on=gate: do(on))
            seen = t.record(source.pipe(wait_for_quota(gate=gate, margin=0)))
            assert [*expected, expected[-1]] == [when for when, *_ in seen]

    def test_it_may_be_extended_too_far(self) -> None:
        """When another stream meets a limit beyond `longest`, the wait ends with the error."""
        t, gate = marbles(limit(150)), QuotaGate()

        def extend(*_: Any) -> None:
            gate.met(now=second(70), resets_at=second(2 * HOUR))

        t.scheduler.schedule_absolute(70.0, extend)
        seen = t.record(t.cold("#").pipe(wait_for_quota(gate=gate, longest=HOUR)))
        assert (120.0, "error", t.error) == seen[-1]


class TestQuotaGate:
    @pytest.mark.parametrize(
        "row",
        [row for row in rows("quota") if row["wait_ms"] is not None],
        ids=lambda row: row["id"],
    )
    def test_follows_the_cases(self, row: dict[str, Any]) -> None:
        """The seconds that remain are those of the case, and none when the reset is past."""
        gate, now = QuotaGate(), datetime.fromisoformat(row["now"])
        lifted = datetime.fromisoformat(row["reset" if "reset" in row else "expected_reset"])
        gate.close(lifted, now=now, resets_at=lifted)
        assert row["wait_ms"] == gate.remaining(now) * 1000

    def test_the_later_of_two_limits_counts(self) -> None:
        """A limit in force is only ever extended."""
        gate = QuotaGate()
        for resets in (100, 300, 200):
            gate.met(now=second(0), resets_at=second(resets))
        assert 300 == gate.remaining(second(0))

    def test_a_known_end_counts_before_a_guess(self) -> None:
        """A reported time replaces an estimate, and no estimate replaces it."""
        gate = QuotaGate()
        gate.met(now=second(0))
        assert 900 == gate.remaining(second(0), margin=60)
        gate.met(now=second(0), resets_at=second(100))
        gate.close(second(5000), now=second(0))
        assert (100, 160) == (gate.remaining(second(0)), gate.remaining(second(0), margin=60))

    def test_a_time_replaces_a_pause_in_the_same_words(self) -> None:
        """A limit whose end is learned later is lifted then, although the words are the same."""
        gate = QuotaGate()
        gate.met(now=second(0), message="limit")
        assert gate.met(now=second(0), resets_at=second(5000), message="limit")
        assert 5000 == gate.remaining(second(0))

    def test_the_same_clock_time_is_not_tomorrow(self) -> None:
        """The same message with a time a day later is stale; another message is not."""
        for message, expected in (("resets 3pm", 900), ("other words", 24 * HOUR - 60)):
            gate = QuotaGate()
            gate.met(now=second(0), resets_at=second(100), message="resets 3pm")
            gate.met(now=second(160), resets_at=second(100 + 24 * HOUR), message=message)
            assert expected == gate.remaining(second(160))

    def test_each_account_has_a_gate(self) -> None:
        """A limit of one account binds its own streams only."""
        gate = QuotaGate()
        gate.of("mine").met(now=second(0), resets_at=second(100))
        assert gate is gate.of(None)
        assert [100, 0, 0] == [
            each.remaining(second(0)) for each in (gate.of("mine"), gate.of("yours"), gate)
        ]

    def test_a_limit_that_is_past_is_replaced(self) -> None:
        """After its end a limit delays nothing, and its time is forgotten."""
        gate = QuotaGate()
        gate.met(now=second(0), resets_at=second(100))
        gate.met(now=second(100))
        assert (None, 900) == (gate.resets_at, gate.remaining(second(100)))
