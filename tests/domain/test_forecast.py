"""The forecast of a run from the latest comparable ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from cuggino.domain import FEWEST_RUNS, FORECAST_RUNS, PastRun, forecast
from cuggino.events import Forecast, KnownState, RunLoop


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
