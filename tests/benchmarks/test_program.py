"""The benchmark program: its table, its JSON, its verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.__main__ import GROUPS, QUICK, shown
from tests.benchmarks.measuring import Figure, in_turns
from tests.benchmarks.streams import lines, write_large, write_stream
from tests.limits import LIMIT

ROOT = Path(__file__).parents[2]


def test_table_and_json(tmp_path: Path) -> None:
    """Each figure is a row of the table and in the JSON; the exit code is the verdict."""
    file = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--quick", "--json", str(file), "journal"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    head, rule, *rows = done.stdout.splitlines()
    assert (head, rule) == (
        "| what | took | floor | that is | ratio | aim |",
        "|---|---|---|---|---|---|",
    )
    figures = json.loads(file.read_text())["figures"]
    assert len(rows) == len(figures) == 2
    for row, figure in zip(rows, figures, strict=True):
        assert "journal" == figure["group"]
        assert row.startswith(f"| {figure['name']} | ")
        assert figure["ratio"] == pytest.approx(figure["value"] / figure["floor"])


def test_unknown_group() -> None:
    """An unknown group is rejected with the list of known ones."""
    words = [sys.executable, "-m", "tests.benchmarks", "speed"]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert 2 == done.returncode
    assert "there is no group 'speed': choose from cold-start, " in done.stderr
    assert set(QUICK) <= set(GROUPS)


@pytest.mark.parametrize(
    ("ratio", "value", "most", "expected"),
    [
        (1.2, 5.0, 1.5, "| x | 5 s | 4 s | y | 1.20 | 1.5 ok |"),
        (1.6, 5.0, 1.5, "| x | 5 s | 4 s | y | 1.60 | 1.5 MISSED |"),
        (None, 5.0, 6.0, "| x | 5 s | 4 s | y |  | 6 s ok |"),
        (None, 7.0, 6.0, "| x | 7 s | 4 s | y |  | 6 s MISSED |"),
        (1.6, 5.0, None, "| x | 5 s | 4 s | y | 1.60 |  |"),
    ],
)
def test_verdict(ratio: float | None, value: float, most: float | None, expected: str) -> None:
    """A target limits the ratio, or the value of a figure without one."""
    figure = Figure(
        name="x", value=value, unit="s", floor=4.0, floor_name="y", ratio=ratio, most=most
    )
    assert expected == shown(figure)


def test_turns() -> None:
    """Calls are interleaved, warm-up calls are not counted, and the median is returned."""
    said: list[str] = []
    numbers = iter([100.0, 3.0, 1.0, 2.0])

    def one() -> float:
        said.append("one")
        return next(numbers)

    def two() -> float:
        said.append("two")
        return 7.0

    assert [2.0, 7.0] == in_turns(3, one, two)
    assert ["one", "two"] * 4 == said


def test_stream(tmp_path: Path) -> None:
    """Each line is JSON, two thirds are deltas; a large stream has the requested size."""
    path = tmp_path / "stream"
    size = write_stream(path, rounds=10)
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert size == path.stat().st_size
    assert 200 == sum(line["type"] == "stream_event" for line in found)
    assert 10 * 30 + 3 == len(found) == len(list(lines(10)))
    assert 2**20 <= write_large(path, size=2**20) < 2**21
    assert "result" == json.loads(path.read_bytes().splitlines()[-1])["type"]
