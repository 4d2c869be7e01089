"""`cuggino doctor` on agents of roles and on fallbacks."""

from __future__ import annotations

import json
from pathlib import Path

from cuggino._version import __version__
from tests.cli.looking import look_at_all
from tests.cli.test_doctor import fake_claude


def test_all_agents_of_the_configuration(ready: Path) -> None:
    """Agents of roles and fallbacks are checked too, with their purpose."""
    raw = {
        "agent": "scripted:scenario.toml",
        "agents": {"audit": "nobody", "judge": {"model": "m"}},
        "fallback": [{"agent": "claude", "path": fake_claude(ready.parent, "1.0.0")}, "nobody"],
    }
    (ready / ".cuggino.json").write_text(json.dumps(raw), encoding="utf-8")
    found = look_at_all(ready)
    agents = [(finding.status, finding.what) for finding in found if "agent" in finding.what[:6]]
    assert [
        ("ok", f"agent: scripted:scenario.toml {__version__}"),
        ("problem", 'agent (audit, fall-back): unknown agent "nobody"'),
    ] == agents[:2]
    ((status, what),) = agents[2:]
    assert "problem" == status
    assert what.startswith("agent (fall-back): ")
    only = look_at_all(ready, agent="scripted:scenario.toml")
    assert 1 == sum(finding.what.startswith("agent") for finding in only)


def test_a_budget_that_cannot_hold(ready: Path) -> None:
    """A budget is checked against what the agents report, without starting any."""

    def found(**settings: object) -> list[tuple[str, str]]:
        raw = {"agent": "scripted:scenario.toml", **settings}
        (ready / ".cuggino.json").write_text(json.dumps(raw), encoding="utf-8")
        results = look_at_all(ready)
        return [(one.status, one.what) for one in results if one.what.startswith("budget")]

    assert [] == found()
    assert [] == found(budget=5)
    silent = {"budget": 5, "fallback": [{"agent": "codex", "model": "gpt-99"}]}
    ((status, what),) = found(**silent)
    assert "problem" == status
    assert "The budget of $5.00 cannot hold: codex reports no dollars" in what
    assert [] == found(**silent, priceAs="gpt-5.5")
    ((status, what),) = found(budget=5, fallback=["codex"])
    assert "note" == status
    assert "an unknown model ends the run" in what
    ((status, what),) = found(budget=5, fallback=["acp:kimi"])
    assert "note" == status
    assert "acp:kimi reports neither dollars nor tokens" in what
    ((status, what),) = found(priceAs="gpt-99")
    assert ("problem", 'budget: the price of "gpt-99" in priceAs is unknown') == (status, what)


def test_an_agent_of_a_role_is_guarded(ready: Path) -> None:
    """An agent's guard is reported with its role; an agent without one is a problem."""
    raw = {
        "agent": "scripted:scenario.toml",
        "agents": {"audit": "scripted:scenario.toml", "judge": "tests.cli.falling:Loose"},
        "fallback": [{"agent": "scripted:scenario.toml", "path": "x"}],
    }
    (ready / ".cuggino.json").write_text(json.dumps(raw), encoding="utf-8")
    found = look_at_all(ready, trusted=True)
    guards = [finding for finding in found if finding.what.startswith("guard")]
    assert ["ok", "problem", "ok"] == [finding.status for finding in guards]
    assert guards[1].what.startswith("guard (judge): tests.cli.falling")
    assert guards[2].what.startswith("guard (fall-back): roles (")
