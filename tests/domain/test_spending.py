"""Money: amounts, prices, spending, the counts of a run, and its forecast."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from genai_prices import data_snapshot
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.domain import (
    FEWEST_RUNS,
    FORECAST_RUNS,
    TOKEN_WEIGHTS,
    PastRun,
    Pricing,
    RunCommit,
    Tally,
    cost_of,
    count_tokens,
    forecast,
    money,
    rates_of,
)
from cuggino.domain.spending import Budget, BudgetLevel, Spending, budget_exceeded
from cuggino.errors import ConfigError
from cuggino.events import Forecast, KnownState, RunLoop, Usage
from tests.vectors import each


@each(
    "usd, options, text",
    [
        (None, {}, ""),
        (None, {"estimated": True}, ""),
        (0, {}, "$0.00"),
        (0.0042, {}, "$0.0042"),
        (0.5, {}, "$0.50"),
        (1, {}, "$1.00"),
        (1234.5, {}, "$1,234.50"),
        (-2, {}, "-$2.00"),
        (0.52, {"estimated": True}, "~$0.52"),
        (0, {"digits": 4}, "$0.0000"),
        (1.25, {"digits": 4}, "$1.2500"),
    ],
)
def test_money(usd: float | None, options: dict[str, Any], text: str) -> None:
    """Amounts below a cent have more digits, estimates a mark, and unknown amounts no text."""
    assert text == money(usd, **options)


def test_cost_of_an_event() -> None:
    """Anything with a cost is shown with its mark."""
    ended = ev.SessionEnded(outcome="completed", cost_usd=0.5, cost_estimated=True)
    assert "~$0.50" == cost_of(ended)
    assert "$0.50" == cost_of(ended.model_copy(update={"cost_estimated": False}))


MILLION = 1_000_000
CLASSES = ("input_tokens", "cache_read_tokens", "cache_creation_tokens", "output_tokens")

PRICES = [
    # model as an agent reports it, US dollars of a million tokens of each class
    ("claude-sonnet-4-5", (3, 0.3, 3.75, 15)),
    ("claude-sonnet-4-5-20250929", (3, 0.3, 3.75, 15)),
    ("claude-sonnet-4-5[1m]", (3, 0.3, 3.75, 15)),
    (" Claude-Sonnet-4-5 ", (3, 0.3, 3.75, 15)),
    ("gpt-5.3-codex", (1.75, 0.175, 1.75, 14)),
    ("openai/gpt-5.3-codex", (1.75, 0.175, 1.75, 14)),
    ("github-copilot/claude-sonnet-4.5", (3, 0.3, 3.75, 15)),
    ("anthropic/claude-sonnet-4.5", (3, 0.3, 3.75, 15)),
    ("openrouter/anthropic/claude-sonnet-4.5", (3, 0.3, 3.75, 15)),
    # The base price, however many tokens a session has.
    ("gemini-2.5-pro", (1.25, 0.125, 1.25, 10)),
    # A price list without cache prices charges cached tokens as input.
    ("kimi-k2", (0.57, 0.57, 0.57, 2.3)),
]
UNKNOWN = ["", "gpt-99", "mock/mock-model", "auto", "default", "/", "a/b/c", "<synthetic>", "模型"]


@pytest.mark.parametrize(("model", "dollars"), PRICES)
def test_known_models(model: str, dollars: tuple[float, ...]) -> None:
    """Each class of tokens of a known model has its own price."""
    for name, price in zip(CLASSES, dollars, strict=True):
        assert pytest.approx(price) == Pricing().cost(Usage(**{name: MILLION}), model), name
    each = Usage(**dict.fromkeys(CLASSES, MILLION))
    assert pytest.approx(sum(dollars)) == Pricing().cost(each, model)


@pytest.mark.parametrize("model", [None, *UNKNOWN])
def test_unknown_models(model: str | None) -> None:
    """An unknown model has no price, or that of the named model's input tokens by weights."""
    assert Pricing().cost(Usage(input_tokens=1), model) is None
    weighted = Pricing("claude-sonnet-4-5")
    for name, weight in zip(CLASSES, TOKEN_WEIGHTS, strict=True):
        assert pytest.approx(3 * weight) == weighted.cost(Usage(**{name: MILLION}), model), name


def test_a_known_model_keeps_its_price() -> None:
    """The named model prices unknown models only."""
    pricing = Pricing("claude-sonnet-4-5")
    assert Pricing().rates("gpt-5.3-codex") == pricing.rates("gpt-5.3-codex")


def test_unknown_price_as() -> None:
    """A named model without a known price is an error that names the setting."""
    Pricing().check()
    Pricing("gpt-5.5").check()
    with pytest.raises(ConfigError, match='price of "gpt-99" in priceAs is unknown') as caught:
        Pricing("gpt-99").check()
    assert "claude-sonnet-4-5" in (caught.value.hint or "")
    assert 2 == caught.value.code


def test_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices come from the installed package: no connection is opened, nothing is updated."""

    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    rates_of.cache_clear()
    assert rates_of("gpt-5.5") is not None
    assert rates_of("gpt-99") is None
    assert not data_snapshot.get_snapshot().from_auto_update
    source = Path(__file__).parents[2] / "cuggino/domain/prices.py"
    assert "UpdatePrices" not in source.read_text(encoding="utf-8")


def test_counted_tokens() -> None:
    """Weighted tokens count by price, plain ones once each without cache reads."""
    used = Usage(
        input_tokens=1000, cache_read_tokens=100_000, cache_creation_tokens=400, output_tokens=20
    )
    assert 1000 + 10_000 + 500 + 100 == count_tokens(used, "weighted")
    assert 1420 == count_tokens(used, "plain")
    assert 0 == count_tokens(None, "weighted")
    # The case of the issue: a plain limit of a million lets millions of cache reads through.
    cached = Usage(input_tokens=MILLION, cache_read_tokens=24 * MILLION)
    assert (MILLION, 3_400_000) == (count_tokens(cached, "plain"), count_tokens(cached, "weighted"))


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


RESUMED = ev.RunResumed(run_id="r", stages=3, agents=3, cost_usd=2.0, usage=usage(500))


@each(
    "events, expected",
    [
        # Before any report, cost and usage are unknown, not zero.
        ([], (None, None, 0)),
        ([ev.AgentMessage(text="hi"), ended()], (None, None, 1)),
        # Ended sessions add up; one without figures is only counted.
        ([ended(10, 0.25), ended(), ended(20, 0.5)], (0.75, usage(30), 3)),
        # Updates are running totals: the last one counts, not their sum.
        ([update(10, 0.1), update(30, 0.2)], (0.2, usage(30), 1)),
        ([ended(100, 1.0), update(10, 0.1), update(30, 0.2)], (1.2, usage(130), 2)),
        # The end replaces the updates, even if it is lower; missing values stay.
        ([update(30, 0.2), ended(40, 0.5)], (0.5, usage(40), 1)),
        ([update(30, 0.2), ended(20, 0.1)], (0.1, usage(20), 1)),
        ([update(30, 0.2), ended()], (0.2, usage(30), 1)),
        ([update(30, 0.2), ended(cost=0.9)], (0.9, usage(30), 1)),
        ([update(30, 0.2), ended(tokens=40)], (0.2, usage(40), 1)),
        # An update below the last one starts a session, as totals never fall within one.
        ([update(40, 0.3), update(20, 0.4)], (0.3 + 0.4, usage(60), 2)),
        ([update(40, 0.3), update(50, 0.1)], (0.3 + 0.1, usage(90), 2)),
        ([update(40, 0.3), update(50)], (None, usage(50), 1)),
        ([update(40), update(50, 0.3)], (0.3, usage(50), 1)),
        # A resumed run starts with its spending; after a whole journal it changes no total.
        ([RESUMED, ended(10, 0.5)], (2.5, usage(510), 4)),
        ([ended(500, 2.0), ended(), ended(), RESUMED, ended(5, 0.25)], (2.25, usage(505), 4)),
        # The totals of an item replace nothing in the watch that has counted.
        ([update(10, 0.5).of_item("b.md"), RESUMED.of_item("a.md")], (0.5, usage(10), 1)),
    ],
)
def test_what_is_spent(
    events: list[ev.Event], expected: tuple[float | None, ev.Usage | None, int]
) -> None:
    """Cost, usage and number of the sessions, from what is reported of them."""
    assert expected == taken(*events)


def test_all_kinds_of_tokens_are_summed() -> None:
    """Each kind of token is summed separately."""
    one = ev.Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_creation_tokens=4)
    both = Spending.of(ev.SessionEnded(outcome="failed", usage=one) for _ in range(2))
    assert both.usage == ev.Usage(
        input_tokens=2, output_tokens=4, cache_read_tokens=6, cache_creation_tokens=8
    )


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


def test_other_events_return_the_same_value() -> None:
    """An event that does not count returns the same object."""
    spending = Spending.of([update(10, 0.1)])
    assert spending is spending.add(ev.AgentMessage(text="hi"))
    assert Spending().settle() == Spending().add(ev.PlanningStart(iteration=1))


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


START = ev.StageStarted(name="implementing")
ROUND = ev.IterationStart(iteration=1, max_iterations=3)
AGENT = ev.ImplementingStart(iteration=1)
DONE = ev.Progress(content="one")
COMMIT = ev.CommitPerformed(iteration=1, commit_hash="a1", message="Add a\n\nwith care")
SPENT = ev.UsageUpdate(usage=ev.Usage(input_tokens=5), cost_usd=0.5)
ENDED = ev.SessionEnded(outcome="completed", cost_usd=0.75)


def folded(*events: ev.Event, stage: str | None = None) -> Tally:
    return reduce(lambda tally, event: tally.add(event, stage), events, Tally())


def facts(tally: Tally) -> tuple[int, int, int, tuple[RunCommit, ...], float | None]:
    return tally.rounds, tally.tasks, tally.agents, tally.commits, tally.spent.cost_usd


def test_a_repeated_stage() -> None:
    """It counts its iteration, task and commit once, and all agents with their cost."""
    tried = (START, ROUND, AGENT, SPENT, DONE, COMMIT)
    finished = ev.StageFinished(outcome=None)
    tally = folded(*tried, ev.RunContinued(), *tried, ENDED, finished, stage="implementing#1")
    assert 0 == folded(*tried, stage="implementing#1").tasks
    assert (1, 1, 2, (RunCommit("a1", "Add a"),), 1.25) == facts(tally)


def test_a_commit_that_an_agent_made() -> None:
    """A commit seen in the history counts like one that the loop made, and once."""
    seen = ev.CommitSeen(commit_hash="b2", subject="Do it")
    assert (RunCommit("b2", "Do it"),) == folded(seen, seen).commits


def test_a_phase_of_the_plan_build_loop() -> None:
    """A phase is an iteration and an agent."""
    phase = ev.PlanBuildPhaseStarted(phase="build", iteration=2)
    assert (1, 0, 1, (), None) == facts(folded(phase))


def test_items_in_slots() -> None:
    """Iterations of the same number are those of their item, and of its attempt."""

    def begun(item: str) -> ev.IterationStart:
        return ev.IterationStart(iteration=1, max_iterations=3, item=item)

    again = ev.WatchItemRetained(filename="a.md")
    assert 2 == folded(begun("a.md"), begun("b.md"), begun("a.md")).rounds
    assert 3 == folded(begun("a.md"), begun("b.md"), again, begun("a.md")).rounds


def test_resumed() -> None:
    """The totals of earlier processes are the base of what follows."""
    totals = ev.RunResumed(
        run_id="r", stages=1, rounds=2, tasks=3, agents=4, commits=(("a1", "Add a"),), cost_usd=1.0
    )
    tally = folded(totals, ROUND, AGENT, DONE, COMMIT, ENDED)
    assert (2, 4, 5, (RunCommit("a1", "Add a"),), 1.75) == facts(tally)
    assert 3 == tally.add(ev.IterationStart(iteration=3, max_iterations=3)).rounds


def past(
    *durations: float,
    costs: Sequence[float | None] = (),
    state: KnownState = "approved",
    loop: RunLoop | None = "run",
) -> list[PastRun]:
    """Return runs of these durations, each with its cost."""
    known = [*costs, *[None] * (len(durations) - len(costs))]
    return [
        PastRun(loop=loop, state=state, duration=seconds, cost_usd=cost)
        for seconds, cost in zip(durations, known, strict=True)
    ]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (past(30, 10, 20, costs=(3, 1, 2)), (3, 20, 30, 2, 3)),
        (past(30, 10, 20, 50, costs=(3, 1, 2, 5)), (4, 25, 50, 2.5, 5)),
        (past(1, 2, 3, 4, costs=(None, 1, 2, 9)), (4, 2.5, 4, 2, 9)),
        (past(1, 2, 3, costs=(1, 2)), (3, 2, 3, None, None)),
        (past(1, 2, 3), (3, 2, 3, None, None)),
        (past(1, 2, 3, costs=(0, 0, 0)), (3, 2, 3, 0, 0)),
    ],
)
def test_median_and_worst(runs: list[PastRun], expected: tuple[float | None, ...]) -> None:
    """Odd and even numbers of runs; a missing cost counts for the duration only."""
    found = forecast(runs, "run")
    assert found is not None
    figures = (found.duration, found.worst_duration, found.cost_usd, found.worst_cost_usd)
    assert expected == (found.runs, *figures)


def test_an_estimated_cost() -> None:
    """A forecast from an estimate is one; without costs there is nothing to mark."""
    exact, known, without = past(1, costs=(1,)), past(1, 2, 3, costs=(1, 2, 3)), past(1, 2, 3)
    estimate = [replace(run, cost_estimated=True) for run in exact]
    for runs, expected in (
        ([*known, *exact], False),
        ([*known, *estimate], True),
        ([*without, *estimate], False),
    ):
        found = forecast(runs, "run")
        assert found is not None
        assert expected is found.cost_estimated


@pytest.mark.parametrize("count", range(FEWEST_RUNS))
def test_too_few_runs(count: int) -> None:
    """With fewer than three comparable runs there is no forecast."""
    assert None is forecast(past(*range(count)), "run")
    assert None is not forecast(past(*range(FEWEST_RUNS)), "run")


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        *((state, True) for state in ("approved", "max_iterations", "stalled", "ended")),
        *((state, False) for state in ("spec_issue", "failed", "quota", "budget")),
        *((state, False) for state in ("interrupted", "unfinished")),
    ],
)
def test_only_runs_that_came_to_their_own_end(state: KnownState, counts: bool) -> None:
    """A run that was cut short says nothing about a whole one."""
    found = forecast([*past(99, state=state), *past(1, 2, 3)], "run")
    assert found is not None
    assert (4 if counts else 3) == found.runs
    assert (99 if counts else 3) == found.worst_duration


@pytest.mark.parametrize("loop", ["run", "item", "deliver", "loop"])
def test_only_runs_of_the_same_loop(loop: RunLoop) -> None:
    """Other loops, and watches, are not compared."""
    others: list[RunLoop | None] = ["run", "item", "deliver", "loop", None]
    runs = [run for other in others if other != loop for run in past(7, 8, 9, loop=other)]
    assert None is forecast(runs, loop)
    found = forecast([*runs, *past(1, 2, 3, loop=loop)], loop)
    assert (loop, 3.0) == (found and found.loop, found and found.worst_duration)


def test_the_latest_ten() -> None:
    """Older runs than the latest ten comparable ones are not even read."""

    def runs() -> Iterator[PastRun]:
        yield from past(*range(FORECAST_RUNS))
        raise AssertionError("read too far")

    found = forecast(runs(), "run")
    assert found is not None
    assert (10, 4.5, 9) == (found.runs, found.duration, found.worst_duration)


RUN = Forecast(loop="run", runs=10, duration=60, worst_duration=90, cost_usd=1, worst_cost_usd=2)
ITEM = RUN.model_copy(update={"loop": "item", "runs": 3, "items": 4})
NO_COST = {"cost_usd": None, "worst_cost_usd": None}


@pytest.mark.parametrize(
    ("items", "slots", "total"), [(0, 1, 0), (1, 1, 60), (4, 1, 240), (4, 2, 120), (5, 2, 180)]
)
def test_the_items_of_a_watch(items: int, slots: int, total: float) -> None:
    """Each item costs the same; those in slots take the time of the longest row."""
    made = ITEM.model_copy(update={"items": items, "slots": slots})
    assert (total, items) == (made.total_duration, made.total_cost_usd)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (RUN, "usually takes 60s and costs $1; at most 90s and $2 in the last 10 runs"),
        (RUN.model_copy(update=NO_COST), "usually takes 60s; at most 90s in the last 10 runs"),
        (
            ITEM,
            "an item usually takes 60s and costs $1; at most 90s and $2 in the last 3 items; "
            "for 4 items about 240s and $4",
        ),
        (
            ITEM.model_copy(update={**NO_COST, "items": 1}),
            "an item usually takes 60s; at most 90s in the last 3 items",
        ),
    ],
)
def test_in_words(made: Forecast, words: str) -> None:
    """Durations and amounts are formatted by the view; an unknown cost is left out."""
    assert words == made.words("{:g}s".format, "${:g}".format)
