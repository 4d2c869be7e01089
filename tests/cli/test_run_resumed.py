"""The end of a `cuggino run` that was cut off, and of a resumed one."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cuggino.storage import Workspace, list_journals
from cuggino_cli.main import main
from tests.cli.cli import Cli

_ON = """
[[planning]]
cost_usd = 1.0
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan"
[[planning.steps]]
usage = { input_tokens = 900, output_tokens = 30 }
[[planning.steps]]
say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"
[[implementing]]
cost_usd = 0.25
"""
BROKEN = _ON + "steps = [{ exit = 3 }]\n"
WORKING = (
    _ON
    + """
[[implementing.steps]]
usage = { input_tokens = 50, output_tokens = 7 }
[[implementing.steps]]
say = "<DONE>done</DONE>"
[[reviewing]]
cost_usd = 0.5
[[reviewing.steps]]
say = "<APPROVED>fine</APPROVED>"
"""
)


def went_on_for(seconds: float, journal: Path) -> None:
    """Move the journal's last entry forward by this much time."""
    *before, last = journal.read_text().splitlines()
    entry = json.loads(last)
    entry["at"] = (datetime.fromisoformat(entry["at"]) + timedelta(seconds=seconds)).isoformat()
    journal.write_text("\n".join([*before, json.dumps(entry, separators=(",", ":"))]) + "\n")


def test_without_a_journal_it_cannot_be_resumed(ready: Path, cli: Cli) -> None:
    """The summary of a run without a journal does not offer to resume it."""
    (ready / "scenario.toml").write_text(BROKEN)
    config = ready / ".cuggino.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "journal": False}))
    told = "".join(cli.both("run", "--focus", "x", "--max-retries=0", code=1))
    assert "`cuggino run` starts over: a run without a journal cannot be resumed" in told
    assert "--resume" not in told


@pytest.mark.parametrize(
    ("limit", "option"), [("--max-tokens=100", "--max-tokens"), ("--budget=0.5", "--budget")]
)
def test_a_spent_budget_shows_once_how_to_resume(
    ready: Path, cli: Cli, limit: str, option: str
) -> None:
    """The summary shows how to resume, the error which limit to raise, each once."""
    (ready / "scenario.toml").write_text(WORKING)
    said = cli.both("run", "--focus", "x", limit, code=13)
    assert "`cuggino run --resume` continues where it stopped" in said.out
    assert said.err.endswith(f"\n  resume with a larger `{option}`\n")
    both = said.out + said.err
    assert (1, 1) == (both.count("--resume"), both.count(f"larger `{option}`"))


def test_a_spent_budget_of_a_watch(ready: Path, cli: Cli) -> None:
    """A watch with a spent budget is resumed by `cuggino watch`, and prints no other advice."""
    (ready / "scenario.toml").write_text(WORKING)
    settings = json.loads((ready / ".cuggino.json").read_text())
    (ready / ".cuggino.json").write_text(json.dumps({**settings, "settleSeconds": 0.1}))
    assert 0 == main(["backlog", "add", "Log in"])
    said = cli.both("watch", "--max-tokens", "100", code=13)
    assert "`cuggino watch` continues where it stopped" in said.out
    assert "--resume" not in said.out + said.err


def test_the_summary_counts_all_processes(ready: Path, cli: Cli) -> None:
    """Duration, cost and tokens of a resumed run add up over its processes."""
    (ready / "scenario.toml").write_text(BROKEN)
    assert 1 == main(["run", "--focus", "x", "--max-retries", "0"])
    (journal,) = list_journals(Workspace(ready).journal)
    went_on_for(3600, journal)
    cli.printed()
    (ready / "scenario.toml").write_text(WORKING)
    out = cli("run", "--resume")
    summary = dict(re.findall(r"^  (\w+) +(.+)$", out[out.index("[Summary] Approved") :], re.M))
    assert "1h 0m" == summary["Duration"]
    assert "$1.75" == summary["Cost"]
    assert "987" == summary["Tokens"]
