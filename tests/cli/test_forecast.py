"""The forecast and the statistics of runs at the command line, with a scripted agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino.config import Config, save_config
from tests.cli.cli import Cli
from tests.cli.recorded_runs import APPROVED, ONE, SAID, TWO, record
from tests.cli.rounds import APPROVES, PLANS, implements
from tests.git_project import GitProject, isolate_git

FORECAST = "[Forecast] Usually takes"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    isolate_git(monkeypatch, tmp_path / "home")
    made = GitProject(tmp_path / "project")
    made.write(".specs/a.md", "# A\n")
    made.write(".gitignore", ".cuggino/\nscenario.toml\n")
    costs = PLANS.replace("[[planning]]\n", "[[planning]]\ncost_usd = 0.25\n", 1)
    made.write("scenario.toml", costs + implements("a.txt", "a\n") + APPROVES)
    made.git("add", "-A")
    made.git("commit", "--quiet", "--message=begin")
    monkeypatch.chdir(made.root)
    settings = {"agent": "scripted:scenario.toml", "maxIterations": 1, "sandbox": "off"}
    save_config(made.root, Config.model_validate(settings))
    return made


def run(cli: Cli, *options: str) -> str:
    cli.printed()
    return cli("run", "--focus", "a", *options)


@pytest.mark.real_agent
def test_the_fourth_run(project: GitProject, cli: Cli) -> None:
    """Three runs make a forecast for the fourth, in every view; statistics count all of them."""
    for _ in range(3):
        assert FORECAST not in run(cli)
    shown = run(cli)
    assert FORECAST in shown
    assert "and costs $0.25; at most" in shown
    assert "and $0.25 in the last 3 runs" in shown
    assert shown.index(FORECAST) < shown.index("[Planning]")
    told = [json.loads(line) for line in run(cli, "--json").splitlines()]
    (made,) = [event for event in told if event["_tag"] == "Forecast"]
    assert ("run", 4, 0.25) == (made["loop"], made["runs"], made["cost_usd"])
    assert FORECAST not in run(cli, "--quiet")
    latest = json.loads(cli("runs", "--json").splitlines()[0])
    assert FORECAST in cli("runs", "replay", latest["run_id"])
    report = json.loads(cli("report", "--json"))
    assert "Forecast" in [notice["kind"] for notice in report["notices"]]
    stats = json.loads(cli("runs", "--stats", "--json"))
    assert 6 == stats["runs"]
    (loop,) = stats["loop"]
    assert ("run", 1.0, 1.5) == (loop["name"], loop["success"], loop["total_cost_usd"])
    (prompts,) = stats["prompts"]
    assert 8 == len(prompts["name"])
    assert {"planning", "implementing", "reviewing"} == {row["name"] for row in stats["role"]}


def test_stats_of_no_runs(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without runs there is a sentence, and with `--json` an object without rows."""
    monkeypatch.chdir(tmp_path)
    assert "There are no finished runs yet.\n" == cli("runs", "--stats")
    told = json.loads(cli("runs", "--stats", "--json"))
    assert (0, []) == (told["runs"], told["loop"])
    (tmp_path / ".cuggino/journal").mkdir(parents=True)
    (tmp_path / ".cuggino/journal/x.jsonl").write_text("x\ny\n")
    assert "no finished runs yet (1 cannot be read)." in cli("runs", "--stats")


TABLE = """\
LOOP          RUNS  SUCCESS  ITER   COST  TOTAL    TIME
run              2     100%     1  $1.25  $2.50  1m 40s

ROLE          RUNS  SUCCESS  ITER   COST  TOTAL    TIME
implementing     2     100%     1  $1.25  $2.50      0s
planning         2     100%     1                    0s

"""


def test_stats_as_tables(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group is a table, and the columns are explained."""
    monkeypatch.chdir(tmp_path)
    for run_id in (ONE, TWO):
        record(tmp_path, run_id, *SAID, *APPROVED, agent="a\x1b[2Jb")
    shown = cli("runs", "list", "--stats")
    assert shown.startswith(TABLE)
    assert "a␛[2Jb" in shown
    assert "\nunknown " in shown, "journals of older versions name no prompts"
    assert "SUCCESS: approved" in shown


def test_narrow_tables(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long names are cut."""
    monkeypatch.chdir(tmp_path)
    record(tmp_path, ONE, *SAID, *APPROVED, agent="an-agent-" * 20)
    lines = cli("runs", "--stats").splitlines()
    assert any("..." in line for line in lines)
    assert max(map(len, lines)) <= 100
