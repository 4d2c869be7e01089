"""`wait_for_quota`: waits for usage limits, in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import reactivex as rx
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler.scheduler import Scheduler

from cuggino.domain.quota import parse_reset
from cuggino.errors import LoopError, QuotaExceeded
from cuggino.events import AgentMessage, QuotaLifted, QuotaWaiting
from cuggino.operators.supervision import QuotaGate, QuotaWaits, wait_for_quota
from cuggino.testing import Marbles, VirtualClock
from tests.operators.quotas import (
    DONE,
    HI,
    HOUR,
    is_end,
    limit,
    marbles,
    one_after_the_other,
    waiting,
)


class TestAWait:
    def test_counts_down_and_goes_on(self) -> None:
        """It waits until the reset and the margin, ticks each minute, then subscribes again."""
        t = marbles(
            limit(100),
            x=waiting(159, 100),
            y=waiting(99, 100),
            z=waiting(39, 100),
            l=QuotaLifted(waited=159),
        )
        met, well = t.cold("a#"), t.cold("-d|")
        source = one_after_the_other(met, well)
        t.check(source.pipe(wait_for_quota()), "ax 59s y 59s z 38s ld|")
        t.check_subscriptions(met, "^!")
        t.check_subscriptions(well, "160s ^-!")

    @pytest.mark.parametrize("at_once", [False, True])
    def test_the_agent_is_gone_before_the_wait(self, at_once: bool) -> None:
        """The source is released before any event, also if it fails in its subscription."""
        t = marbles(limit(100))
        order: list[Any] = []

        def subscribe(observer: Any, scheduler: Any = None) -> Disposable:
            if at_once:
                observer.on_error(t.error)
            else:
                scheduler.schedule_relative(1.0, lambda *_: observer.on_error(t.error))
            return Disposable(lambda: order.append("gone"))

        source = one_after_the_other(Observable(subscribe), t.cold("|"))
        t.record(
            source.pipe(wait_for_quota(), ops.do_action(lambda event: order.append(type(event))))
        )
        assert ["gone", QuotaWaiting] == order[:2]

    @pytest.mark.parametrize("resets", [None, 900, HOUR])
    def test_a_wait_that_is_too_long(self, resets: float | None) -> None:
        """`longest` limits the wait for a reported time and for an estimated one."""
        t = marbles(limit(resets))
        t.check(t.cold("a#").pipe(wait_for_quota(longest=898)), "a#")

    def test_all_waits_together_are_limited(self) -> None:
        """`longest` limits the sum of all waits; the error has the setting in its hint."""
        t = Marbles(error=limit(100), l=QuotaLifted(waited=99))
        first = t.cold("-#")
        t.error = limit(199)
        second_ = t.cold("-#")
        source = one_after_the_other(first, second_)
        seen = t.record(source.pipe(wait_for_quota(margin=0, longest=196)))
        assert [(100.0, "next", QuotaLifted(waited=99)), (101.0, "error", t.error)] == seen[-2:]
        assert "see maxQuotaWait" in str(seen[-1][2].hint)

    def test_the_number_of_waits_is_limited(self) -> None:
        """After `max_waits` waits the error passes on; shared waits count together."""
        t, waits = Marbles(), QuotaWaits()
        begun: list[float] = []

        def source() -> Observable[Any]:
            begun.append(t.now)
            return rx.throw(limit(t.now + 10))

        limited = rx.defer(lambda _: source()).pipe(wait_for_quota(margin=0, waits=waits))
        seen = t.record(limited)
        assert [10.0 * n for n in range(21)] == begun
        assert "20 waits did not help, see maxQuotaWaits" in str(seen[-1][2].hint)
        assert QuotaWaits(count=20, seconds=200) == waits
        assert ["error"] == [kind for _, kind, _ in t.record(limited)]

    def test_five_hours(self) -> None:
        """A limit of five hours takes 300 ticks, and the last part of a minute no event."""
        t = marbles(limit(5 * HOUR))
        met, well = t.cold("#"), t.cold("(d|)")
        seen = t.record(one_after_the_other(met, well).pipe(wait_for_quota(margin=90)))
        ticks = [(when, event.remaining) for when, _, event in seen[:-3]]
        assert [(60.0 * n, 5 * HOUR + 90 - 60 * n) for n in range(302)] == ticks
        assert [
            (5 * HOUR + 90, "next", QuotaLifted(waited=5 * HOUR + 90)),
            (5 * HOUR + 90, "next", DONE),
            (5 * HOUR + 90, "completed", None),
        ] == seen[-3:]

    def test_over_a_change_of_the_clocks(self) -> None:
        """From midnight to 6 am in Rome it is five hours in March and seven in October."""
        rome, waited = ZoneInfo("Europe/Rome"), []
        for day in (datetime(2024, 3, 31, tzinfo=rome), datetime(2024, 10, 27, tzinfo=rome)):
            lifted = parse_reset("resets 6am", now=day, zone=rome)
            clock = VirtualClock(start=day.astimezone(UTC))
            t = Marbles(error=QuotaExceeded("limit", resets_at=lifted), clock=clock)
            source = one_after_the_other(t.cold("#"), t.cold("|"))
            seen = t.record(source.pipe(wait_for_quota(margin=0)), until=1e5)
            waited += [event.waited for _, _, event in seen if isinstance(event, QuotaLifted)]
        assert [5 * HOUR, 7 * HOUR] == waited

    def test_goes_on_with_what_it_is_told(self) -> None:
        """With `again` that is subscribed, and is given the limit, also out of a `LoopError`."""
        met = limit(10)
        t = Marbles(
            error=LoopError("planning", "limit", cause=met),
            a=HI,
            b=AgentMessage(text="resumed"),
            x=waiting(10, 10),
            l=QuotaLifted(waited=10),
        )
        source, resumed = t.cold("#"), t.cold("-b|")
        given: list[QuotaExceeded] = []

        def again(error: QuotaExceeded) -> Observable[Any]:
            given.append(error)
            t.check_subscriptions(source, "(^!)")
            return resumed

        t.check(source.pipe(wait_for_quota(margin=0, again=again)), "x 9s lb|")
        assert [met] == given
        t.check_subscriptions(resumed, "10s ^-!")

    def test_a_synchronous_source_is_released_first(self) -> None:
        """A source that fails within its subscription is released before the wait is announced."""
        t, done = Marbles(), list[str]()

        def subscribe(observer: abc.ObserverBase[Any], _: Any = None) -> abc.DisposableBase:
            done.append("begun")
            observer.on_error(limit(t.now + 10))
            return Disposable(lambda: done.append("released"))

        Observable(subscribe).pipe(wait_for_quota(margin=0)).subscribe(
            lambda event: done.append(event.tag), scheduler=t.scheduler
        )
        t.scheduler.advance_to(10.0)
        once = ["begun", "released", "QuotaWaiting"]
        assert [*once, "QuotaLifted", *once] == done

    def test_again_that_fails(self) -> None:
        """An exception of `again` is the stream's error."""
        broken = RuntimeError("broken")

        def again(_: QuotaExceeded) -> Observable[Any]:
            raise broken

        t = marbles(limit(1))
        seen = t.record(t.cold("#").pipe(wait_for_quota(margin=0, again=again)))
        assert (1.0, "error", broken) == seen[-1]

    def test_waits_as_often_as_needed(self) -> None:
        """A source that meets a limit after each wait is waited for each time, in flat stack."""
        t = Marbles()
        begun: list[float] = []

        def source() -> Observable[Any]:
            begun.append(t.now)
            return rx.throw(limit(t.now + 10)) if len(begun) < 3000 else rx.just(DONE)

        stream = rx.defer(lambda _: source()).pipe(wait_for_quota(margin=0, max_waits=None))
        seen = t.record(stream)
        assert [10.0 * n for n in range(3000)] == begun
        assert [DONE, None] == [value for _, _, value in seen[-2:]]

    def test_the_clock_is_looked_at_at_every_tick(self) -> None:
        """After a suspension the wait ends at the next tick that is past the reset."""
        t = marbles(limit(HOUR))
        met, well = t.cold("#"), t.cold("(d|)")
        seen: list[Any] = []
        one_after_the_other(met, well).pipe(wait_for_quota()).subscribe(
            lambda event: seen.append((t.now, event)), scheduler=t.scheduler
        )
        t.scheduler.advance_to(90.0)
        t.scheduler.sleep(2 * HOUR)
        t.scheduler.advance_to(3 * HOUR)
        assert [
            (0, waiting(HOUR + 60, HOUR)),
            (60, waiting(HOUR, HOUR)),
            (2 * HOUR + 90, QuotaLifted(waited=2 * HOUR + 90)),
            (2 * HOUR + 90, DONE),
        ] == seen

    @pytest.mark.parametrize(("moved", "ends_at"), [(600.0, 120.0), (-600.0, 900.0)])
    def test_the_clock_is_moved(self, moved: float, ends_at: float) -> None:
        """The wait is until the reset by the clock of the moment, in steps of a minute."""
        t = marbles(limit(300))
        clock = MovedClock(t.scheduler)
        seen: list[tuple[float, Any]] = []
        source = one_after_the_other(t.cold("#"), t.cold("(d|)"))
        source.pipe(wait_for_quota(margin=0, longest=310)).subscribe(
            lambda event: seen.append((t.now, event)), scheduler=clock
        )
        t.scheduler.advance_to(90.0)
        clock.moved = timedelta(seconds=moved)
        t.scheduler.advance_to(2000.0)
        assert [QuotaLifted(waited=ends_at + moved), DONE] == [event for _, event in seen[-2:]]
        assert {ends_at} == {when for when, _ in seen[-2:]}
        if moved < 0:
            assert (120.0, waiting(780, 300)) in seen


class MovedClock(Scheduler):
    """Another scheduler, whose clock can be moved."""

    def __init__(self, inner: VirtualClock) -> None:
        super().__init__()
        self.inner = inner
        self.moved = timedelta()

    @property
    def now(self) -> datetime:
        return self.inner.now + self.moved

    def schedule(self, action: Any, state: Any = None) -> abc.DisposableBase:
        return self.inner.schedule(action, state)

    def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> abc.DisposableBase:
        return self.inner.schedule_relative(duetime, action, state)

    def schedule_absolute(self, duetime: Any, action: Any, state: Any = None) -> abc.DisposableBase:
        return self.inner.schedule_absolute(duetime, action, state)


class TestAnUnknownEnd:
    def test_backs_off_for_a_day(self) -> None:
        """The pauses double from 15 minutes to 5 hours, 24 hours in all, then the error passes."""
        t = marbles(limit())
        begun: list[float] = []

        def source(_: Any) -> Observable[Any]:
            begun.append(t.now / HOUR)
            return t.cold("#")

        seen = t.record(rx.defer(source).pipe(wait_for_quota()))
        assert [0, 0.25, 0.75, 1.75, 3.75, 7.75, 12.75, 17.75, 22.75, 24] == begun
        assert (24 * HOUR, "error", t.error) == seen[-1]
        lifted = [event.waited / HOUR for _, _, event in seen if is_end(event)]
        assert [0.25, 0.5, 1, 2, 4, 5, 5, 5, 1.25] == lifted

    def test_a_success_begins_the_series_anew(self) -> None:
        """After a session that ended well the first pause is 15 minutes again."""
        t, gate = marbles(limit()), QuotaGate()
        source = one_after_the_other(t.cold("#"), t.cold("#"), t.cold("(d#)"), t.cold("|"))
        seen = t.record(source.pipe(wait_for_quota(gate=gate)))
        assert [900, 1800, 900] == [event.waited for _, _, event in seen if is_end(event)]

    def test_a_past_reset_is_unknown(self) -> None:
        """A reset in the past is not a reason to retry at once."""
        t = marbles(limit(-5))
        seen = t.record(t.cold("#").pipe(wait_for_quota()), until=1)
        assert [(0.0, "next", waiting(900))] == seen

    def test_the_same_words_again_do_not_mean_tomorrow(self) -> None:
        """`resets 3pm`, repeated after a wait until 3 pm, leads to a delay, not to a day's wait."""
        t, said = Marbles(), "You've hit your limit · resets 3pm (UTC)"

        def met() -> Observable[Any]:
            now = t.scheduler.now
            return rx.throw(QuotaExceeded(said, resets_at=parse_reset(said, now=now, zone=UTC)))

        source = rx.defer(lambda _: met())
        seen = t.record(source.pipe(wait_for_quota()), until=24 * HOUR)
        waited = [event.waited for _, _, event in seen if is_end(event)]
        assert [15 * HOUR + 60, 900, 1800, 3600] == waited[:4]

    def test_two_streams_count_one_limit_once(self) -> None:
        """Streams that meet a limit at the same time share one pause."""
        t, gate = marbles(limit()), QuotaGate()
        one, two = t.cold("#"), t.cold("-#")
        both = rx.merge(one.pipe(wait_for_quota(gate=gate)), two.pipe(wait_for_quota(gate=gate)))
        t.record(both, until=2690)
        t.check_subscriptions(one, "(^!)", "900s (^!)")
        assert [(0, 1), (900, 901)] == two.subscriptions
