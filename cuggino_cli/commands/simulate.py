"""`cuggino simulate`: compares the loops with an agent that fails, in virtual time."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import click

from cuggino import __version__
from cuggino.runs import RecordedRun, Runs
from cuggino.runs.words import counted
from cuggino.simulation import (
    STRATEGIES,
    Odds,
    RecordedOdds,
    Strategy,
    Summary,
    Trial,
    recorded_odds,
    summary,
    trials,
)
from cuggino_cli.follow.output import write_json
from cuggino_cli.help.manual import manual
from cuggino_cli.options.project import project_folder
from cuggino_cli.screen.simulation import chart_lines, estimate_lines, odds_lines, table_lines

_HELP = {
    "right": "An implementer repairs all that is wrong.",
    "breaks": "An implementer leaves something new that is wrong.",
    "admits": "An implementer whose work is wrong reports that work is left.",
    "forgets": "An implementer ends without a report.",
    "approves_wrong": "A reviewer approves wrong work.",
    "rejects_right": "A reviewer rejects right work.",
    "flakes": "The check fails without a reason.",
    "covers": "The check finds something that is wrong.",
    "planning": "US dollars of a planner's session.",
    "implementing": "US dollars of an implementer's session.",
    "reviewing": "US dollars of a reviewer's session.",
}
"""The options of the odds, by field."""


def _odds_options(function: Callable[..., int]) -> Callable[..., int]:
    for name, default in reversed(list(Odds())):
        is_chance = name not in ("planning", "implementing", "reviewing")
        function = click.option(
            f"--{name.replace('_', '-')}",
            type=click.FloatRange(0, 1) if is_chance else click.FloatRange(min=0),
            metavar="CHANCE" if is_chance else "USD",
            help=f"{_HELP[name]} Default: {default:g}.",
        )(function)
    return function


@click.command(
    "simulate",
    epilog=manual(
        ("cuggino simulate", "The table and the chart, in about a minute."),
        ("cuggino simulate --from-journals", "With the odds of this project's recorded runs."),
        ("cuggino simulate --covers 0.95 --right 0.4", "A better check, a worse agent."),
        ("cuggino simulate --json | jq .strategies", "For another program."),
        exits="0 shown, 2 wrong usage.",
        see=("help evidence", "runs"),
    ),
)
@_odds_options
@click.option(
    "--from-journals",
    is_flag=True,
    help="Estimate the odds from this project's recorded runs; options override them.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=300,
    metavar="N",
    help="Runs of each strategy. Default: 300.",
)
@click.option(
    "--seed", type=int, default=1, metavar="N", help="The seed of the first run. Default: 1."
)
@click.option(
    "--clones",
    is_flag=True,
    help="Also play what works in clones, best of three and three hands: seconds a run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def command(
    *, from_journals: bool, seeds: int, seed: int, clones: bool, as_json: bool, **given: Any
) -> int:
    """Compare the loops with agents and a check that fail by chance.

    Thousands of seeded runs of the real loops in virtual time, without a model, show how often
    "done" is true, and for how many dollars. It is no benchmark of coding: `cuggino help evidence`.
    """
    for name, value in given.items():
        if value is not None and not math.isfinite(value):
            raise click.UsageError(f"--{name.replace('_', '-')} is not a number.")
    recorded = _recorded() if from_journals else None
    known = recorded.odds if recorded is not None else Odds()
    odds = known.model_copy(
        update={name: value for name, value in given.items() if value is not None}
    )
    strategies = [one for one in STRATEGIES if clones or not one.in_clones]
    found = _play(strategies, odds, range(seed, seed + seeds))
    if as_json:
        write_json(_as_json(odds, recorded, found, seed=seed, seeds=seeds))
        return 0
    if recorded is not None:
        runs = counted(recorded.runs, "recorded run")
        click.echo(f"Estimated from {runs} of the coding loop in this project:\n")
        click.echo("\n".join(estimate_lines(recorded.estimates)) + "\n")
    last = f" to {seed + seeds - 1}" if seeds > 1 else ""
    runs = counted(seeds, "run")
    click.echo(f"cuggino {__version__}; {runs} of each strategy, seeds {seed}{last}")
    click.echo("\n".join(odds_lines(odds)) + "\n")
    click.echo("\n".join([*table_lines(found), "", *chart_lines(found)]))
    return 0


def _recorded() -> RecordedOdds:
    runs = Runs(project_folder()).all()
    return recorded_odds(run for run in runs if isinstance(run, RecordedRun))


def _play(strategies: Sequence[Strategy], odds: Odds, seeds: range) -> dict[str, Summary]:
    """Play the strategies, with a bar on standard error if that is a terminal."""
    length = len(strategies) * len(seeds)
    progress = click.progressbar(length=length, label="Playing", file=sys.stderr)
    with progress if sys.stderr.isatty() else nullcontext() as bar:

        def watched(strategy: Strategy) -> Iterator[Trial]:
            for one in trials(strategy, odds, seeds):
                if bar is not None:
                    bar.update(1)
                yield one

        return {strategy.name: summary(watched(strategy)) for strategy in strategies}


def _as_json(
    odds: Odds, recorded: RecordedOdds | None, found: dict[str, Summary], *, seed: int, seeds: int
) -> dict[str, Any]:
    estimates = recorded.estimates if recorded is not None else ()
    return {
        "version": __version__,
        "seed": seed,
        "seeds": seeds,
        "odds": odds.model_dump(),
        "estimates": {
            one.name: {"value": one.value, "basis": one.basis, "known": one.is_known}
            for one in estimates
        },
        "strategies": [
            {
                "name": strategy.name,
                "about": strategy.about,
                "done": one.done,
                "true": one.true,
                "false": one.false,
                "missed": one.missed,
                "calibration": one.calibration,
                "interval": one.interval,
                "cost_usd": one.cost_usd,
                "cost_per_true": one.cost_per_true,
                "sessions": one.sessions,
                "hours": one.hours,
            }
            for strategy in STRATEGIES
            if strategy.name in found
            for one in (found[strategy.name],)
        ],
    }
