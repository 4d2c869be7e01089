"""`within_budget`: the sessions that it ends, when, and the outcomes that are kept."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

from cuggino import events as ev
from cuggino.domain.spending import Budget, Spending
from cuggino.errors import AgentFailed, BudgetExceeded
from cuggino.operators import Flow, emit, flow, forward, until_terminal
from cuggino.operators.supervision import Ledger, retry_session
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


class TestPassing:
    def test_within_the_budget_everything_passes(self) -> None:
        """Spending below the warning share adds no event."""
        t = Marbles(a=A, u=update(30), e=ended(79, 7.9), d=D)
        source = t.cold("a-u-e-(d|)")
        budget = Budget(tokens=100, count_tokens="plain", cost_usd=10.0, duration=100.0)
        t.check(source.pipe(within_budget(budget)), "a-u-e-(d|)")
        t.check_subscriptions(source, "^-----!")

    def test_without_limits_everything_passes(self) -> None:
        """A budget without limits only keeps the ledger."""
        t = Marbles(u=update(10**9), e=ended(10**9, 1e6), error=RuntimeError("x"))
        ledger = Ledger()
        t.check(t.cold("u-e#").pipe(within_budget(UNBOUNDED, ledger=ledger)), "u-e#")
        assert (1e6, 10**9) == (ledger.spent.cost_usd, ledger.spent.total_tokens)

    def test_a_failure_of_the_source_passes(self) -> None:
        """An error of the source is the stream's, when the source is released."""
        t = Marbles(a=A, error=AgentFailed("x", reason="crash"))
        source = t.cold("a-#")
        t.check(source.pipe(within_budget(TOKENS)), "a-#")
        t.check_subscriptions(source, "^-!")


class TestCut:
    def test_tokens_in_flight(self) -> None:
        """The update that overdraws the budget is passed on, then the session is ended."""
        t = Marbles(a=A, u=update(60), v=update(101))
        source = t.cold("a-u-v-a-a|")
        assert [
            (0.0, "next", "a"),
            (2.0, "next", "u"),
            (4.0, "next", "W"),
            (4.0, "next", "v"),
            (4.0, "error", TOKENS_SPENT.format(101)),
        ] == drawn(t, source.pipe(within_budget(TOKENS)))
        t.check_subscriptions(source, "^---!")

    def test_money_in_flight(self) -> None:
        """An agent that reports its cost while it works is cut in flight."""
        t = Marbles(u=update(0, 11.0))
        source = t.cold("-u----")
        expected = "The budget of the run is used up: $11.00 of $10.00 spent"
        assert (1.0, "error", expected) == drawn(t, source.pipe(within_budget(MONEY)))[-1]
        t.check_subscriptions(source, "^!")

    def test_exactly_the_limit_is_within_it(self) -> None:
        """A session that spends exactly the limit continues to its normal end."""
        t = Marbles(u=update(100), e=ended(100), d=D, W=warning("tokens", 100, 100))
        t.check(t.cold("-u-e(d|)").pipe(within_budget(TOKENS)), "-(Wu)-e(d|)")

    def test_the_source_is_released_before_the_error(self) -> None:
        """The agent is gone when the error comes."""
        t = Marbles(u=update(101))
        order: list[str] = []
        source: rx.Observable[Any] = t.cold("u--").pipe(
            ops.finally_action(lambda: order.append("released")),
        )
        failing: Policy = ops.do_action(on_error=lambda _: order.append("failed"))
        t.record(source.pipe(within_budget(TOKENS), failing))
        assert ["released", "failed"] == order

    def test_a_synchronous_source_is_released_before_the_error(self) -> None:
        """So it is when the source overdraws the budget within its own `subscribe`."""
        order: list[str] = []

        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            for tokens in (50, 101, 102, 103):
                observer.on_next(update(tokens))
            return lambda: order.append("released")

        t = Marbles()
        seen: Policy = ops.do_action(
            lambda event: order.append(event.tag), on_error=lambda _: order.append("failed")
        )
        t.record(rx.create(subscribe).pipe(within_budget(TOKENS), seen))
        assert ["UsageUpdate", "BudgetWarning", "UsageUpdate", "released", "failed"] == order

    @pytest.mark.parametrize("ending", ["on_completed", "on_error"])
    def test_a_source_that_ends_in_its_subscription_is_released_first(self, ending: str) -> None:
        """A source that ends within `subscribe` is released before its end is passed on."""
        order: list[str] = []

        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            getattr(observer, ending)(*[RuntimeError("x")] * (ending == "on_error"))
            return lambda: order.append("released")

        rx.create(subscribe).pipe(within_budget(TOKENS)).subscribe(
            on_error=lambda _: order.append("ended"), on_completed=lambda: order.append("ended")
        )
        assert ["released", "ended"] == order

    def test_a_generator_is_closed_before_the_error(self) -> None:
        """A loop that is cut while its body runs has left its `finally` when the error comes."""
        order: list[str] = []

        def story() -> Flow[None]:
            try:
                yield from forward(rx.of(ended(100)))
                yield from emit(ev.ImplementingStart(iteration=1))
                order.append("went on")
            finally:
                order.append("closed")

        t = Marbles()
        t.record(
            flow(story).pipe(
                within_budget(TOKENS), ops.do_action(on_error=lambda _: order.append("failed"))
            )
        )
        assert ["closed", "failed"] == order


class TestOutcome:
    def test_a_session_that_ended_keeps_its_outcome(self) -> None:
        """A session that overdraws the budget with its last event is not cut: its work counts."""
        t = Marbles(a=A, e=ended(500), d=D, W=warning("tokens", 500, 100))
        ledger = Ledger()
        stage = t.cold("-e--(d|)").pipe(within_budget(TOKENS, ledger=ledger))
        t.check(stage, "-(We)--(d|)")
        late = t.cold("a|")
        assert [(0.0, "error", TOKENS_SPENT.format(500))] == drawn(
            t, late.pipe(within_budget(TOKENS, ledger=ledger))
        )
        t.check_subscriptions(late)

    def test_a_terminal_marker_outlives_a_cut_in_its_linger(self) -> None:
        """Before `until_terminal`, a cut after the marker ends the wait; the marker still comes."""
        t = Marbles(d=D, u=update(101))
        source = t.cold("-d-u---")
        stream = source.pipe(
            within_budget(TOKENS), until_terminal(ev.is_llm_terminal_marker_event, linger=10.0)
        )
        t.check(stream, "---(d|)")
        t.check_subscriptions(source, "^--!")

    def test_a_terminal_marker_after_the_session_comes_through(self) -> None:
        """Around `until_terminal`, the marker that follows `SessionEnded` comes last."""
        t = Marbles(d=D, e=ended(101), W=warning("tokens", 101, 100))
        ending = until_terminal(
            ev.is_llm_terminal_marker_event,
            linger=10.0,
            settle=lambda event: isinstance(event, ev.SessionEnded),
        )
        t.check(t.cold("-d-(e|)").pipe(ending, within_budget(TOKENS)), "---(Wed|)")

    def test_the_agents_own_limit_is_the_runs(self) -> None:
        """An agent that ends at the limit it was given fails with the budget of the run."""
        own = BudgetExceeded("Reached maximum budget ($2)", hint="more")
        t = Marbles(e=ended(0, 2.01), error=own)
        ledger = Ledger(Spending(8.0))
        seen = t.record(t.cold("-e#").pipe(within_budget(MONEY, ledger=ledger)))
        error = seen[-1][2]
        assert "The budget of the run is used up: $10.01 of $10.00 spent" == error.message
        assert own is error.__cause__

    def test_another_limit_of_the_agent_stays_its_own(self) -> None:
        """An agent that met a limit while the run's budget lasts fails with its own words."""
        own = BudgetExceeded("Reached maximum budget ($1)")
        t = Marbles(e=ended(0, 1.0), error=own)
        t.check(t.cold("-e#").pipe(within_budget(MONEY)), "-e#")


class TestNextStart:
    @pytest.mark.parametrize("spent", [100, 101])
    def test_at_subscription(self, spent: int) -> None:
        """A source is not subscribed when the limit is reached exactly, or passed."""
        t = Marbles(a=A)
        source = t.cold("a|")
        ledger = Ledger(Spending.of([ended(spent)]))
        assert [(0.0, "error", TOKENS_SPENT.format(spent))] == drawn(
            t, source.pipe(within_budget(TOKENS, ledger=ledger))
        )
        t.check_subscriptions(source)

    def test_below_the_limit(self) -> None:
        """A source starts as long as some of the budget is left."""
        t = Marbles(a=A)
        ledger = Ledger(Spending.of([ended(99)]))
        t.check(t.cold("a|").pipe(within_budget(TOKENS, ledger=ledger, warn_at=1.0)), "a|")

    @pytest.mark.parametrize(
        "begin",
        [
            A,
            update(1),
            ev.ImplementingStart(iteration=1),
            ev.AgentRetry(reason="crash", message="", attempt=1, max_retries=3, retry_in=5.0),
        ],
        ids=lambda event: event.tag,
    )
    def test_within_a_subscription(self, begin: ev.Event) -> None:
        """In a stream of several sessions the first sign of a further one ends it."""
        commit = ev.CommitPerformed(iteration=1, commit_hash="a1", message="x")
        t = Marbles(e=ended(100), d=D, c=commit, b=begin)
        source = t.cold("e-d-c-b-b|")
        seen = drawn(t, source.pipe(within_budget(TOKENS)))
        assert [(2.0, "next", "d"), (4.0, "next", "c"), (6.0, "next", "b")] == seen[2:5]
        assert (6.0, "error") == seen[5][:2]
        t.check_subscriptions(source, "^-----!")

    def test_a_retry_is_refused(self) -> None:
        """The retry is announced, and refused by the ledger when its pause is over."""
        t = Marbles(e=ended(100), error=AgentFailed("x", reason="crash"))
        ledger = Ledger()
        source = t.cold("-e#")
        stream = source.pipe(
            within_budget(TOKENS, ledger=ledger), retry_session(random=lambda: 0.5)
        )
        assert (7.0, "error", TOKENS_SPENT.format(100)) == drawn(t, stream)[-1]
        t.check_subscriptions(source, "^-!")


class TestLooks:
    """Functions that see the events before these are passed on."""

    def test_what_a_look_returns_precedes_the_event(self) -> None:
        """It sees every event, and need not return anything."""
        t = Marbles(a=A, u=update(30), n=ev.Note(content="n"), d=D, b=A)
        seen: list[ev.Event] = []

        def look(event: ev.Event) -> list[ev.Event] | None:
            seen.append(event)
            match event:
                case ev.UsageUpdate():
                    return [event, A]
                case ev.Done():
                    return [A]
                case _:
                    return None

        stream = t.cold("a-u-n-d|").pipe(within_budget(UNBOUNDED, looks=[look]))
        t.check(stream, "a-(uau)-n-(bd)|")
        assert [A, t.events["u"], t.events["n"], D] == seen

    def test_several_looks_are_called_in_order(self) -> None:
        """The events that the looks return come in the same order."""
        t = Marbles(a=A, d=D, n=ev.Note(content="n"))
        looks = [lambda _event: [A], lambda _event: [t.events["n"]]]
        t.check(t.cold("d|").pipe(within_budget(UNBOUNDED, looks=looks)), "(and)|")

    def test_its_exception_is_the_error(self) -> None:
        """The source is released first."""

        def fail(_event: ev.Event) -> list[ev.Event]:
            raise ValueError("no")

        t = Marbles(a=A, error=ValueError("no"))
        source = t.cold("a-a|")
        t.check(source.pipe(within_budget(UNBOUNDED, looks=[fail])), "#")
        t.check_subscriptions(source, "(^!)")

    def test_a_subscriber_that_leaves_with_what_precedes(self) -> None:
        """After a disposal the event itself is not emitted."""
        t = Marbles(a=A, d=D)
        stream = t.cold("d-a|").pipe(
            within_budget(UNBOUNDED, looks=[lambda event: [A] if event is D else []]), ops.take(1)
        )
        t.check(stream, "(a|)")
