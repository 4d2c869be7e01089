"""`cuggino run` with agents of roles, and others that take over, from the file a user typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino.events import (
    GuardDenied,
    LoopApproved,
    RunStarted,
    StageCost,
    parse_event,
)
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


class TestRun:
    def test_another_takes_over(self, ready: Path, said: Lines) -> None:
        """The second agent does the task anew, the first one's files stay, both are paid for."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS + REVIEWS)
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        with no_leaks():
            code = main(["run", "--focus", "x", "--json"])
        events = said()
        assert 0 == code
        assert isinstance(events[-1], LoopApproved)
        names = ("scripted:a.toml", "scripted:b.toml")
        assert [("implementing", *names, "quota")] == fallen(events)
        costs = {event.phase: event.cost_usd for event in events if isinstance(event, StageCost)}
        assert pytest.approx(0.05) == costs["implementing"]
        assert "by a" == (ready / "half.txt").read_text()
        assert "by b" == (ready / "whole.txt").read_text()

    def test_what_a_person_sees(self, ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """One line says who takes over from whom, as what, why, and until when."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS + REVIEWS)
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        assert 0 == main(["run", "--focus", "x"])
        (line,) = [x for x in capfd.readouterr().out.splitlines() if "takes over" in x]
        assert line.startswith(
            "[Agent] scripted:b.toml takes over from scripted:a.toml as implementing (quota until 2"
        )
        assert line.endswith(": You've hit your limit")

    def test_each_role_its_agent(self, ready: Path, said: Lines) -> None:
        """Roles have the agents of the file; `--agent` is for those that it names none for."""
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
        assert isinstance(events[-1], LoopApproved)
        assert [] == fallen(events)
        (path,) = list_journals(Workspace(ready).journal)
        started = read_journal(path).started
        assert isinstance(started, RunStarted)
        assert "scripted:a.toml" == started.agent

    def test_one_that_is_not_there(self, ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """A program that is missing is told at the start, and the next one works."""
        scenarios(ready, b=PLANS + IMPLEMENTS + REVIEWS)
        typed(ready, '{"agentPath": "./missing", "fallback": ["scripted:b.toml"]}')
        assert 0 == main(["run", "--focus", "x", "--json"])
        out, err = capfd.readouterr()
        events = [parse_event(line) for line in out.splitlines()]
        assert [("planning", "claude", "scripted:b.toml", "not_found")] == fallen(events)
        assert err.startswith("cuggino: claude cannot work: the agent program")

    def test_nobody_is_left(self, ready: Path, said: Lines) -> None:
        """When all are out of usage the run ends as without others: 12, and it can be resumed."""
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
        assert isinstance(said()[-1], LoopApproved)

    def test_who_takes_over_is_held_too(self, ready: Path, said: Lines) -> None:
        """The second agent may write no more than the role may."""
        scenarios(ready, a=PLANS + HALF, b=IMPLEMENTS.replace("whole.txt", ".specs/login.md"))
        typed(ready, '{"agent": "scripted:a.toml", "fallback": ["scripted:b.toml"]}')
        main(["run", "--focus", "x", "--json"])
        events = said()
        assert 1 == len(fallen(events))
        assert 1 == sum(isinstance(event, GuardDenied) for event in events)
        assert "# Login\n" == (ready / ".specs" / "login.md").read_text()

    def test_one_that_cannot_be_held(self, ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
        """A fall-back without a guard is refused at the start; with the guard off it is not."""
        scenarios(ready, a=PLANS + IMPLEMENTS + REVIEWS)
        spare = f"{Loose.__module__}:Loose"
        typed(ready, json.dumps({"agent": "scripted:a.toml", "fallback": [spare]}))
        assert 2 == main(["run", "--focus", "x"])
        err = capfd.readouterr().err
        assert f"{spare}, one of the agents for planning, cannot be held by the guard" in err
        assert not (ready / ".cuggino").exists()
        typed(ready, json.dumps({"agent": "scripted:a.toml", "fallback": [spare], "guard": "off"}))
        assert 0 == main(["run", "--focus", "x"])

    def test_a_role_that_nobody_holds_is_told(
        self, ready: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """An agent without a guard that works alone is told at the start, with its role."""
        scenarios(ready, a=PLANS + IMPLEMENTS)
        spare = f"{Loose.__module__}:Loose"
        typed(ready, json.dumps({"agent": "scripted:a.toml", "agents": {"reviewing": spare}}))
        assert 1 == main(["run", "--focus", "x"])
        expected = f"there is no guard for {spare} (reviewing): nothing holds it to its role"
        assert f"cuggino: {expected}" in capfd.readouterr().err.splitlines()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                '{"agents": {"reviwing": "claude"}}',
                '.cuggino.json: unknown role "reviwing" in "agents"',
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
    def test_what_cannot_be_used(
        self,
        command: list[str],
        text: str,
        message: str,
        ready: Path,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        """Every loop says in one sentence what is wrong and where, and ends with 2."""
        typed(ready, text)
        assert 2 == main(command)
        assert capfd.readouterr().err.startswith(f"cuggino: {message}")
