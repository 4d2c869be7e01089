"""`within_budget`: the sessions that it ends, and the ledger that streams share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

from cuggino import events as ev
from cuggino.domain.spending import Budget, Spending
from cuggino.errors import AgentFailed, BudgetExceeded, StorageError
from cuggino.operators import Flow, emit, flow, forward, until_terminal
from cuggino.operators.merge_now import merge_now
from cuggino.operators.supervision import (
    Ledger,
    within_budget as typed_within_budget,
)
from cuggino.testing import Marbles
from tests.operators.policies import pending

A = ev.AgentMessage(text="a")
TOKENS = Budget(tokens=100, count_tokens="plain")
MONEY = Budget(cost_usd=10.0)
UNBOUNDED = Budget()

Policy = Callable[[rx.Observable[Any]], rx.Observable[Any]]


def within_budget(budget: Budget, **options: Any) -> Policy:
    """The operator, for streams of anything."""
    return typed_within_budget(budget, **options)


def update(tokens: int, cost: float | None = None) -> ev.UsageUpdate:
    return ev.UsageUpdate(usage=ev.Usage(output_tokens=tokens), cost_usd=cost)


def ended(tokens: int = 0, cost: float | None = None) -> ev.SessionEnded:
    return ev.SessionEnded(outcome="completed", cost_usd=cost, usage=ev.Usage(output_tokens=tokens))


def warning(kind: ev.BudgetKind, spent: float, limit: float) -> ev.BudgetWarning:
    return ev.BudgetWarning(budget=kind, spent=spent, limit=limit)


def drawn(t: Marbles, stream: rx.Observable[Any], **options: Any) -> list[tuple[float, str, str]]:
    """Record the stream: each value as its letter in the drawing, each error as its message."""
    marks = {id(event): mark for mark, event in t.events.items()}
    return [
        (when, kind, marks.get(id(value), "W") if kind == "next" else str(value) if value else "")
        for when, kind, value in t.record(stream, **options)
    ]


TOKENS_SPENT = "The token budget of the run is used up: {} of 100 tokens spent"
D = ev.Done(content="d")
FAR = Budget(tokens=100, count_tokens="plain", cost_usd=10.0, duration=100.0)
DRAWN: dict[str, Any] = {
    "a": A,
    "d": D,
    "u": update(30),
    "v": update(100),
    "e": ended(79, 7.9),
    "f": ended(100),
    "g": ended(0, 1.0),
    "h": update(49),
    "i": update(50),
    "x": "text",
}


@pytest.mark.parametrize(
    ("budget", "options", "source", "expected", "warned"),
    [
        (FAR, {}, "a-u-e-(d|)", "a-u-e-(d|)", 0),
        (UNBOUNDED, {}, "v-f#", "v-f#", 0),
        (TOKENS, {}, "a-#", "a-#", 0),
        (TOKENS, {}, "-v-f(d|)", "-(Wv)-f(d|)", 100),
        (TOKENS, {}, "-v-f#", "-(Wv)-f#", 100),
        (TOKENS, {"spent": 99, "warn_at": 1.0}, "a|", "a|", 0),
        (TOKENS, {"spent": 85}, "a|", "(Wa)|", 85),
        (TOKENS, {"warn_at": 0.5}, "h-i|", "h-(Wi)|", 50),
        (MONEY, {}, "-g#", "-g#", 0),
        (FAR, {}, "a-x-|", "a-x-|", 0),
    ],
    ids=[
        *("far from the limits", "no limits", "a failure", "exactly the limit"),
        *("a failure at the limit", "almost spent"),
        *("near the limit from the start", "another share", "a limit of the agent", "no event"),
    ],
)
def test_what_passes(
    budget: Budget, options: dict[str, Any], source: str, expected: str, warned: int
) -> None:
    """Within the budget everything passes, with one warning near its limit."""
    t = Marbles(**DRAWN, W=warning("tokens", warned, 100))
    if source == "-g#":
        t.error = BudgetExceeded("Reached maximum budget ($1)")
    spent = options.get("spent", 0)
    ledger = Ledger(Spending.of([ended(spent)] * bool(spent)))
    more = {name: value for name, value in options.items() if name != "spent"}
    t.check(t.cold(source).pipe(within_budget(budget, ledger=ledger, **more)), expected)
    if budget is UNBOUNDED:
        assert 100 == ledger.spent.total_tokens


class TestCut:
    @pytest.mark.parametrize(
        ("budget", "over", "message"),
        [
            (TOKENS, update(101), TOKENS_SPENT.format(101)),
            (MONEY, update(0, 11.0), "The budget of the run is used up: $11.00 of $10.00 spent"),
        ],
        ids=["tokens", "money"],
    )
    def test_in_flight(self, budget: Budget, over: ev.UsageUpdate, message: str) -> None:
        """The update that overdraws the budget is passed on, then the session is ended."""
        t = Marbles(a=A, u=update(0, 0.0), v=over)
        source = t.cold("a-u-v-a-a|")
        assert [
            (0.0, "next", "a"),
            (2.0, "next", "u"),
            (4.0, "next", "W"),
            (4.0, "next", "v"),
            (4.0, "error", message),
        ] == drawn(t, source.pipe(within_budget(budget)))
        t.check_subscriptions(source, "^---!")

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

    @pytest.mark.parametrize("around", [False, True])
    def test_a_terminal_marker_outlives_a_cut_in_its_linger(self, *, around: bool) -> None:
        """The marker comes last, after a cut in its linger or the end of the session."""
        t = Marbles(d=D, u=update(101), e=ended(101), W=warning("tokens", 101, 100))
        ending = until_terminal(
            ev.is_llm_terminal_marker_event,
            linger=10.0,
            settle=lambda event: around and isinstance(event, ev.SessionEnded),
        )
        source = t.cold("-d-(e|)" if around else "-d-u---")
        policies = [ending, within_budget(TOKENS)] if around else [within_budget(TOKENS), ending]
        t.check(source.pipe(*policies), "---(Wed|)" if around else "---(d|)")
        t.check_subscriptions(source, "^--!")

    def test_the_agents_own_limit_is_the_runs(self) -> None:
        """An agent that ends at the limit it was given fails with the budget of the run."""
        own = BudgetExceeded("Reached maximum budget ($2)", hint="more")
        t = Marbles(e=ended(0, 2.01), error=own)
        ledger = Ledger(Spending(8.0))
        seen = t.record(t.cold("-e#").pipe(within_budget(MONEY, ledger=ledger)))
        error = seen[-1][2]
        assert "The budget of the run is used up: $10.01 of $10.00 spent" == error.message
        assert own is error.__cause__


class TestNextStart:
    @pytest.mark.parametrize(
        ("budget", "ledger", "what"),
        [
            (TOKENS, {"spent": Spending.of([ended(100)])}, "token budget"),
            (TOKENS, {"spent": Spending.of([ended(101)])}, "token budget"),
            (Budget(duration=50.0), {"elapsed": 50.0}, "time budget"),
        ],
    )
    def test_at_subscription(self, budget: Budget, ledger: dict[str, Any], what: str) -> None:
        """A source is not subscribed when the limit is reached exactly, or passed."""
        t = Marbles(a=A)
        source = t.cold("a|")
        seen = drawn(t, source.pipe(within_budget(budget, ledger=Ledger(**ledger))))
        assert [(0.0, "error")] == [entry[:2] for entry in seen]
        assert f"The {what} of the run is used up: " in seen[0][2]
        t.check_subscriptions(source)

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
            loop.pipe(within_budget(TOKENS, ledger=ledger)), quiet.pipe(ops.catch(rx.empty()))
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
