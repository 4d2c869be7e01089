"""The table of the help page `speed`, updated from a measurement."""

from __future__ import annotations

from itertools import takewhile

import pytest

from tests.benchmarks.measuring import Figure
from tests.benchmarks.published import PAGE, ROWS, shown_target, with_figures
from tests.benchmarks.targets import TARGETS

TABLE = """\
| what | cuggino | beside | ratio | target |
|---|---|---|---|---|
| `cuggino run` to its first agent | 373 ms | 214 ms, its packages | 1.74 | **1.5, missed** |
| run of three instant agents, wall time | 0.51 s | 6.6 ms, the agents |  | **0.5 s, missed** |
| journal entry with fsync | 162 us |  |  |  |
| another | 1 s | 2 s, this | 0.50 | 1 |
"""


def _figure(key: str, value: float, floor: float | None = None) -> dict[str, object]:
    unit = {"small.wall": "s", "start.run": "ms"}.get(key, "us")
    return Figure(key=key, name="", value=value, unit=unit, floor=floor).as_json()  # type: ignore[arg-type]


NEW = "| one line alone, parts of text | ? us | ? us, the same | ? | 50 us |\n"
"""A row that was not measured yet."""


@pytest.mark.parametrize(
    ("page", "figure", "row"),
    [
        (TABLE, ("start.run", 280.4, 200.0), "agent | 280 ms | 200 ms, its packages | 1.40 | 2 |"),
        (TABLE, ("start.run", 420.0, 200.0), "| 2.10 | **2, missed** |"),
        (TABLE, ("small.wall", 0.42, 0.0065), "| 0.42 s | 6.5 ms, the agents |  | 0.5 s |"),
        (TABLE, ("journal.synced", 9.0, None), "| journal entry with fsync | 9 us |  |  |  |"),
        (NEW, ("alone.text", 42.0, 10.0), "| 42 us | 10 us, the same | 4.20 | 60 us |"),
    ],
)
def test_a_row_gets_its_figures(
    page: str, figure: tuple[str, float, float | None], row: str
) -> None:
    """Value, baseline, ratio and verdict are filled in; empty cells stay empty."""
    assert row in with_figures(page, [_figure(*figure)])


def test_targets_of_the_page_are_those_that_are_judged() -> None:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        target = TARGETS.get(ROWS.get(cells[0], "")) if len(cells) == 5 else None
        if target is not None:
            assert cells[4].strip("*").removesuffix(", missed") == shown_target(target), line


def test_other_rows_stay_as_they_are() -> None:
    assert with_figures(TABLE, []) == TABLE
    assert (
        with_figures(TABLE, [_figure("start.run", 1, 1)]).splitlines()[5] == (TABLE.splitlines()[5])
    )


def test_every_row_of_the_page_has_a_figure() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("|---|---|---|---|---|\n")[2]
    rows = takewhile(lambda line: line.startswith("|"), table.splitlines())
    assert sorted(ROWS) == sorted(row.split("|")[1].strip() for row in rows)
