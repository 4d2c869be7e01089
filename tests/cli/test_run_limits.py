"""`cuggino run` at its limits: usage limits, repetition, refused logins, commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.cli import Cli
from tests.cli.falling import LIMIT
from tests.cli.rounds import APPROVES, PLANS, implements
from tests.cli.stamps import unstamped

AGENT = {"agent": "scripted:scenario.toml"}
REFUSED = """
[[implementing]]
[[implementing.steps]]
fail = { status = 401, error = "authentication_failed", text = "Please run /login" }
"""
REPEATS = "\n[[implementing]]" + "\n[[implementing.steps]]\nrun = 'ls'" * 100
"""It is still at work when it is found to repeat itself."""


@pytest.mark.parametrize(
    ("agent", "settings", "code", "reason"),
    [
        (
            "\n[[implementing]]" + LIMIT.format(role="implementing"),
            {"waitForQuota": True, "maxQuotaWait": 3000},
            12,
            "the wait is too long, see maxQuotaWait",
        ),
        (REFUSED, {"maxRetries": 5}, 1, "/login"),
        (REPEATS, {"repetitionLimit": 3}, 14, "called Bash 3 times in a row"),
    ],
    ids=["usage limit", "login", "repetition"],
)
def test_what_ends_a_run(
    agent: str,
    settings: dict[str, object],
    code: int,
    reason: str,
    ready: Path,
    cli: Cli,
) -> None:
    """Failures that no wait or retry can fix end the run at once, with an exit code and a hint."""
    (ready / "scenario.toml").write_text(f"repeat = true\n{PLANS}{agent}")
    (ready / ".cuggino.json").write_text(json.dumps(AGENT | settings))
    assert reason in " ".join(cli.err("run", "--focus", "x", code=code).split())


def test_a_check_that_does_not_end(ready: Path, cli: Cli) -> None:
    """A check command is announced, and ended at `commandTimeout`."""
    (ready / "scenario.toml").write_text(PLANS + implements() + APPROVES)
    settings = {"checkCommand": "sleep 1000", "commandTimeout": 0.2, "gate": "block"}
    (ready / ".cuggino.json").write_text(json.dumps({**AGENT, **settings, "maxIterations": 1}))
    printed = " ".join(unstamped(cli("run", "--focus", "x", code=11)))
    assert "[Check] Running: sleep 1000 [Check] Failed (exit 124)" in printed


SPENDS = """
[[planning]]
cost_usd = 0.5
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan"
[[planning.steps]]
say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"
"""


def test_a_spent_budget_is_no_failure(ready: Path, cli: Cli) -> None:
    """The summary says what ended the run, and how to go on; no stage is blamed for it."""
    (ready / "scenario.toml").write_text(SPENDS + implements() + APPROVES)
    (ready / ".cuggino.json").write_text(json.dumps(AGENT))
    printed = cli.both("run", "the page", "--budget", "0.3", code=13)
    assert "[Summary] Budget spent" in printed.out
    assert (
        "`cuggino run --resume` continues where it stopped; give it a larger limit" in printed.out
    )
    assert "cuggino: The budget of the run is used up: $0.50 of $0.30 spent" in printed.err
    assert "Loop error" not in printed.err
