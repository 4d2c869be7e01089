"""`within_budget`: the ledger that streams share, warnings, time, and the remaining budget."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

from cuggino import events as ev
from cuggino.domain.spending import Budget, Spending
from cuggino.errors import AgentFailed, BudgetExceeded, StorageError
from cuggino.operators.merge_now import merge_now
from cuggino.operators.supervision import Ledger
from cuggino.testing import Marbles
from tests.operators.budgets import (
    MONEY,
    TOKENS,
    TOKENS_SPENT,
    UNBOUNDED,
    A,
    Policy,
    drawn,
    ended,
    update,
    warning,
    within_budget,
)

D = ev.Done(content="d")


class TestLedger:
    def test_two_streams_draw_on_one_ledger(self) -> None:
        """Agents side by side are counted together; the second one's update ends both."""
        t = Marbles(u=update(60), v=update(41))
        ledger = Ledger()
        loop, audit = t.cold("u------"), t.cold("---v---")
        both = merge_now(
            loop.pipe(within_budget(TOKENS, ledger=ledger)),
            audit.pipe(within_budget(TOKENS, ledger=ledger)),
        )
        assert [
            (0.0, "next", "u"),
            (3.0, "next", "W"),
            (3.0, "next", "v"),
            (3.0, "error", TOKENS_SPENT.format(101)),
        ] == drawn(t, both)
        t.check_subscriptions(loop, "^--!")
        t.check_subscriptions(audit, "^--!")

    def test_a_stream_is_cut_by_the_spending_of_another(self) -> None:
        """A running session is ended when another stream overdraws, whose failure is caught."""
        t = Marbles(a=A, u=update(50), v=update(51))
        ledger = Ledger()
        loop, audit = t.cold("u--a--a--"), t.cold("----v---")
        quiet = audit.pipe(within_budget(TOKENS, ledger=ledger), ops.catch(rx.empty()))
        both = merge_now(loop.pipe(within_budget(TOKENS, ledger=ledger)), quiet)
        assert (4.0, "error", TOKENS_SPENT.format(101)) == drawn(t, both)[-1]
        t.check_subscriptions(loop, "^---!")

    def test_an_ended_session_is_not_cut_by_another(self) -> None:
        """A session that has ended keeps its outcome, however much the others spend."""
        t = Marbles(e=ended(50), d=D, v=update(51))
        ledger = Ledger()
        loop, audit = t.cold("e-----(d|)"), t.cold("---v---")
        quiet = audit.pipe(within_budget(TOKENS, ledger=ledger), ops.ignore_elements())
        both = merge_now(
            loop.pipe(within_budget(TOKENS, ledger=ledger)),
            quiet.pipe(ops.catch(rx.empty())),
        )
        assert [(0.0, "next", "e"), (6.0, "next", "d"), (6.0, "completed", "")] == drawn(t, both)

    def test_each_stream_has_its_running_session(self) -> None:
        """The updates of two streams are totals of two sessions, not of one."""
        t = Marbles(u=update(10), v=update(20), w=update(15))
        ledger = Ledger()
        streams = [t.cold("u--v-|"), t.cold("-w----|")]
        t.record(merge_now(*(s.pipe(within_budget(UNBOUNDED, ledger=ledger)) for s in streams)))
        assert (35, 2) == (ledger.spent.total_tokens, ledger.spent.sessions)

    def test_a_session_that_is_cut_stays_counted(self) -> None:
        """The reported usage of a disposed or failed session stays in the ledger."""
        ledger = Ledger()
        t = Marbles(u=update(40), error=AgentFailed("x", reason="crash"))
        policy = within_budget(UNBOUNDED, ledger=ledger)
        t.record(t.cold("u----").pipe(policy), until=5.0, dispose_at=2.0)
        t.record(t.cold("u-#").pipe(policy), until=10.0)
        assert (80, 2) == (ledger.spent.total_tokens, ledger.spent.sessions)

    def test_a_resumed_run_is_seeded(self) -> None:
        """Spending and time of earlier processes count; `RunResumed` itself does not, again."""
        resumed = ev.RunResumed(
            run_id="r", stages=2, cost_usd=9.0, usage=ev.Usage(output_tokens=60), duration=40.0
        )
        ledger = Ledger(Spending.of([resumed]), elapsed=resumed.duration)
        t = Marbles(r=resumed, u=update(39))
        stream = t.cold("r-u---").pipe(within_budget(TOKENS, ledger=ledger, warn_at=1.0))
        t.check(stream, "r-u", until=3.0)
        assert (99, 9.0) == (ledger.spent.total_tokens, ledger.spent.cost_usd)
        assert 43.0 == ledger.elapsed(t.scheduler.now)

    def test_without_a_ledger_each_subscription_has_its_own(self) -> None:
        """A second subscription without a ledger begins with the whole budget."""
        t = Marbles(u=update(70), e=ended(70))
        stage = t.cold("(ue|)").pipe(within_budget(TOKENS))
        t.check(rx.concat(stage, stage), "(ueue|)")

    def test_remaining_money(self) -> None:
        """The remaining money is never negative, and None without a limit."""
        ledger = Ledger(Spending(7.5))
        assert 2.5 == ledger.remaining_usd(MONEY)
        assert 0.0 == ledger.remaining_usd(Budget(cost_usd=5.0))
        assert ledger.remaining_usd(TOKENS) is None
        assert 10.0 == Ledger().remaining_usd(MONEY)

    def test_the_time_begins_once(self) -> None:
        """The first start counts; before it only the earlier processes' time is known."""
        noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
        ledger = Ledger(elapsed=5.0)
        assert 5.0 == ledger.elapsed(noon)
        ledger.start(noon)
        ledger.start(noon + timedelta(seconds=30))
        assert 65.0 == ledger.elapsed(noon + timedelta(minutes=1))


class TestWarnings:
    def test_once_for_each_kind_and_ledger(self) -> None:
        """Each budget is warned of once, by whichever stream comes near it first."""
        t = Marbles(
            u=update(80, 1.0),
            v=update(90, 8.0),
            e=ended(90, 9.0),
            T=warning("tokens", 80, 100),
            C=warning("cost", 8.0, 10.0),
        )
        policy = within_budget(
            Budget(tokens=100, count_tokens="plain", cost_usd=10.0), ledger=Ledger()
        )
        stage = t.cold("u-v-(e|)").pipe(policy)
        nothing = t.cold("-|").pipe(policy)
        t.check(rx.concat(stage, nothing), "(Tu)-(Cv)-e|")

    def test_near_the_limit_from_the_start(self) -> None:
        """A run resumed near its limit warns at once, before the source's first event."""
        t = Marbles(a=A, W=warning("tokens", 85, 100))
        ledger = Ledger(Spending.of([ended(85)]))
        t.check(t.cold("a|").pipe(within_budget(TOKENS, ledger=ledger)), "(Wa)|")

    def test_the_share_can_be_chosen(self) -> None:
        """`warn_at` is the share of the limit at which is warned."""
        t = Marbles(u=update(49), v=update(50), W=warning("tokens", 50, 100))
        t.check(t.cold("u-v|").pipe(within_budget(TOKENS, warn_at=0.5)), "u-(Wv)|")


class TestDuration:
    def test_warned_and_cut_by_the_scheduler(self) -> None:
        """A silent source is warned about at 80 % of the time and ended at its end."""
        t = Marbles(a=A)
        source = t.cold("a--")
        seen = t.record(source.pipe(within_budget(Budget(duration=50.0))))
        assert [
            (0.0, "next", A),
            (40.0, "next", warning("duration", 40.0, 50.0)),
            (50.0, "error", seen[-1][2]),
        ] == seen
        assert "The time budget of the run is used up: 50 s of 50 s spent" == str(seen[-1][2])
        t.check_subscriptions(source, "^ 49s !")

    def test_warned_at_a_time_that_no_clock_shows(self) -> None:
        """The timer warns although the clock, in microseconds, is a little before the share."""
        t = Marbles(a=A)
        budget = Budget(duration=0.12345678)
        seen = t.record(t.cold("a-").pipe(within_budget(budget)))
        assert [ev.AgentMessage, ev.BudgetWarning, BudgetExceeded] == [
            type(event) for *_, event in seen
        ]

    def test_the_time_between_the_stages_counts(self) -> None:
        """The time runs from the ledger's start through all stages and pauses."""
        t = Marbles(a=A)
        policy = within_budget(Budget(duration=50.0), ledger=Ledger(), warn_at=1.0)
        one, two = t.cold("20s |").pipe(policy), t.cold("a---")
        seen = drawn(
            t, rx.concat(one, rx.timer(20.0).pipe(ops.ignore_elements()), two.pipe(policy))
        )
        assert [(40.0, "next", "a"), (50.0, "error")] == [seen[0], seen[1][:2]]
        t.check_subscriptions(two, "40s ^ 9s !")

    def test_a_resumed_run_has_what_is_left(self) -> None:
        """The seconds of earlier processes are gone already."""
        t = Marbles()
        policy = within_budget(Budget(duration=50.0), ledger=Ledger(elapsed=45.0))
        seen = t.record(t.cold("---").pipe(policy))
        assert (0.0, "next", warning("duration", 45.0, 50.0)) == seen[0]
        assert (5.0, "error") == seen[1][:2]

    def test_no_time_left(self) -> None:
        """When the time is over nothing is started."""
        t = Marbles(a=A)
        source = t.cold("a|")
        policy = within_budget(Budget(duration=50.0), ledger=Ledger(elapsed=50.0))
        assert [(0.0, "error")] == [entry[:2] for entry in t.record(source.pipe(policy))]
        t.check_subscriptions(source)

    def test_one_warning_for_two_streams(self) -> None:
        """Streams side by side are warned once, and all ended at the limit."""
        t = Marbles()
        policy = within_budget(Budget(duration=50.0), ledger=Ledger())
        one, two = t.cold("---"), t.cold("---")
        seen = t.record(merge_now(one.pipe(policy), two.pipe(policy)))
        assert [(40.0, "next"), (50.0, "error")] == [entry[:2] for entry in seen]
        t.check_subscriptions(one, "^ 49s !")
        t.check_subscriptions(two, "^ 49s !")


class TestRelease:
    @pytest.mark.parametrize("how", ["disposed", "completed", "failed", "cut"])
    def test_nothing_is_left(self, how: str) -> None:
        """However the stream ends, no timer and no subscription is left."""
        t = Marbles(u=update(101))
        diagrams = {"disposed": "------", "completed": "--|", "failed": "--#", "cut": "--u---"}
        source = t.cold(diagrams[how])
        budget = Budget(tokens=100, count_tokens="plain", duration=1000.0)
        dispose_at = 2.0 if how == "disposed" else None
        ledger = Ledger()
        stream = source.pipe(within_budget(budget, ledger=ledger))
        t.record(stream, until=2.5, dispose_at=dispose_at)
        t.check_subscriptions(source, "^-!")
        assert 0 == pending(t)
        assert [] == ledger._accounts

    def test_disposal_right_after_the_cut(self) -> None:
        """A subscriber that leaves between the cut and the error hears no more of it."""
        t = Marbles(u=update(101))
        source = t.cold("-u--")
        seen: list[Any] = []
        stream = source.pipe(within_budget(TOKENS, warn_at=2.0))
        leaving = stream.subscribe(seen.append, seen.append, scheduler=t.scheduler)
        due: list[int] = []

        def leave(*_: Any) -> None:
            due.append(pending(t))
            leaving.dispose()
            due.append(pending(t))

        t.scheduler.schedule_absolute(1.0, leave)
        t.scheduler.advance_to(5.0)
        assert [t.events["u"]] == seen
        assert [1, 0] == due
        t.check_subscriptions(source, "^!")

    def test_disposal_by_the_event_that_overdraws(self) -> None:
        """A subscriber that leaves at the last event within the budget hears of no cut."""
        t = Marbles(u=update(101))
        source = t.cold("-u--")
        first: Policy = ops.take(1)
        t.check(source.pipe(within_budget(TOKENS, warn_at=2.0), first), "-(u|)")
        t.check_subscriptions(source, "^!")

    def test_a_failure_of_the_subscriber_is_no_failure_of_the_agent(self) -> None:
        """An exception thrown downstream releases the agent and reaches the subscriber's error."""
        t = Marbles(a=A)
        source = t.cold("-a-a|")
        failure = StorageError("write", "disk full")
        errors: list[Exception] = []

        def fail(_: Any) -> None:
            raise failure

        source.pipe(within_budget(TOKENS)).subscribe(fail, errors.append, scheduler=t.scheduler)
        t.scheduler.advance_to(10.0)
        assert [failure] == errors
        t.check_subscriptions(source, "^!")

    @pytest.mark.parametrize(
        ("before", "event"),
        [(85, A), (0, update(85, 8.5))],
        ids=["before the source", "before an event"],
    )
    def test_a_subscriber_that_fails_at_the_warning(self, before: int, event: ev.Event) -> None:
        """Its exception is the only thing that it receives after the warning."""
        t = Marbles(a=event)
        source = t.cold("a-a|")
        received: list[Any] = []
        errors: list[Exception] = []
        failure = StorageError("write", "disk full")

        def fail(value: Any) -> None:
            received.append(value)
            raise failure

        budget = Budget(tokens=100, count_tokens="plain", cost_usd=10.0)
        ledger = Ledger(Spending.of([ended(before, before / 10)]))
        limited: Policy = within_budget(budget, ledger=ledger)
        source.pipe(limited).subscribe(fail, errors.append, scheduler=t.scheduler)
        t.scheduler.advance_to(10.0)
        assert [ev.BudgetWarning] == [type(value) for value in received]
        assert [failure] == errors
        assert ([] if before else [(0, 0)]) == source.subscriptions

    def test_a_subscriber_that_fails_at_a_start_beyond_the_budget(self) -> None:
        """Its exception is the error, and no cut follows it."""
        t = Marbles(
            e=ended(100),
            r=ev.AgentRetry(reason="crash", message="x", attempt=1, max_retries=3, retry_in=1.0),
        )
        errors: list[Exception] = []
        failure = StorageError("write", "disk full")

        def fail(value: Any) -> None:
            if isinstance(value, ev.AgentRetry):
                raise failure

        t.cold("e-r-|").pipe(within_budget(TOKENS)).subscribe(
            fail, errors.append, scheduler=t.scheduler
        )
        t.scheduler.advance_to(10.0)
        assert [failure] == errors

    def test_what_is_no_event_passes(self) -> None:
        """Any stream can be limited in time: values that are no events are passed on."""
        t = Marbles(a="text", b=1)
        t.check(t.cold("a-b-|").pipe(within_budget(Budget(duration=60.0))), "a-b-|")


def pending(t: Marbles) -> int:
    """Timers that are still due."""
    return sum(not item[0].is_cancelled() for item in t.scheduler._queue.items)
