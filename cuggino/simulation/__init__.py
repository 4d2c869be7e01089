"""Seeded runs of the real loops in virtual time, with agents that fail.

`Odds` describes an implementer, a reviewer and a check that fail now and then, and what sessions
cost. `trial` plays one run of a `Strategy` with them; the ground truth is known, so `summary` knows
how often "done" was true. `recorded_odds` estimates the odds from a project's own runs.
"""

from cuggino.simulation.odds import Odds
from cuggino.simulation.recorded import Estimate, RecordedOdds, Share, recorded_odds, shares_of
from cuggino.simulation.strategies import STRATEGIES, Strategy
from cuggino.simulation.trials import Summary, Trial, summary, trial, trials

__all__ = [
    "STRATEGIES",
    "Estimate",
    "Odds",
    "RecordedOdds",
    "Share",
    "Strategy",
    "Summary",
    "Trial",
    "recorded_odds",
    "shares_of",
    "summary",
    "trial",
    "trials",
]
