"""The decision table: strategies with how often "done" is true, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuggino.runs import money
from cuggino.simulation import Estimate, Odds, Summary

_GAP = "  "
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""The names of the strategies in the chart."""
_HEADS = ("DONE", "TRUE", "FALSE", "MISSED", '"DONE" IS TRUE', "COST", "PER TRUE", "HOURS")
_LEGEND = (
    "DONE: runs that declared the work done. TRUE, FALSE: those whose work is right, and wrong.",
    'MISSED: right work that was not declared done. "DONE" IS TRUE: TRUE of DONE, with the',
    "interval of 95 %. COST: mean of a run. PER TRUE: the cost of all runs for each TRUE one.",
    "HOURS: mean of a run, with sessions of one to ten minutes.",
)
_WIDTH, _HEIGHT = 60, 11
"""The columns and lines of the chart; a line for each tenth."""


def odds_lines(odds: Odds) -> list[str]:
    """Return the odds, with the names of their options."""
    chances = {name: value for name, value in odds if name not in _PRICES}
    prices = {name: value for name, value in odds if name in _PRICES}
    return [
        _listed({name: f"{value:.0%}" for name, value in chances.items()}),
        _listed({name: money(value) for name, value in prices.items()}) + " a session",
    ]


def estimate_lines(estimates: Sequence[Estimate]) -> list[str]:
    """Return the estimates from recorded runs as a table."""
    rows = [(one.name.replace("_", "-"), _value(one), one.basis) for one in estimates]
    name, value = (max(len(row[at]) for row in rows) for at in (0, 1))
    return [f"{row[0]:<{name}}{_GAP}{row[1]:>{value}}{_GAP}{row[2]}" for row in rows]


def table_lines(found: Mapping[str, Summary]) -> list[str]:
    """Return a row for each strategy, and what the columns mean."""
    names = [f"{letter}  {name}" for letter, name in zip(_LETTERS, found, strict=False)]
    rows = [_HEADS, *(_cells(one) for one in found.values())]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEADS))]
    first = max(map(len, names))
    return [
        _GAP.join(
            (f"{name:<{first}}", *(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)))
        )
        for name, row in zip(["   STRATEGY", *names], rows, strict=True)
    ] + ["", *_LEGEND]


def chart_lines(found: Mapping[str, Summary]) -> list[str]:
    """Return a chart of how often "done" is true against the mean cost of a run."""
    points = {
        letter: (one.cost_usd, one.calibration)
        for letter, one in zip(_LETTERS, found.values(), strict=False)
        if one.calibration is not None
    }
    most = max((cost for cost, _ in points.values()), default=0.0)
    if not most:
        return []
    cells = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    for letter, (cost, share) in points.items():
        row = cells[_HEIGHT - 1 - round(share * (_HEIGHT - 1))]
        at = round(cost / most * (_WIDTH - 1))
        free = [place for place in range(_WIDTH) if row[place] == " "]
        row[min(free, key=lambda place: (abs(place - at), place))] = letter
    lines = [
        f"{(_HEIGHT - 1 - at) * 10:>4} % |{''.join(row).rstrip()}" for at, row in enumerate(cells)
    ]
    end = f"{money(most)} a run"
    return ['"done" is true', *lines, f"{'':7}+{'-' * _WIDTH}", f"{'':8}$0{end:>{_WIDTH - 2}}"]


_PRICES = ("planning", "implementing", "reviewing")


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name.replace('_', '-')} {value}" for name, value in values.items())


def _value(one: Estimate) -> str:
    return money(one.value) if one.name in _PRICES else f"{one.value:.0%}"


def _cells(one: Summary) -> tuple[str, ...]:
    within = one.interval
    calibration = ""
    if one.calibration is not None and within is not None:
        calibration = f"{one.calibration:.0%} ({within[0]:.0%} to {within[1]:.0%})"
    return (
        f"{one.done / one.trials:.0%}",
        f"{one.true / one.trials:.0%}",
        f"{one.false / one.trials:.0%}",
        f"{one.missed / one.trials:.0%}",
        calibration,
        money(one.cost_usd),
        money(one.cost_per_true),
        f"{one.hours:.1f}",
    )
