"""`cuggino run` with agents of roles and fallbacks, configured in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.storage import Workspace, list_journals, read_journal
from cuggino.testing import no_leaks
from cuggino_cli.main import main
from tests.cli.falling import (
    HALF,
    IMPLEMENTS,
    LIMIT,
    PLANS,
    REVIEWS,
    Lines,
    Loose,
    fallen,
    scenarios,
    typed,
)
from tests.cli.stamps import unstamped


class TestRun:
    def test_another_takes_over(self, ready: Path, said: Lines) -> None:
        """The fallback repeats the task, keeps the first agent's files, and both costs count."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS + REVIEWS)
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        with no_leaks():
            code = main(["run", "--focus", "x", "--json"])
        events = said()
        assert 0 == code
        assert isinstance(events[-1], ev.LoopApproved)
        names = ("scripted:a.toml", "scripted:b.toml")
        assert [("implementing", *names, "quota")] == fallen(events)
        costs = {event.phase: event.cost_usd for event in events if isinstance(event, ev.StageCost)}
        assert pytest.approx(0.05) == costs["implementing"]
        assert "by a" == (ready / "half.txt").read_text()
        assert "by b" == (ready / "whole.txt").read_text()

    def test_the_output(self, ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """One line names both agents, the role, the reason and the end of the cooldown."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS + REVIEWS)
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        assert 0 == main(["run", "--focus", "x"])
        (line,) = [x for x in unstamped(capfd.readouterr().out) if "Falling back" in x]
        what = "[Agent] Falling back from scripted:a.toml to scripted:b.toml as implementing"
        assert line.startswith(f"{what} (quota until 2")
        assert line.endswith(": You've hit your limit")

    def test_each_role_its_agent(self, ready: Path, said: Lines) -> None:
        """Configured roles keep their agents; `--agent` applies to the other roles."""
        scenarios(ready, a=PLANS, b=IMPLEMENTS, c=REVIEWS)
        typed(
            ready,
            """{
              "agent": "nobody",
              "agents": {
                "implementing": "scripted:b.toml",
                "reviewing": {"agent": "scripted:c.toml", "model": "opus"}
              }
            }""",
        )
        assert 0 == main(["run", "--focus", "x", "--json", "--agent", "scripted:a.toml"])
        events = said()
        assert isinstance(events[-1], ev.LoopApproved)
        assert [] == fallen(events)
        (path,) = list_journals(Workspace(ready).journal)
        started = read_journal(path).started
        assert isinstance(started, ev.RunStarted)
        assert "scripted:a.toml" == started.agent

    def test_a_missing_agent(self, ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """A missing program is reported at the start, and its fallback works."""
        scenarios(ready, b=PLANS + IMPLEMENTS + REVIEWS)
        typed(ready, '{"agentPath": "./missing", "fallback": ["scripted:b.toml"]}')
        assert 0 == main(["run", "--focus", "x", "--json"])
        out, err = capfd.readouterr()
        events = [ev.parse_event(line) for line in out.splitlines()]
        assert [("planning", "claude", "scripted:b.toml", "not_found")] == fallen(events)
        assert err.startswith("cuggino: claude cannot work: the agent program")

    def test_no_agent_is_left(self, ready: Path, said: Lines) -> None:
        """When every agent hits its limit the run ends with 12 and can be resumed."""
        scenarios(
            ready,
            a=PLANS + HALF,
            b="[[implementing]]\n" + LIMIT.format(role="implementing").replace("3600", "1800"),
            c=IMPLEMENTS + REVIEWS,
        )
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        assert 12 == main(["run", "--focus", "x", "--json"])
        assert 1 == len(fallen(said()))
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:c.toml"]}')
        scenarios(ready, a="[[implementing]]\n" + LIMIT.format(role="implementing"))
        assert 0 == main(["run", "--resume", "--json"])
        assert isinstance(said()[-1], ev.LoopApproved)

    def test_a_fallback_is_guarded_too(self, ready: Path, said: Lines) -> None:
        """The fallback has the write permissions of the role and no more."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS.replace("whole.txt", ".specs/login.md"))
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        main(["run", "--focus", "x", "--json", "--no-sandbox"])
        events = said()
        assert 1 == len(fallen(events))
        assert 1 == sum(isinstance(event, ev.GuardDenied) for event in events)
        assert "# Login\n" == (ready / ".specs" / "login.md").read_text()

    def test_a_fallback_without_a_guard(
        self, ready: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """A fallback without guard support is rejected at the start, unless the guard is off."""
        scenarios(ready, a=PLANS + IMPLEMENTS + REVIEWS)
        spare = f"{Loose.__module__}:Loose"
        typed(ready, json.dumps({"agent": "scripted:a.toml", "fallback": [spare]}))
        assert 2 == main(["run", "--focus", "x"])
        err = capfd.readouterr().err
        assert f"{spare}, one of the agents for planning, has no guard" in err
        assert not (ready / ".cuggino").exists()
        typed(ready, json.dumps({"agent": "scripted:a.toml", "fallback": [spare], "guard": "off"}))
        assert 0 == main(["run", "--focus", "x"])

    def test_an_unguarded_role_is_reported(
        self, ready: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """An agent without guard support is reported at the start with its role."""
        scenarios(ready, a=PLANS + IMPLEMENTS)
        spare = f"{Loose.__module__}:Loose"
        typed(ready, json.dumps({"agent": "scripted:a.toml", "agents": {"reviewing": spare}}))
        assert 1 == main(["run", "--focus", "x"])
        expected = f"{spare} (reviewing) is unguarded: nothing limits it to its role"
        assert f"cuggino: {expected}" in capfd.readouterr().err.splitlines()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                '{"agents": {"reviwing": "claude"}}',
                '.cuggino.json: unknown key "reviwing" in "agents"',
            ),
            (
                '{"agents": {"reviewing": "cladue"}}',
                '.cuggino.json: "agents.reviewing": unknown agent "cladue"',
            ),
            (
                '{"fallback": ["claude", "scripted:no.toml"]}',
                '.cuggino.json: "fallback[1]": scenario ',
            ),
        ],
    )
    @pytest.mark.parametrize("command", [["run", "-f", "x"], ["watch"], ["deliver"], ["loop"]])
    def test_invalid_settings(
        self,
        command: list[str],
        text: str,
        message: str,
        ready: Path,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """Every loop reports the error and its place in one sentence, and exits with 2."""
        typed(ready, text)
        assert 2 == main(command)
        assert capfd.readouterr().err.startswith(f"cuggino: {message}")
