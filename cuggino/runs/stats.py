"""Statistics of recorded runs: success, iterations, cost and time by what they ran with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from cuggino.runs.listing import RecordedRun, UnreadableRun

StatsGroup: TypeAlias = Literal["loop", "role", "agent", "model", "prompts"]

_CUT_SHORT = frozenset({"interrupted", "killed"})
_LOOPS: Mapping[str, str] = {"item": "watch item"}
_UNKNOWN = "unknown"
_DEFAULT_MODEL = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsRow:
    """The figures of the runs with the same loop, role, agent, model or prompts."""

    name: str
    runs: int
    """Runs that are over."""
    finished: int
    """Those that were neither interrupted nor killed."""
    approved: int
    """Finished runs that reached their goal."""
    iterations: float | None
    """The median of the finished runs; None without one."""
    cost_usd: float | None
    """The median of the finished runs with a cost, in US dollars. For a role, an agent or a model,
    the cost of its sessions."""
    total_cost_usd: float | None
    """The sum over all runs."""
    cost_estimated: bool = False
    """True if a part of one of the costs is an estimate."""
    duration: float | None
    """The median of the finished runs, in seconds. For a role, an agent or a model, the duration of
    its sessions."""

    @property
    def success(self) -> float | None:
        """The share of approved runs among the finished ones; None without one."""
        return self.approved / self.finished if self.finished else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStats:
    """The statistics of recorded runs; a row for each value, the most frequent first.

    A watch is not counted: each of its items is a run of its own.
    """

    runs: int = 0
    """Runs that are over."""
    unreadable: int = 0
    """Journals that cannot be read."""
    rows: Mapping[StatsGroup, Sequence[StatsRow]]


class _Share(NamedTuple):
    """What one run adds to a row."""

    run: RecordedRun
    cost_usd: float | None
    cost_estimated: bool
    duration: float


def run_stats(runs: Iterable[RecordedRun | UnreadableRun]) -> RunStats:
    """Return the statistics of these runs; one that is running, or a watch, is left out."""
    shares: dict[StatsGroup, dict[str, list[_Share]]] = {
        group: defaultdict(list) for group in get_args(StatsGroup)
    }
    over = unreadable = 0
    for run in runs:
        if isinstance(run, UnreadableRun):
            unreadable += 1
        elif run.state != "running" and run.digest.loop is not None:
            over += 1
            for group, name, share in _shares(run):
                shares[group][name].append(share)
    rows = {
        group: tuple(sorted((_row(*pair) for pair in named.items()), key=_most_first))
        for group, named in shares.items()
    }
    return RunStats(runs=over, unreadable=unreadable, rows=rows)


def stats_json(stats: RunStats) -> dict[str, Any]:
    """Return the statistics as JSON: the rows of each group under its name."""
    return {
        "runs": stats.runs,
        "unreadable": stats.unreadable,
        **{
            group: [
                {
                    "name": row.name,
                    "runs": row.runs,
                    "finished": row.finished,
                    "approved": row.approved,
                    "success": row.success,
                    "iterations": row.iterations,
                    "cost_usd": row.cost_usd,
                    "total_cost_usd": row.total_cost_usd,
                    "cost_estimated": row.cost_estimated,
                    "duration": row.duration,
                }
                for row in rows
            ]
            for group, rows in stats.rows.items()
        },
    }


def _shares(run: RecordedRun) -> Iterator[tuple[StatsGroup, str, _Share]]:
    digest = run.digest
    totals = run.totals
    whole = _Share(run, totals.cost_usd, totals.cost_estimated, totals.duration)
    loop = digest.loop or ""
    yield "loop", _LOOPS.get(loop, loop), whole
    yield "prompts", run.started.prompts or _UNKNOWN, whole
    parts: dict[tuple[StatsGroup, str], _Share] = {}
    for part in digest.parts:
        names: tuple[tuple[StatsGroup, str], ...] = (
            ("role", part.role),
            ("agent", part.agent or _UNKNOWN),
            ("model", part.model or _DEFAULT_MODEL),
        )
        for key in names:
            before = parts.get(key, _Share(run, None, False, 0.0))
            cost = _sum((before.cost_usd, part.cost_usd))
            estimated = before.cost_estimated or part.cost_estimated
            parts[key] = _Share(run, cost, estimated, before.duration + part.duration)
    for (group, name), share in parts.items():
        yield group, name, share


def _row(name: str, shares: Sequence[_Share]) -> StatsRow:
    finished = [share for share in shares if share.run.state not in _CUT_SHORT]
    return StatsRow(
        name=name,
        runs=len(shares),
        finished=len(finished),
        approved=sum(_has_succeeded(share.run) for share in finished),
        iterations=_median(share.run.totals.rounds for share in finished),
        cost_usd=_median(share.cost_usd for share in finished),
        total_cost_usd=_sum(share.cost_usd for share in shares),
        cost_estimated=any(share.cost_estimated for share in shares),
        duration=_median(share.duration for share in finished),
    )


def _has_succeeded(run: RecordedRun) -> bool:
    """Return whether the run reached its goal; with `plan_only`, that is the end of planning."""
    is_planned = run.state == "ended" and run.started.options.get("plan_only") is True
    return run.state == "approved" or is_planned


def _most_first(row: StatsRow) -> tuple[int, str]:
    return -row.runs, row.name


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
