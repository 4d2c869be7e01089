"""`wait_for_quota`: what passes without a wait, and disposal, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.testing import TestScheduler

from cuggino.errors import AgentFailed
from cuggino.operators.supervision import QuotaGate, wait_for_quota
from tests.operators.quotas import (
    HI,
    HOUR,
    armed,
    is_end,
    limit,
    marbles,
    one_after_the_other,
    second,
)


class TestWhatPasses:
    def test_a_source_without_a_limit(self) -> None:
        """Events, completion and other errors pass unchanged."""
        t = marbles(AgentFailed("no", reason="auth"))
        well, failing = t.cold("-a-d|"), t.cold("-a#")
        t.check(well.pipe(wait_for_quota()), "-a-d|")
        t.check_subscriptions(well, "^---!")
        t = marbles(AgentFailed("no", reason="auth"))
        failing = t.cold("-a#")
        t.check(failing.pipe(wait_for_quota()), "-a#")
        t.check_subscriptions(failing, "^-!")

    def test_a_limit_without_waiting(self) -> None:
        """Without `wait` the error passes on at once, and the next stream fails unsubscribed."""
        t, gate = marbles(limit(HOUR)), QuotaGate()
        first, second_one = t.cold("a#"), t.cold("a|")
        t.check(first.pipe(wait_for_quota(gate=gate, wait=False)), "a#", until=5)
        t.check_subscriptions(first, "^!")
        (seen,) = t.record(second_one.pipe(wait_for_quota(gate=gate, wait=False)), until=6)
        assert (0.0, "error", "a usage limit is in force: limit", second(HOUR)) == (
            *seen[:2],
            seen[2].message,
            seen[2].resets_at,
        )
        assert [] == second_one.subscriptions

    def test_a_limit_that_is_lifted_does_not_hold_back(self) -> None:
        """Without `wait` a stream may begin at the reset itself: the margin is for waits."""
        t, gate = marbles(limit(10)), QuotaGate()
        t.record(t.cold("#").pipe(wait_for_quota(gate=gate, wait=False)), until=10)
        t.check(
            rx.defer(lambda _: rx.just(HI)).pipe(
                wait_for_quota(gate=gate, wait=False), ops.map(lambda _: HI)
            ),
            "(a|)",
        )

    def test_a_limit_that_is_too_far_away(self) -> None:
        """A reset later than `longest` passes the error on, without a word."""
        t = marbles(limit(8 * 24 * HOUR))
        t.check(t.cold("a#").pipe(wait_for_quota()), "a#")
        t = marbles(limit(HOUR + 2))
        t.check(t.cold("a#").pipe(wait_for_quota(longest=HOUR)), "a#")

    def test_a_closed_gate_too_far_away(self) -> None:
        """A stream that begins at such a limit fails without being subscribed."""
        t, gate = marbles(limit()), QuotaGate()
        gate.met(now=second(0), resets_at=second(2 * HOUR))
        source = t.cold("a|")
        ((_, kind, error),) = t.record(source.pipe(wait_for_quota(gate=gate, longest=HOUR)))
        assert ("error", second(2 * HOUR)) == (kind, error.resets_at)
        assert [] == source.subscriptions

    def test_what_the_subscriber_raises_is_not_a_limit(self) -> None:
        """A subscriber's exception is not a limit of the source, even if it looks like one."""
        t, gate, mine = marbles(limit()), QuotaGate(), limit(1e10)
        errors: list[Exception] = []

        def refuse(_: Any) -> None:
            raise mine

        source = t.cold("-a")
        source.pipe(wait_for_quota(gate=gate)).subscribe(
            refuse, errors.append, scheduler=t.scheduler
        )
        t.scheduler.advance_to(10.0)
        assert [mine] == errors
        assert 0 == gate.remaining(second(1))
        t.check_subscriptions(source, "^!")

    def test_what_a_synchronous_subscriber_raises(self) -> None:
        """A synchronous source hands the exception back as its error; it passes on, no wait."""
        mine, gate = limit(1e10), QuotaGate()
        errors: list[Exception] = []

        def subscribe(observer: abc.ObserverBase[Any], _: Any = None) -> abc.DisposableBase:
            observer.on_next(HI)
            return Disposable()

        def refuse(_: Any) -> None:
            raise mine

        Observable(subscribe).pipe(wait_for_quota(gate=gate)).subscribe(
            refuse, errors.append, scheduler=TestScheduler()
        )
        assert [mine] == errors
        assert 0 == gate.remaining(second(0))

    def test_ticks_need_a_length(self) -> None:
        """`every` must be positive."""
        with pytest.raises(ValueError, match="every"):
            wait_for_quota(every=0)


class TestDisposal:
    @pytest.mark.parametrize("when", [1.0, 60.0, 90.0])
    def test_during_a_wait(self, when: float) -> None:
        """Nothing is emitted or subscribed after disposal, and no timer stays armed."""
        t = marbles(limit(300))
        source = t.cold("#")
        seen = t.record(source.pipe(wait_for_quota()), dispose_at=when)
        assert {True} == {at <= when for at, *_ in seen}
        t.check_subscriptions(source, "(^!)")
        assert [] == list(armed(t.scheduler))

    def test_with_the_last_word(self) -> None:
        """A subscriber that leaves at `QuotaLifted` gets no new session."""
        t = marbles(limit(30))
        source = t.cold("#")
        last = ops.take_while(lambda event: not is_end(event), inclusive=True)
        seen = t.record(source.pipe(wait_for_quota(), last))
        assert [(90.0, "next"), (90.0, "completed")] == [entry[:2] for entry in seen[-2:]]
        t.check_subscriptions(source, "(^!)")

    def test_of_the_running_source(self) -> None:
        """Disposal ends the source, before and after a wait."""
        t = marbles(limit(10))
        before, after = t.cold("-a-#"), t.cold("----a")
        source = one_after_the_other(before, after)
        t.record(source.pipe(wait_for_quota(margin=0)), dispose_at=12)
        t.check_subscriptions(before, "^--!")
        t.check_subscriptions(after, "10s ^-!")
