"""`cuggino simulate`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cuggino.simulation import STRATEGIES, Summary
from cuggino_cli.main import main
from cuggino_cli.screen.simulation import chart_lines
from tests.cli.cli import Cli
from tests.runs.test_state_summary import record

IN_MEMORY = [one for one in STRATEGIES if not one.in_clones]


def test_table_and_chart(cli: Cli) -> None:
    """The command prints seeds, odds, a row for each strategy, and the chart."""
    out, err = cli.both("simulate", "--seeds", "2", "--covers", "1")
    assert "2 runs of each strategy, seeds 1 to 2" in out
    assert "covers 100%" in out
    for strategy in IN_MEMORY:
        assert f"  {strategy.name} " in out
    assert '"done" is true' in out
    assert "" == err


def test_json_is_the_same_twice(cli: Cli) -> None:
    """The same seeds give the same figures."""
    outs = []
    for _ in range(2):
        assert 0 == main(["simulate", "--seeds", "2", "--seed", "7", "--json"])
        outs.append(json.loads(cli.printed().out))
    assert outs[0] == outs[1]
    assert [one["name"] for one in outs[0]["strategies"]] == [one.name for one in IN_MEMORY]
    assert outs[0]["seed"] == 7


def test_from_journals(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded runs give the odds, with what each rests on; an option overrides them."""
    monkeypatch.chdir(tmp_path)
    record(tmp_path, 1, "approved", planning=1.0, implementing=3.0)
    out = cli("simulate", "--seeds", "1", "--from-journals", "--planning", "9")
    assert "Estimated from 1 recorded run of the coding loop" in out
    assert re.search(r"^implementing +\$3\.00  1 session$", out, re.MULTILINE)
    assert "planning $9.00, implementing $3.00" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--right", "1.5"], "is not in the range"),
        (["--planning", "-1"], "is not in the range"),
        (["--seeds", "0"], "is not in the range"),
        (["--approves-wrong", "nan"], "--approves-wrong is not a number"),
        (["--planning", "inf"], "--planning is not a number"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, cli: Cli) -> None:
    """A figure that is impossible is one sentence, and exit code 2."""
    assert message in cli.err("simulate", *arguments)


def test_chart_places_each_strategy() -> None:
    """A strategy stands at its cost and its calibration; one that is never done is left out."""
    found = {
        "cheap": Summary(trials=10, done=10, true=5, missed=0, cost_usd=1.0, sessions=1.0),
        "never": Summary(trials=10, done=0, true=0, missed=3, cost_usd=1.5, sessions=1.0),
        "dear": Summary(trials=10, done=10, true=10, missed=0, cost_usd=2.0, sessions=1.0),
    }
    lines = chart_lines(found)
    assert lines[1] == " 100 % |" + " " * 59 + "c"
    assert lines[6] == "  50 % |" + " " * 30 + "a"
    assert "b" not in "".join(lines[1:12])
    assert lines[-1].endswith("$2.00 a run")
