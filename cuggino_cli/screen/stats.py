"""The statistics of recorded runs as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from cuggino.runs import RunStats, StatsGroup, StatsRow, cost_of, money
from cuggino.runs.words import format_duration
from cuggino_cli.screen.columns import cut, padded, width
from cuggino_cli.screen.fragments import Fragment, joined
from cuggino_cli.screen.text import flat

_HEADS = ("RUNS", "SUCCESS", "ITER", "COST", "TOTAL", "TIME")
_TITLES: Mapping[StatsGroup, str] = MappingProxyType(
    {
        "loop": "LOOP",
        "role": "ROLE",
        "agent": "AGENT",
        "model": "MODEL",
        "prompts": "PROMPTS",
    }
)
_GAP = "  "
_LONGEST_NAME = 40
_SHORTEST_NAME = 8
_LEGEND = (
    "SUCCESS: approved, of the runs that were not interrupted. ITER, COST and TIME: medians;",
    "those of a role, an agent or a model are of its sessions. TOTAL: the cost of all runs.",
)


def stats_fragments(stats: RunStats, *, columns: int | None) -> list[Fragment]:
    """Return a table for each group, and what the columns mean."""
    tables = {
        group: [(row, _cells(row)) for row in rows] for group, rows in stats.rows.items() if rows
    }
    lines = [_HEADS, *(cells for table in tables.values() for _, cells in table)]
    widths = [max(width(line[at]) for line in lines) for at in range(len(_HEADS))]
    taken = sum(widths) + len(_GAP) * len(widths)
    names = [width(flat(row.name)) for table in tables.values() for row, _ in table]
    first = min(max(names), _LONGEST_NAME)
    if columns is not None:
        first = max(min(first, columns - 1 - taken), _SHORTEST_NAME)

    def text(name: str, cells: tuple[str, ...]) -> str:
        numbers = (f"{cell:>{wide}}" for cell, wide in zip(cells, widths, strict=True))
        return _GAP.join((padded(cut(flat(name), first + 1), first), *numbers))

    def shown() -> Iterator[list[Fragment]]:
        for group, table in tables.items():
            yield [Fragment("prose", text(_TITLES[group], _HEADS))]
            for row, cells in table:
                yield [Fragment("plain", text(row.name, cells))]
            yield []
        for line in _LEGEND:
            yield [Fragment("prose", line)]
        if stats.unreadable:
            left = f"{stats.unreadable} unreadable; see `cuggino runs`"
            yield [Fragment("warning", f"Journals left out: {left}")]

    return joined(shown())


def _cells(row: StatsRow) -> tuple[str, ...]:
    return (
        str(row.runs),
        "" if row.success is None else f"{row.success:.0%}",
        "" if row.iterations is None else f"{row.iterations:g}",
        cost_of(row),
        money(row.total_cost_usd, estimated=row.cost_estimated),
        "" if row.duration is None else format_duration(row.duration),
    )
