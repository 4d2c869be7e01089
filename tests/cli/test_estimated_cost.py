"""The cost of an agent that reports no dollars, from the command line: limits and every view."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.agents import Capabilities
from cuggino.testing import InMemoryAgent, no_leaks
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.falling import Lines

SESSIONS = """
[[planning]]
model = "{model}"
[[planning.steps]]
usage = {{ input_tokens = 20000, output_tokens = 1000, cache_read_tokens = 100000 }}
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan\\n\\n- [ ] one\\n"
[[planning.steps]]
say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"
[[implementing]]
model = "{model}"
[[implementing.steps]]
usage = {{ input_tokens = 100000, output_tokens = 20000, cache_read_tokens = 1000000 }}
[[implementing.steps]]
run = "{work}"
[[implementing.steps]]
say = "<DONE>all of it</DONE>"
[[reviewing]]
cost_usd = 0.5
[[reviewing.steps]]
say = "<APPROVED>fine</APPROVED>"
"""
"""With gpt-5.5, planning costs $0.18 and implementing $1.60."""


class Tokens(InMemoryAgent):
    """An agent that is known to report no dollars."""

    def __init__(self) -> None:
        super().__init__({})

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(cost="tokens")


def plays(folder: Path, *, model: str = "gpt-5.5", work: str = "true", **config: object) -> None:
    (folder / "scenario.toml").write_text(SESSIONS.format(model=model, work=work))
    settings = {"agent": "scripted:scenario.toml", **config}
    (folder / ".cuggino.json").write_text(json.dumps(settings))


def run(*words: str) -> int:
    with no_leaks():
        return main(["run", "--focus", "x", *words])


def test_marked_in_every_view(ready: Path, cli: Cli) -> None:
    """An estimate, and a sum with one, is marked wherever money is shown."""
    plays(ready)
    assert 0 == run()
    shown = cli.printed().out
    assert "[Planning] 0s, ~$0.18, 21.0k tokens (run total ~$0.18)" in shown
    assert "$0.50 (run total ~$2.28)" in shown  # the reviewer reports dollars
    assert "  Cost       ~$2.28\n" in shown

    def output(*words: str) -> str:
        assert main([*words]) in (0, 3)  # 3: nothing is at work
        return cli.printed().out

    run_id = json.loads(output("runs", "--json"))["run_id"]
    assert "~$2.28" in output("runs")
    assert "  Cost       ~$2.28\n" in output("runs", "show", run_id)
    assert "  Cost       ~$2.28, 141,000 tokens\n" in output("status")
    told = json.loads(output("runs", "--json"))
    assert (2.28, True) == (round(told["cost_usd"], 6), told["cost_estimated"])
    rows = json.loads(output("runs", "--stats", "--json"))["role"]
    assert {"planning": True, "implementing": True, "reviewing": False} == {
        row["name"]: row["cost_estimated"] for row in rows
    }
    assert "~$2.28" in output("runs", "--stats")
    status = json.loads(output("status", "--json"))["last"]
    assert (2.28, True) == (round(status["cost_usd"], 6), status["cost_estimated"])
    report = json.loads(output("report", run_id, "--json"))
    assert (2.28, True) == (report["cost_usd"], report["cost_estimated"])
    assert {"planning": True, "implementing": True, "reviewing": False} == {
        one["role"]: one["cost_estimated"] for one in report["roles"] if one["cost_usd"]
    }
    stages = {one["kind"]: one["cost_estimated"] for one in report["stages"]}
    assert (True, False) == (stages["planning"], stages["reviewing"])
    output("report", run_id, "-o", "page.html")
    page = (ready / "page.html").read_text(encoding="utf-8")
    assert "~$2.28" in page
    assert "~$1.60" in page
    assert "~$0.50" not in page
    assert "$0.50" in page


def test_the_budget_cuts_the_running_agent(ready: Path, cli: Cli) -> None:
    """The session that exceeds the budget is cut at once, with exit code 13."""
    plays(ready, work="sleep 60; touch late")
    assert 13 == run("--budget", "1")
    out, err = cli.printed()
    assert "[Budget] 178% of the cost spent: ~$1.78 of $1.00" in out
    assert "The budget of the run is used up: ~$1.78 of $1.00 spent" in err
    assert not (ready / "late").exists()


def test_an_unknown_price_ends_a_run_with_a_budget(ready: Path, cli: Cli) -> None:
    """Nothing continues whose cost is unknown, and the message says what to set."""
    plays(ready, model="gpt-99")
    assert 13 == run("--budget", "1")
    out, err = cli.printed()
    why = 'scripted reports no dollars, and the price of its model "gpt-99" is unknown'
    assert f"[Budget] Unknown cost: {why}" in out
    assert "[Implementing] ▶" not in out
    assert f"The budget of $1.00 cannot hold: {why}" in err
    assert "--price-as claude-sonnet-4-5" in err


def test_price_as(ready: Path, said: Lines) -> None:
    """The named model prices an unknown one, by option or setting."""
    for words, settings in (
        (("--price-as", "gpt-5.5"), {}),
        ((), {"priceAs": "gpt-5.5"}),
    ):
        plays(ready, model="gpt-99", **settings)
        assert 0 == run("--budget", "5", "--json", *words)
        costs = [event for event in said() if isinstance(event, ev.StageCost)]
        # 5 dollars for a million input tokens; output counts five times as much.
        assert [pytest.approx(0.175), pytest.approx(1.5), 0.5] == [one.cost_usd for one in costs]
        assert [True, True, False] == [one.cost_estimated for one in costs]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--price-as", "gpt-99"), 'the price of "gpt-99" in priceAs is unknown'),
        (
            ("--budget", "1", "--agent", "tests.cli.test_estimated_cost:Tokens"),
            "The budget of $1.00 cannot hold: memory reports no dollars, and the price of its "
            'model "gpt-99" is unknown',
        ),
    ],
)
def test_refused_at_the_start(words: tuple[str, ...], message: str, ready: Path, cli: Cli) -> None:
    """What is known before the first agent is an error of configuration."""
    plays(ready, commit=False, guard="off")
    (ready / ".cuggino.json").write_text(
        json.dumps({"agent": "scripted:scenario.toml", "model": "gpt-99", "guard": "off"})
    )
    assert 2 == run(*words)
    out, err = cli.printed()
    assert message in err
    assert "[Loop]" not in out


@pytest.mark.parametrize(("count", "code"), [("weighted", 13), ("plain", 0)])
def test_tokens_are_counted_as_configured(count: str, code: int, ready: Path, cli: Cli) -> None:
    """A limit of tokens counts by price, unless the setting says otherwise."""
    plays(ready, maxTokens=200_000, countTokens=count)
    assert code == run()
    out, err = cli.printed()
    # 35,000 by planning, and 300,000 by implementing.
    weighted = "335,000 of 200,000 weighted tokens"
    assert (weighted in err) is (count == "weighted")
    assert (f"[Budget] 168% of the tokens spent: {weighted}" in out) is (count == "weighted")
    main(["status"])
    shown = weighted if count == "weighted" else "141,000 of 200,000 tokens"
    assert f", {shown}\n" in cli.printed().out
