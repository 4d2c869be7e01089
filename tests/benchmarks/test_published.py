"""The table of the help page `speed`, updated from a measurement."""

from __future__ import annotations

from itertools import takewhile

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
    unit = "s" if key == "small.wall" else "us" if key == "journal.synced" else "ms"
    return Figure(key=key, name="", value=value, unit=unit, floor=floor).as_json()  # type: ignore[arg-type]


def test_a_row_gets_value_baseline_ratio_and_verdict() -> None:
    page = with_figures(TABLE, [_figure("start.run", 280.4, 200.0)])
    assert "agent | 280 ms | 200 ms, its packages | 1.40 | 2 |" in page


def test_a_missed_target_is_named() -> None:
    page = with_figures(TABLE, [_figure("start.run", 420.0, 200.0)])
    assert "| 2.10 | **2, missed** |" in page


def test_a_row_without_figures_gets_its_first() -> None:
    row = "| one line alone, parts of text | ? us | ? us, the same | ? | 50 us |\n"
    figure = _figure("alone.text", 42.0, 10.0) | {"unit": "us"}
    assert with_figures(row, [figure]) == (
        "| one line alone, parts of text | 42 us | 10 us, the same | 4.20 | 60 us |\n"
    )


def test_targets_of_the_page_are_those_that_are_judged() -> None:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        target = TARGETS.get(ROWS.get(cells[0], "")) if len(cells) == 5 else None
        if target is not None:
            assert cells[4].strip("*").removesuffix(", missed") == shown_target(target), line


def test_empty_cells_stay_empty() -> None:
    page = with_figures(TABLE, [_figure("small.wall", 0.42, 0.0065), _figure("journal.synced", 9)])
    assert [cell.strip() for cell in page.splitlines()[3].split("|")[2:-1]] == [
        *("0.42 s", "6.5 ms, the agents", "", "0.5 s")
    ]
    assert [cell.strip() for cell in page.splitlines()[4].split("|")[2:-1]] == ["9 us", "", "", ""]


def test_other_rows_stay_as_they_are() -> None:
    assert with_figures(TABLE, []) == TABLE
    assert (
        with_figures(TABLE, [_figure("start.run", 1, 1)]).splitlines()[5] == (TABLE.splitlines()[5])
    )


def test_every_row_of_the_page_has_a_figure() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("|---|---|---|---|---|\n")[2]
    rows = takewhile(lambda line: line.startswith("|"), table.splitlines())
    assert sorted(ROWS) == sorted(row.split("|")[1].strip() for row in rows)
