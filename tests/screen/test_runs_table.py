"""The table of recorded runs at any width, and the outcomes of stages."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cuggino_cli.screen.columns import width
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.runs import outcome_text, runs_fragments
from cuggino_cli.screen.tables import Row


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (None, ""),
        ({"value": None}, ""),
        ({"value": " a\nb"}, "a"),
        ({"value": [1, "ä"]}, '[1, "ä"]'),
        ({"time": "2026"}, "2026"),
        ({"_tag": "Progress", "content": " "}, "Progress"),
        ({"_tag": "CommitFailed", "message": "no\nroom"}, "CommitFailed: no"),
        (
            {"_tag": "CheckCommandOutput", "exit_code": 1, "output": "x"},
            "CheckCommandOutput: exit code 1",
        ),
        ({"_tag": "Other"}, "Other"),
        ([1], "[1]"),
    ],
)
def test_outcomes_in_words(outcome: Any, text: str) -> None:
    """An outcome shows its tag and its main detail."""
    assert text == outcome_text(outcome)


ROWS = [
    Row(
        ("0193b2c1", "max iterations", "11-21 13:00", "2h 1m", "12", "$12.35", "scripted:some", ""),
        "caution",
        "登录 with a very long description of what there is to be done here and there " * 2,
    ),
    Row(("0193b2c2", "unreadable", "", "", "", "", "", ""), "failure", "x" * 200),
]


@pytest.mark.parametrize("columns", [20, 40, 80, 100, 120, 200])
def test_table_at_any_width(columns: int) -> None:
    """No line reaches the last column, and colors change only the colors."""
    plain = paint(runs_fragments(ROWS, columns=columns), color=False)
    assert all(width(line) < max(columns, 26) for line in plain.splitlines())
    painted = paint(runs_fragments(ROWS, columns=columns), color=True)
    assert plain != painted
    assert plain == re.sub(r"\x1b\[[0-9;]*m", "", painted)


def test_table_at_40_columns() -> None:
    """On 40 columns a run takes several lines."""
    assert [
        "0193b2c1  max iterations",
        "  11-21 13:00  2h 1m  12 iterations",
        "  $12.35  scripted:some",
        "  登录 with a very long description ...",
        "0193b2c2  unreadable",
        f"  {'x' * 34}...",
    ] == paint(runs_fragments(ROWS, columns=40), color=False).splitlines()
