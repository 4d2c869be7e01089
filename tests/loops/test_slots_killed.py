"""`kill -9` of a watch with slots, and of a run with hands; `python -m tests.endurance kills slots
hands` does it often."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.endurance.agent import TASKS
from tests.endurance.kills import finish, kill_in_series
from tests.endurance.trials import TRIALS

pytestmark = pytest.mark.real_agent  # many processes for a long time: with the second command


def test_killed_hands_land_the_same_tasks(tmp_path: Path) -> None:
    """The tree is that of an undisturbed run, no agent is paid twice, and no process is left."""
    trial = TRIALS["hands"]
    undisturbed = trial.make(tmp_path / "undisturbed")
    assert [] == [*finish(trial, undisturbed), *undisturbed.problems()]
    expected = trial.outcome(undisturbed)
    assert [] == expected["result"]
    assert TASKS == str(expected["history"]).count("feat: word-")
    series = kill_in_series(trial, tmp_path / "killed", seed=7, most=3, expected=expected)
    assert [] == series.problems
    assert series.kills.total() > 0


def test_a_killed_watch_lands_the_same_items(tmp_path: Path) -> None:
    """No item lands twice, no process is left, and the user's tree is clean."""
    trial = TRIALS["slots"]
    undisturbed = trial.make(tmp_path / "undisturbed")
    assert [] == [*finish(trial, undisturbed), *undisturbed.problems()]
    expected = trial.outcome(undisturbed)
    landed, red, waiting = cast("tuple[list[str], list[str], str]", expected["history"])
    assert [*(f"word-{n}.md" for n in range(1, 7))] == [item for item in landed if item]
    assert ([], "") == (red, waiting)
    series = kill_in_series(trial, tmp_path / "killed", seed=7, most=3, expected=expected)
    assert [] == series.problems
    assert series.kills.total() > 0
