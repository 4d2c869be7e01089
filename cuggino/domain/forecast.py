"""The forecast of a run, from the latest comparable ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from statistics import median

from cuggino.events import Forecast, KnownState, RunLoop

FORECAST_RUNS = 10
"""The most runs that a forecast compares."""
FEWEST_RUNS = 3
"""The number of figures below which nothing is forecast."""
_COMPARABLE: frozenset[KnownState] = frozenset({"approved", "max_iterations", "stalled", "ended"})
"""Runs that came to their own end. Failures, spec issues, limits and interruptions cut a run short,
so that its figures say nothing about a whole one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """The figures of an earlier run of the project."""

    loop: RunLoop | None
    """None for a watch, whose items are compared instead."""
    state: KnownState
    duration: float
    """Seconds that its processes worked."""
    cost_usd: float | None = None
    """None if no cost is known."""
    cost_estimated: bool = False
    """True if a part of the cost is an estimate."""


def forecast(past_runs: Iterable[PastRun], loop: RunLoop) -> Forecast | None:
    """Return the forecast of a run of this loop; None if fewer than three runs are comparable.

    `past_runs` begins with the latest run, and is read until enough are comparable. These are the
    runs of the same loop that ended by themselves: approved, without iterations left, stalled, or
    with nothing left to do. A run without a cost counts for the duration only; fewer than three
    costs are no forecast of the cost.

    Args:
        past_runs: the runs of the project, the latest first.
        loop: the loop of the run; `item` for a watch.
    """
    comparable = (run for run in past_runs if run.loop == loop and run.state in _COMPARABLE)
    latest = list(islice(comparable, FORECAST_RUNS))
    if len(latest) < FEWEST_RUNS:
        return None
    durations = [run.duration for run in latest]
    costs = [run.cost_usd for run in latest if run.cost_usd is not None]
    has_cost = len(costs) >= FEWEST_RUNS
    return Forecast(
        loop=loop,
        runs=len(latest),
        duration=median(durations),
        worst_duration=max(durations),
        cost_usd=median(costs) if has_cost else None,
        worst_cost_usd=max(costs) if has_cost else None,
        cost_estimated=has_cost and any(run.cost_estimated for run in latest),
    )
