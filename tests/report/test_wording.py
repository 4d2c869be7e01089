"""Durations, counts and outcomes in words."""

from __future__ import annotations

from typing import Any

from cuggino.report.wording import duration, first_line, outcome
from cuggino.runs.words import counted
from tests.vectors import each


@each(
    "seconds, words",
    [
        (-1, "0 ms"),
        (0.04, "40 ms"),
        (0.9996, "1.0 s"),
        (2.44, "2.4 s"),
        (9.96, "10 s"),
        (59.6, "1 m"),
        (90, "1 m 30 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 m"),
        (86399, "1 d"),
        (273600, "3 d 4 h"),
        (float("inf"), "11574 d 2 h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    """A duration has at most two units, rounded."""
    assert words == duration(seconds)


def test_words() -> None:
    """Counts and first lines are short."""
    assert ["1 file", "2,000 files", "2 processes"] == [
        counted(1, "file"),
        counted(2000, "file"),
        counted(2, "process", "processes"),
    ]
    assert ["two", "", "aa…"] == [
        first_line("\n two \nx"),
        first_line(" \n"),
        first_line("aaaa", 3),
    ]


@each(
    "value, words",
    [
        (None, ""),
        ({"value": None}, ""),
        ({"value": "0f1e"}, "0f1e"),
        ({"time": "2026-11-20T21:00:00Z"}, "2026-11-20T21:00:00Z"),
        ({"_tag": "Done", "content": "Task 2\nmore"}, "Done: Task 2"),
        ({"_tag": "CheckCommandOutput", "exit_code": 1}, "CheckCommandOutput: exit code 1"),
        ({"_tag": "WatchBacklogWaiting"}, "WatchBacklogWaiting"),
        ([1], "[1]"),
    ],
)
def test_outcomes(value: Any, words: str) -> None:
    """An outcome is one line."""
    assert words == outcome(value)
