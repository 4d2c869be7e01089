"""Whole runs whose reviews repeat themselves, or count fewer failures each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino_cli.main import main
from tests.cli.rounds import PLANS, implements, reviews as reviewing


@pytest.mark.real_agent
@pytest.mark.parametrize(
    ("reviews", "code"),
    [
        (["12 tests fail", "8 tests fail", "5 tests fail"], 0),
        (["- `page.py`: the title is missing"] * 3, 0),
        (["- `other.py`: the title is missing"] * 3, 14),
        (["Nothing works here at all."] * 3, 14),
    ],
)
def test_progress_is_no_stall(ready: Path, reviews: list[str], code: int) -> None:
    """Falling counts and work on the named file continue the run; unaddressed findings end it."""
    rounds = [f"<REQUEST_CHANGES>{review}</REQUEST_CHANGES>" for review in reviews]
    scenario = "".join(
        PLANS + implements("page.py", f"round {n}") + reviewing(said)
        for n, said in enumerate([*rounds, "<APPROVED>fine</APPROVED>"])
    )
    (ready / "scenario.toml").write_text(scenario)
    assert code == main(["run", "--focus", "x"])
