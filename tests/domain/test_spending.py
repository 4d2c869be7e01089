"""Spending of agents, folded from their events, and the levels of a budget."""

from __future__ import annotations

from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.domain.spending import Budget, BudgetLevel, Spending, budget_exceeded
from tests.vectors import each


def usage(tokens: int) -> ev.Usage:
    return ev.Usage(input_tokens=tokens)


def update(tokens: int, cost: float | None = None) -> ev.UsageUpdate:
    return ev.UsageUpdate(usage=usage(tokens), cost_usd=cost)


def ended(tokens: int | None = None, cost: float | None = None) -> ev.SessionEnded:
    told = None if tokens is None else usage(tokens)
    return ev.SessionEnded(outcome="completed", cost_usd=cost, usage=told)


def taken(*events: ev.Event) -> tuple[float | None, ev.Usage | None, int]:
    spending = Spending.of(events)
    return spending.cost_usd, spending.usage, spending.sessions


def test_nothing_reported() -> None:
    """Before any report, cost and usage are unknown, not zero."""
    assert (None, None, 0) == taken()
    assert (None, None, 1) == taken(ev.AgentMessage(text="hi"), ended())
    assert 0 == Spending().total_tokens


def test_sessions_are_summed() -> None:
    """Cost and usage of ended sessions add up; a session without either is only counted."""
    assert (0.75, usage(30), 3) == taken(ended(10, 0.25), ended(), ended(20, 0.5))


def test_all_kinds_of_tokens_are_summed() -> None:
    """Each kind of token is summed separately."""
    one = ev.Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_creation_tokens=4)
    both = Spending.of(ev.SessionEnded(outcome="failed", usage=one) for _ in range(2))
    assert both.usage == ev.Usage(
        input_tokens=2, output_tokens=4, cache_read_tokens=6, cache_creation_tokens=8
    )


def test_the_running_session_counts_with_its_last_update() -> None:
    """Updates are running totals of the session: the last one counts, not their sum."""
    assert (0.2, usage(30), 1) == taken(update(10, 0.1), update(30, 0.2))
    assert (1.2, usage(130), 2) == taken(ended(100, 1.0), update(10, 0.1), update(30, 0.2))


def test_the_end_replaces_the_updates() -> None:
    """The report of `SessionEnded` replaces the updates, even if it is lower."""
    assert (0.5, usage(40), 1) == taken(update(30, 0.2), ended(40, 0.5))
    assert (0.1, usage(20), 1) == taken(update(30, 0.2), ended(20, 0.1))


def test_an_end_without_figures_keeps_the_updates() -> None:
    """Values missing from `SessionEnded` stay those of the last update."""
    assert (0.2, usage(30), 1) == taken(update(30, 0.2), ended())
    assert (0.9, usage(30), 1) == taken(update(30, 0.2), ended(cost=0.9))
    assert (0.2, usage(40), 1) == taken(update(30, 0.2), ended(tokens=40))


@each(
    "boundary",
    [
        ev.AgentRetry(reason="crash", message="", attempt=1, max_retries=3, retry_in=5.0),
        ev.AgentNudged(idle=900.0),
        ev.AgentReplaced(),
        ev.QuotaWaiting(remaining=60.0),
        ev.PlanningStart(iteration=1),
        ev.ImplementingStart(iteration=1),
        ev.ReviewingStart(iteration=1),
        ev.RunContinued(),
        ev.WatchAuditStarted(),
        ev.WatchAuditInterrupted(),
        ev.WatchAuditEnded(),
        ev.WatchAuditFailed(message=""),
        ev.AgentFellBack(role="building", from_agent="a", to_agent="b", reason="quota", message=""),
        ev.DeliverSessionStarted(session=1, instruction="coding"),
        ev.PlanBuildPhaseStarted(phase="plan", iteration=1),
        ev.RoleViolated(role="planning", paths=()),
    ],
)
def test_a_cut_session_keeps_its_last_update(boundary: ev.Event) -> None:
    """A session without `SessionEnded` counts with its last update."""
    assert (0.5, usage(70), 2) == taken(update(30, 0.2), boundary, update(40, 0.3))
    assert (0.5, usage(70), 2) == taken(update(30, 0.2), boundary, ended(40, 0.3))


@each("second", [update(20, 0.4), update(50, 0.1)])
def test_falling_totals_start_a_session(second: ev.UsageUpdate) -> None:
    """An update below the last one starts a session, as totals never fall within one."""
    assert second.cost_usd is not None
    expected = (0.3 + second.cost_usd, usage(40 + second.usage.input_tokens), 2)
    assert expected == taken(update(40, 0.3), second)


def test_an_update_without_a_cost() -> None:
    """An update without a cost after one with a cost belongs to the same session."""
    assert (None, usage(50), 1) == taken(update(40, 0.3), update(50))
    assert (0.3, usage(50), 1) == taken(update(40), update(50, 0.3))


def test_a_resumed_run_starts_with_its_spending() -> None:
    """`RunResumed` restores cost, usage and agents of the earlier processes."""
    resumed = ev.RunResumed(run_id="r", stages=3, agents=3, cost_usd=2.0, usage=usage(500))
    assert (2.5, usage(510), 4) == taken(resumed, ended(10, 0.5))


def test_a_whole_journal_is_not_counted_twice() -> None:
    """After the events of the earlier process its `RunResumed` changes no total."""
    resumed = ev.RunResumed(run_id="r", stages=1, agents=1, cost_usd=0.5, usage=usage(10))
    assert (0.75, usage(15), 2) == taken(ended(10, 0.5), resumed, ended(5, 0.25))


def test_other_events_return_the_same_value() -> None:
    """An event that does not count returns the same object."""
    spending = Spending.of([update(10, 0.1)])
    assert spending is spending.add(ev.AgentMessage(text="hi"))
    assert Spending().settle() == Spending().add(ev.PlanningStart(iteration=1))


def test_tokens() -> None:
    """A limit counts tokens by their price, or input, output and cache writes once each."""
    used = ev.Usage(
        input_tokens=1, output_tokens=20, cache_creation_tokens=300, cache_read_tokens=4000
    )
    spent = Spending.of([ev.SessionEnded(outcome="completed", usage=used)])
    assert (321, 321) == (spent.total_tokens, spent.tokens("plain"))
    assert 1 + 5 * 20 + 1.25 * 300 + 0.1 * 4000 == spent.tokens("weighted")
    assert (0, 0) == (Spending().tokens("plain"), Spending().tokens("weighted"))


@given(st.lists(st.lists(st.integers(0, 10_000), max_size=5), max_size=6))
def test_sessions_in_any_number_of_updates(sessions: list[list[int]]) -> None:
    """For any number of updates, the last total of a session counts once."""
    events: list[ev.Event] = []
    for counts in sessions:
        events += [ev.PlanningStart(iteration=1), *map(update, sorted(counts))]
    expected = sum(max(counts, default=0) for counts in sessions)
    assert expected == Spending.of(events).total_tokens
    assert sum(bool(counts) for counts in sessions) == Spending.of(events).sessions


def test_plus() -> None:
    """The sum of two spendings has both costs, tokens and sessions, including running ones."""
    both = Spending.of([update(10, 0.25)]).plus(Spending.of([ended(5), update(1, 0.5)]))
    assert (0.75, usage(16), 3) == (both.cost_usd, both.usage, both.sessions)
    assert Spending() == Spending().plus(Spending())


def test_levels_of_a_budget() -> None:
    """Each limit has its level; unreported figures count as zero."""
    spent = Spending.of([ended(10, 0.5)])
    assert [] == Budget().levels(spent, 60.0)
    budget = Budget(cost_usd=2.0, tokens=100, duration=3600.0)
    assert [
        BudgetLevel("cost", 0.5, 2.0),
        BudgetLevel("tokens", 10, 100, count_tokens="weighted"),
        BudgetLevel("duration", 60.0, 3600.0),
    ] == budget.levels(spent, 60.0)
    assert [BudgetLevel("cost", 0.0, 2.0)] == Budget(cost_usd=2.0).levels(Spending(), 0.0)


@each(
    "kind, spent, limit, message, option",
    [
        ("cost", 10.416, 10.0, "The budget of the run is used up: $10.42 of $10.00", "--budget"),
        ("cost", 0.0561, 0.05, "The budget of the run is used up: $0.06 of $0.05", "--budget"),
        (
            "tokens",
            1_000_500,
            1_000_000,
            "The token budget of the run is used up: 1,000,500 of 1,000,000 tokens",
            "--max-tokens",
        ),
        (
            "duration",
            7200.4,
            7200.0,
            "The time budget of the run is used up: 2:00:00 of 2:00:00",
            "--max-duration",
        ),
        (
            "duration",
            30.0,
            30.0,
            "The time budget of the run is used up: 30 s of 30 s",
            "--max-duration",
        ),
    ],
)
def test_exceeded(
    kind: ev.BudgetKind, spent: float, limit: float, message: str, option: str
) -> None:
    """The error names the budget, the spending, and the setting to raise; its exit code is 13."""
    error = budget_exceeded(BudgetLevel(kind, spent, limit))
    assert f"{message} spent" == error.message
    assert f"resume with a larger `{option}`" == error.hint
    assert 13 == error.code


_events = st.sampled_from(
    [
        update(5, 0.5),
        update(9, 1.0),
        update(2),
        ended(10, 0.25),
        ended(),
        ev.ImplementingStart(iteration=1),
        ev.AgentMessage(text="hi"),
    ]
)


@given(st.lists(st.tuples(st.sampled_from([None, "a.md", "b.md"]), _events), max_size=20))
def test_items_are_counted_side_by_side(told: list[tuple[str | None, ev.Event]]) -> None:
    """Sessions of several items at once count as they would apart, in any order."""
    events = [event if item is None else event.of_item(item) for item, event in told]
    apart = [Spending.of(e for e in events if e.item == item) for item in (None, "a.md", "b.md")]
    together = Spending.of(events)
    summed = apart[0].plus(apart[1]).plus(apart[2])
    assert together.cost_usd == summed.cost_usd
    assert (together.usage, together.sessions) == (summed.usage, summed.sessions)
    again = together.add(ev.RunContinued())
    assert (again.running, again.of_items, again.usage) == (None, (), summed.usage)


def test_a_resumed_item_keeps_the_cost_of_the_others() -> None:
    """The totals of an item's earlier processes replace nothing in the watch that has counted."""
    resumed = ev.RunResumed(run_id="r", stages=1, cost_usd=9.0).of_item("a.md")
    assert (0.5, usage(10), 1) == taken(update(10, 0.5).of_item("b.md"), resumed)
