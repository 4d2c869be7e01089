"""Whole runs whose reviews repeat themselves, or count fewer failures each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino_cli.main import main

_ROUND = """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan"
[[planning.steps]]
say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"
[[implementing]]
[[implementing.steps]]
write = "page.py"
text = "round {n}"
[[implementing.steps]]
say = "<DONE>done</DONE>"
[[reviewing]]
[[reviewing.steps]]
say = "<REQUEST_CHANGES>{review}</REQUEST_CHANGES>"
"""
_APPROVED = _ROUND.replace("REQUEST_CHANGES", "APPROVED")


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
    """Falling counts and work on the named file continue, what nobody touched ends the run."""
    rounds = [_ROUND.format(n=n, review=review) for n, review in enumerate(reviews)]
    scenario = "".join([*rounds, _APPROVED.format(n=len(reviews), review="fine")])
    (ready / "scenario.toml").write_text(scenario)
    assert code == main(["run", "--focus", "x"])
