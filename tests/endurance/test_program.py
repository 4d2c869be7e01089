"""The endurance program on small inputs: it counts, compares, and finds faults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.endurance.kills import kill_in_series
from tests.endurance.place import ROOT
from tests.endurance.trials import TRIALS
from tests.limits import LIMIT

pytestmark = pytest.mark.real_agent  # many processes for a long time: with the second command


@pytest.mark.parametrize("command", ["run", "watch"])
def test_kills_of_one_command(command: str) -> None:
    """Each series is a row of the table, and the kills are counted."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.endurance", command, "--count", "4"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)
    head, _rule, row, total = done.stdout.splitlines()
    assert (
        "| command | seed | kills | at start | in a stage | at a commit | seconds | result |"
        == head
    )
    assert row.startswith(f"| {command} | 1 | ")
    assert row.endswith(" | ok |")
    assert total == f"{row.split(' | ')[2]} kills: " + total.partition(": ")[2]


def test_differing_outcome(tmp_path: Path) -> None:
    """A history, a file or a process that should not be there is a problem."""
    trial, root = TRIALS["loop"], tmp_path / "loop"
    expected = {"history": "another history"}
    series = kill_in_series(trial, root, seed=1, most=0, expected=expected)
    (problem,) = series.problems
    assert problem.startswith("history differs:\n")
    assert "-another history" in problem
