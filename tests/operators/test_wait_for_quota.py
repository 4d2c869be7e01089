"""`wait_for_quota`, `QuotaGate`, `within_quota` and `repetition_limit`, in virtual time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler.scheduler import Scheduler

from cuggino.domain import Overage, QuotaPlan
from cuggino.errors import AgentFailed, LoopError, QuotaExceeded
from cuggino.events import (
    AgentMessage,
    AgentNudged,
    AgentReplaced,
    QuotaLifted,
    QuotaUsed,
    RateLimited,
    SessionEnded,
    ToolCall,
    ToolResult,
    Usage,
    UsageUpdate,
)
from cuggino.operators.supervision import (
    QuotaGate,
    QuotaWaits,
    Remedies,
    repetition_limit,
    wait_for_quota,
    within_quota,
)
from cuggino.testing import Marbles, VirtualClock
from tests.operators.policies import (
    DONE,
    HI,
    HOUR,
    check_stalled,
    is_end,
    limit,
    limited_marbles,
    one_after_the_other,
    pending,
    second,
    waiting,
)
from tests.vectors import rows


class TestAWait:
    def test_counts_down_and_goes_on(self) -> None:
        """It waits until the reset and the margin, ticks each minute, then subscribes again."""
        t = limited_marbles(
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

    @pytest.mark.parametrize(
        ("error", "options", "diagram"),
        [
            (None, {}, "-a-d|"),
            (AgentFailed("no", reason="auth"), {}, "-a#"),
            *((limit(resets), {"longest": 898}, "a#") for resets in (None, 900, HOUR)),
            (limit(8 * 24 * HOUR), {}, "a#"),
            (limit(HOUR + 2), {"longest": HOUR}, "a#"),
        ],
    )
    def test_what_passes(self, error: Any, options: Any, diagram: str) -> None:
        """Events, the end, and what is no limit or one too long to wait for, without a word."""
        t = limited_marbles(error)
        source = t.cold(diagram)
        t.check(source.pipe(wait_for_quota(**options)), diagram)
        assert 1 == len(source.subscriptions)

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

    def test_again_that_fails(self) -> None:
        """An exception of `again` is the stream's error."""
        broken = RuntimeError("broken")

        def again(_: QuotaExceeded) -> Observable[Any]:
            raise broken

        t = limited_marbles(limit(1))
        seen = t.record(t.cold("#").pipe(wait_for_quota(margin=0, again=again)))
        assert (1.0, "error", broken) == seen[-1]

    def test_waits_as_often_as_needed(self) -> None:
        """A source that meets a limit after each wait is waited for each time, in flat stack."""
        t = Marbles()
        begun: list[float] = []

        def source() -> Observable[Any]:
            begun.append(t.now)
            return rx.throw(limit(t.now + 10)) if len(begun) < 600 else rx.just(DONE)

        stream = rx.defer(lambda _: source()).pipe(wait_for_quota(margin=0, max_waits=None))
        seen = t.record(stream)
        assert [10.0 * n for n in range(600)] == begun
        assert [DONE, None] == [value for _, _, value in seen[-2:]]

    def test_the_clock_is_looked_at_at_every_tick(self) -> None:
        """After a suspension the wait ends at the next tick that is past the reset."""
        t = limited_marbles(limit(HOUR))
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
        t = limited_marbles(limit(300))
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
        t = limited_marbles(limit())
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
        t, gate = limited_marbles(limit()), QuotaGate()
        source = one_after_the_other(t.cold("#"), t.cold("#"), t.cold("(d#)"), t.cold("|"))
        seen = t.record(source.pipe(wait_for_quota(gate=gate)))
        assert [900, 1800, 900] == [event.waited for _, _, event in seen if is_end(event)]

    def test_a_past_reset_is_unknown(self) -> None:
        """A reset in the past is not a reason to retry at once."""
        t = limited_marbles(limit(-5))
        seen = t.record(t.cold("#").pipe(wait_for_quota()), until=1)
        assert [(0.0, "next", waiting(900))] == seen

    def test_two_streams_count_one_limit_once(self) -> None:
        """Streams that meet a limit at the same time share one pause."""
        t, gate = limited_marbles(limit()), QuotaGate()
        one, two = t.cold("#"), t.cold("-#")
        both = rx.merge(one.pipe(wait_for_quota(gate=gate)), two.pipe(wait_for_quota(gate=gate)))
        t.record(both, until=2690)
        t.check_subscriptions(one, "(^!)", "900s (^!)")
        assert [(0, 1), (900, 901)] == two.subscriptions


class TestWhatPasses:
    def test_a_limit_without_waiting(self) -> None:
        """Without `wait` the error passes on at once, and the next stream fails unsubscribed."""
        t, gate = limited_marbles(limit(HOUR)), QuotaGate()
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
        t, gate = limited_marbles(limit(10)), QuotaGate()
        t.record(t.cold("#").pipe(wait_for_quota(gate=gate, wait=False)), until=10)
        t.check(
            rx.defer(lambda _: rx.just(HI)).pipe(
                wait_for_quota(gate=gate, wait=False), ops.map(lambda _: HI)
            ),
            "(a|)",
        )

    def test_a_closed_gate_too_far_away(self) -> None:
        """A stream that begins at such a limit fails without being subscribed."""
        t, gate = limited_marbles(limit()), QuotaGate()
        gate.met(now=second(0), resets_at=second(2 * HOUR))
        source = t.cold("a|")
        ((_, kind, error),) = t.record(source.pipe(wait_for_quota(gate=gate, longest=HOUR)))
        assert ("error", second(2 * HOUR)) == (kind, error.resets_at)
        assert [] == source.subscriptions

    def test_what_the_subscriber_raises_is_not_a_limit(self) -> None:
        """Its exception closes no gate, even if it looks like a limit of the source."""
        t, gate = limited_marbles(limit()), QuotaGate()
        errors: list[Exception] = []

        def refuse(_: Any) -> None:
            raise limit(1e10)

        def at_once(observer: abc.ObserverBase[Any], _: Any = None) -> abc.DisposableBase:
            observer.on_next(HI)
            return Disposable()

        for source in (t.cold("-a"), Observable(at_once)):
            source.pipe(wait_for_quota(gate=gate)).subscribe(
                refuse, errors.append, scheduler=t.scheduler
            )
        t.scheduler.advance_to(10.0)
        assert [QuotaExceeded, QuotaExceeded] == [type(error) for error in errors]
        assert 0 == gate.remaining(second(1))

    def test_ticks_need_a_length(self) -> None:
        """`every` must be positive."""
        with pytest.raises(ValueError, match="every"):
            wait_for_quota(every=0)


class TestDisposal:
    @pytest.mark.parametrize("when", [1.0, 60.0, 90.0])
    def test_during_a_wait(self, when: float) -> None:
        """Nothing is emitted or subscribed after disposal, and no timer stays armed."""
        t = limited_marbles(limit(300))
        source = t.cold("#")
        seen = t.record(source.pipe(wait_for_quota()), dispose_at=when)
        assert {True} == {at <= when for at, *_ in seen}
        t.check_subscriptions(source, "(^!)")
        assert 0 == pending(t)

    def test_with_the_last_word(self) -> None:
        """A subscriber that leaves at `QuotaLifted` gets no new session."""
        t = limited_marbles(limit(30))
        source = t.cold("#")
        last = ops.take_while(lambda event: not is_end(event), inclusive=True)
        seen = t.record(source.pipe(wait_for_quota(), last))
        assert [(90.0, "next"), (90.0, "completed")] == [entry[:2] for entry in seen[-2:]]
        t.check_subscriptions(source, "(^!)")

    def test_of_the_running_source(self) -> None:
        """Disposal ends the source, before and after a wait."""
        t = limited_marbles(limit(10))
        before, after = t.cold("-a-#"), t.cold("----a")
        source = one_after_the_other(before, after)
        t.record(source.pipe(wait_for_quota(margin=0)), dispose_at=12)
        t.check_subscriptions(before, "^--!")
        t.check_subscriptions(after, "10s ^-!")


class TestASharedGate:
    def test_a_stream_waits_for_what_another_met(self) -> None:
        """An agent that is to begin during the wait of another waits with it."""
        t, gate = limited_marbles(limit(100)), QuotaGate()
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
        t = limited_marbles(limit(), x=waiting(30, 100), l=QuotaLifted(waited=30))
        t.record(rx.empty(), until=130)
        t.check(t.cold("d|").pipe(wait_for_quota(gate=gate)), "x 29s (ld)|", until=100)

    @pytest.mark.parametrize(
        ("status", "overage", "left"),
        [("rejected", False, 90), ("rejected", True, 0), ("allowed_warning", False, 0)],
    )
    def test_a_rejected_request_closes_it_at_once(
        self, status: Any, *, overage: bool, left: float
    ) -> None:
        """It does although the session continues; a warning does not, nor does paid overage."""
        gate = QuotaGate()
        told = RateLimited(status=status, resets_at=second(100), limit="five_hour", overage=overage)
        t = limited_marbles(limit(), r=told)
        t.check(t.cold("-r-a").pipe(wait_for_quota(gate=gate)), "-r-a", until=10)
        assert left == gate.remaining(second(10))
        if left:
            assert ("five_hour", second(100)) == (gate.message, gate.resets_at)

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
        t = limited_marbles(limit(), r=rejected, x=waiting(59, 60, ""), l=QuotaLifted(waited=59))
        source = one_after_the_other(t.cold("r#"), t.cold("|"))
        t.check(source.pipe(wait_for_quota(margin=0)), "rx 58s (l|)")

    @pytest.mark.parametrize(
        ("diagram", "opened"),
        [("rd", True), ("r|", True), ("r(f|)", False), ("r(i|)", False), ("rf", False)],
    )
    def test_a_session_that_ends_well_opens_it(self, diagram: str, opened: bool) -> None:
        """A completed session opens the gate, one that failed or was interrupted does not."""
        gate = QuotaGate()
        t = limited_marbles(
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
            (lambda gate: gate.met(now=second(70), resets_at=second(190)), [0, 60, 120, 180, 190]),
        ):
            t, gate = limited_marbles(limit(150)), QuotaGate()
            source = one_after_the_other(t.cold("#"), t.cold("|"))
            t.scheduler.schedule_absolute(70.0, lambda *_, do=change, on=gate: do(on))
            seen = t.record(source.pipe(wait_for_quota(gate=gate, margin=0)))
            assert [*expected, expected[-1]] == [when for when, *_ in seen]

    def test_it_may_be_extended_too_far(self) -> None:
        """When another stream meets a limit beyond `longest`, the wait ends with the error."""
        t, gate = limited_marbles(limit(150)), QuotaGate()

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


FULL = QuotaUsed(window="five_hour", used=1, resets_at=second(100))
USAGE = Usage(output_tokens=7)
WINDOWS: dict[str, Any] = {
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


def windows_drawn() -> Marbles:
    t = Marbles(**WINDOWS)
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
def test_the_windows_of_one_session(source: str, overage: Overage, expected: str) -> None:
    """A session reports windows, and ends before more is paid for."""
    t = windows_drawn()
    plan = QuotaPlan(overage=overage)
    t.check(t.cold(source).pipe(within_quota(plan, agent="A")), expected)


def test_overage_releases_the_source_first() -> None:
    """When the end of the session is emitted, its program has ended."""
    t = windows_drawn()
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
    t = windows_drawn()
    plan = QuotaPlan(reserve=0.2)
    plan.windows.add(FULL.model_copy(update={"agent": "A"}))
    t.scheduler.advance_to(start)
    t.check(t.cold("-a|").pipe(within_quota(plan, agent="A", begins=begins)), expected)


def test_the_windows_of_another_account() -> None:
    """The windows of one agent do not hold back another."""
    t = windows_drawn()
    plan = QuotaPlan(reserve=0.2)
    plan.windows.add(FULL.model_copy(update={"agent": "A"}))
    t.check(t.cold("-a|").pipe(within_quota(plan, agent="B")), "-a|")


CALL, RESULT = ToolCall(name="Bash", input="ls", id="1"), ToolResult(name="1", output="a")


def limited(times: int | None, **options: Any) -> Any:
    """Return the operator, untyped to fit a `pipe`; these tests are not about types."""
    return repetition_limit(times, **options)


def calls_drawn() -> Marbles:
    return Marbles(
        a=AgentMessage(text="a"),
        C=CALL,
        c=RESULT,
        d=ToolResult(name="1", output="another"),
        N=AgentNudged(tool="Bash", repeated=2),
        R=AgentReplaced(tool="Bash", repeated=2),
    )


def test_the_steps_against_repetition() -> None:
    """A nudge, a fresh agent, and the error, each after the same number of calls."""
    t = calls_drawn()
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
    t = calls_drawn()
    t.check(t.cold("CcCdCcCdaCCCCC|").pipe(limited(3)), "CcCdCcCdaCCCCC|")
    t.check(t.cold("CcCcCcCc|").pipe(limited(None)), "CcCcCcCc|")


def test_repetition_shares_the_remedies() -> None:
    """An agent that was nudged for silence is replaced at once."""
    t = calls_drawn()
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


def test_repeated_calls_that_come_at_once() -> None:
    """They are counted one by one, and the agent is replaced when all have been passed on."""
    t = calls_drawn()
    fresh = t.cold("a|")
    source = t.cold("(CcCcCcCcCc)-")
    t.check(source.pipe(limited(2, replace=lambda _: fresh)), "(CcCcCcCcCcRa)|")


def test_a_repetition_that_ends_in_time() -> None:
    """An end at the same instant as the last call counts."""
    t = calls_drawn()
    t.check(t.cold("CcC(c|)").pipe(limited(2)), "CcC(c|)")


def test_a_repetition_limit_of_one() -> None:
    """A single call repeats nothing."""
    with pytest.raises(ValueError, match="at least 2"):
        repetition_limit(1)
