"""The scripted agent in each role: runs, failures, and rejected scenario files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from cuggino.agents import Role
from cuggino.agents.scripted.scenario import Scenario, load_scenario
from cuggino.errors import AgentFailed, ConfigError, QuotaExceeded
from cuggino.events import RateLimited
from tests.agents.claude.claude_lines import kind
from tests.agents.scripted.test_agent import Player, run, steps

ROLES = get_args(Role)


class RolePlayer(Player):
    """An agent with runs for a single role."""

    def __init__(self, folder: Path, role: str, *runs: dict[str, Any]) -> None:
        super().__init__(folder, **{role: runs})
        self.role = role

    def play(self, **changes: Any) -> str:
        return super().play(role=self.role, **changes)


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_runs(role: str, tmp_path: Path) -> None:
    """A role plays its own runs in order, skips those of earlier turns, and then has no more."""
    player = RolePlayer(tmp_path, role, run("a", cost_usd=0.5), run("b"), run("c"))
    assert "a" == player.turn(1)
    assert 0.5 == player.ended.cost_usd
    assert "c" == player.turn(3)
    player.turn(4)
    assert isinstance(player.error, AgentFailed)
    assert f"the scenario has no run 4 for the role {role}" == player.error.message


def test_an_agent_without_a_role(tmp_path: Path) -> None:
    """It has no runs, and the failure names the option."""
    player = RolePlayer(tmp_path, "coding", run("a"))
    player.role = ""
    player.turn(1)
    assert isinstance(player.error, AgentFailed)
    assert "for an agent without a role (`SpawnOptions.role`)" in player.error.message


@pytest.mark.parametrize("role", ["initializer", "coding", "sync", "verify"])
def test_every_role_can_fail(role: str, tmp_path: Path) -> None:
    """Limits, errors and exits end a session of the role, and a resumed one continues."""
    limit = {"limit": {"resets_in": 60.0}}
    player = RolePlayer(
        tmp_path,
        role,
        run(limit, {"fail": {"status": 429}}, cost_usd=0.25),
        run("one", {"fail": {"status": 529}}, "two"),
        run({"exit": 7, "text": "no memory"}, resumed=steps("three")),
    )
    player.play()
    assert isinstance(player.error, QuotaExceeded)
    (told,) = (event for event in player.events if isinstance(event, RateLimited))
    assert (0.25, told.resets_at) == (player.ended.cost_usd, player.error.resets_at)
    played = [player.play(session_id="s"), kind(player.error)]
    played += [player.play(resume_session_id="s"), kind(player.error)]
    assert ["one", "overloaded", "two", kind(None)] == played
    player.play(session_id="t")
    assert isinstance(player.error, AgentFailed)
    assert "no memory" in player.error.message
    assert "three" == player.play(resume_session_id="t")


def test_the_roles_of_a_scenario() -> None:
    """A scenario has exactly one section per role, and one for the project manager."""
    assert set(ROLES) | {"pause", "repeat", "pm"} == set(Scenario.model_fields)


@pytest.mark.parametrize(
    ("step", "where"),
    [
        ("tool = 'a'\nrun = 'b'", "coding.0.steps.0: a step has exactly one of"),
        ("run = 'a'\ninput = { a = 1 }", "coding.0.steps.0: only a step with a tool has an input"),
        ("input = { a = 1 }", "coding.0.steps.0: a step has exactly one of"),
        ("tool = ''", "coding.0.steps.0.tool"),
        ("tool = 'server/'", "coding.0.steps.0.tool"),
        ("tool = 'a'\ninput = 'b'", "coding.0.steps.0.input"),
        ("tool = 'a'\ninput = { day = 2026-01-01 }", "coding.0.steps.0.input.day"),
    ],
)
def test_invalid_tool_steps(tmp_path: Path, step: str, where: str) -> None:
    """An invalid tool step is refused with its place in the file."""
    file = tmp_path / "scenario.toml"
    file.write_text(f"[[coding]]\n[[coding.steps]]\n{step}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_scenario(file)
    assert where in caught.value.message
