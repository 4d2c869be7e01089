"""Cost and tokens over time, from what agents say while they work and at their end."""

from __future__ import annotations

from collections import defaultdict

from cuggino.domain.spending import Spending
from cuggino.events import RunResumed, StageStarted, Usage
from cuggino.report.model import Spent
from cuggino.storage.journal import Entry


class SpentOverTime:
    """The whole run's cost and tokens: the sum over its stages, whose agents may overlap."""

    def __init__(self) -> None:
        self._stages: defaultdict[str | None, Spending] = defaultdict(Spending)
        self._cost: float | None = None
        self._usage = Usage()
        self._points: list[Spent] = []

    def add(self, entry: Entry) -> None:
        """Take in an entry of the journal."""
        if isinstance(entry.event, StageStarted):
            # What an earlier try of the stage took is in the sum already.
            self._stages.pop(entry.stage, None)
            return
        if isinstance(entry.event, RunResumed):  # of what is counted here anyway
            return
        before = self._stages[entry.stage]
        after = self._stages[entry.stage] = before.add(entry.event)
        if after is before:
            return
        if after.cost_usd is not None:
            self._cost = (self._cost or 0.0) + after.cost_usd - (before.cost_usd or 0.0)
        self._usage = _moved(self._usage, before.usage or Usage(), after.usage or Usage())
        point = Spent(entry.at, self._cost, self._usage)
        if not self._points or self._points[-1][1:] != point[1:]:
            self._points.append(point)

    def result(self) -> tuple[Spent, ...]:
        """The moments at which something had been spent, in order, each with the sum so far."""
        return tuple(self._points)


def _moved(total: Usage, before: Usage, after: Usage) -> Usage:
    return Usage(
        **{name: count + getattr(after, name) - getattr(before, name) for name, count in total}
    )
