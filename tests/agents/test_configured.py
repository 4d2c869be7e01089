"""From a configuration to the agents of a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from cuggino import Runtime
from cuggino.agents import LlmAgent, Role, RoutedAgent, configured_agent
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.config import Config
from cuggino.config.agents import ROLES
from cuggino.config.file import parse_config
from cuggino.errors import ConfigError
from cuggino.testing import InMemoryAgent


class Spare(InMemoryAgent):
    """An agent by import path."""

    def __init__(self, path: str | None = None) -> None:
        super().__init__({}, name="spare")
        self.path = path


SPARE = f"{__name__}:Spare"


def routed(
    raw: Mapping[str, Any], folder: Path, agent: str | LlmAgent | None = None
) -> RoutedAgent:
    made = configured_agent(parse_config(dict(raw)), cwd=folder, agent=agent)
    assert isinstance(made, RoutedAgent)
    return made


def names(agent: RoutedAgent, role: Role) -> list[str]:
    return [candidate.name for candidate in agent.candidates_for(role)]


def test_the_roles_are_those_of_agents() -> None:
    """A role in the configuration is one that agents are spawned for, and each of them can be."""
    assert get_args(Role) == ROLES


def test_one_agent_is_itself(tmp_path: Path) -> None:
    """Without `agents` and `fallback` nothing is put around the agent."""
    assert isinstance(configured_agent(Config(), cwd=tmp_path), ClaudeAgent)
    given = InMemoryAgent({})
    assert given is configured_agent(Config(), cwd=tmp_path, agent=given)


def test_who_works_as_what(tmp_path: Path) -> None:
    """A role has its own agent, all have the fall-backs, and one of its own counts instead."""
    agent = routed(
        {
            "agents": {
                "planning": {"model": "opus"},
                "reviewing": SPARE,
                "audit": {"agent": SPARE, "model": "small", "fallback": []},
                "judge": {"agent": SPARE, "fallback": ["claude"]},
            },
            "fallback": [SPARE, "copilot"],
        },
        tmp_path,
    )
    assert ["claude", SPARE, "copilot"] == names(agent, "implementing")
    assert ["claude (opus)", SPARE, "copilot"] == names(agent, "planning")
    assert [SPARE, "copilot"] == names(agent, "reviewing")
    assert [f"{SPARE} (small)"] == names(agent, "audit")
    assert [SPARE, "claude"] == names(agent, "judge")
    usual = agent.candidates_for("coding")
    assert [True, False, False] == [candidate.is_default for candidate in usual]
    assert agent.candidates_for("planning")[0].is_default


def test_the_same_agent_is_one(tmp_path: Path) -> None:
    """However often it is named an agent is made once, and its usage limit is one."""
    agent = routed({"agents": {"audit": SPARE, "judge": SPARE}, "fallback": [SPARE]}, tmp_path)
    usual, spare = agent.candidates_for("coding")
    assert (spare,) == agent.candidates_for("audit") == agent.candidates_for("judge")
    other = routed({"agents": {"audit": {"agent": SPARE, "model": "m"}, "judge": SPARE}}, tmp_path)
    audit, judge = (other.candidates_for(role)[0] for role in ("audit", "judge"))
    assert audit is not judge
    assert audit.agent is judge.agent
    assert usual.agent is not spare.agent


def test_a_program_of_its_own(tmp_path: Path) -> None:
    """A path is for that agent; `agentPath` is for the usual one, wherever it is named."""
    agent = routed(
        {
            "agent": SPARE,
            "agentPath": "/usual",
            "agents": {"audit": {"path": "/own"}, "judge": {"model": "m"}, "plan": "claude"},
        },
        tmp_path,
    )
    paths = [
        candidate.agent.path
        for role in ("coding", "audit", "judge")
        if isinstance((candidate := agent.candidates_for(role)[0]).agent, Spare)
    ]
    assert ["/usual", "/own", "/usual"] == paths
    raw = {"agent": SPARE, "agentPath": "/usual", "fallback": [SPARE]}
    _, spare = routed(raw, tmp_path, InMemoryAgent({})).agents_for("coding")
    assert isinstance(spare, Spare)
    assert "/usual" == spare.path


def test_the_option_is_for_the_usual_agent(tmp_path: Path) -> None:
    """An agent that is given comes in the place of `agent`, not of those of roles."""
    raw = {"agents": {"planning": "claude", "audit": {"model": "m"}}, "fallback": ["claude"]}
    agent = routed(raw, tmp_path, SPARE)
    assert [SPARE, "claude"] == names(agent, "coding")
    assert ["claude"] == names(agent, "planning")
    assert [f"{SPARE} (m)", "claude"] == names(agent, "audit")
    given = InMemoryAgent({}, name="own")
    assert given is routed(raw, tmp_path, given).candidates_for("coding")[0].agent
    made = routed(raw, tmp_path)
    assert made is configured_agent(parse_config(dict(raw)), cwd=tmp_path, agent=made)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"agents": {"audit": "nobody"}}, '"agents.audit": unknown agent "nobody"'),
        ({"fallback": ["claude", "nobody"]}, '"fallback[1]": unknown agent "nobody"'),
        (
            {"agents": {"audit": {"fallback": ["nobody"]}}},
            '"agents.audit.fallback[0]": unknown agent "nobody"',
        ),
        (
            {"fallback": ["scripted:none.toml"]},
            '"fallback[0]": scenario .*none.toml cannot be read',
        ),
    ],
)
def test_an_agent_that_cannot_be_made(raw: dict[str, Any], message: str, tmp_path: Path) -> None:
    """It is one sentence with the place at which it is named, and exit code 2."""
    pattern = message.replace("[", r"\[")
    with pytest.raises(ConfigError, match=rf"^\.cuggino\.json: {pattern}") as caught:
        Runtime.live(cwd=tmp_path, config=parse_config(raw))
    assert 2 == caught.value.code
    assert "\n" not in caught.value.message


def test_a_runtime_has_them(tmp_path: Path) -> None:
    """The services of a project share them; the journal names the usual one."""
    (tmp_path / "a.toml").write_text("")
    live = Runtime.live(
        cwd=tmp_path, config=parse_config({"agent": "scripted:a.toml", "fallback": ["claude"]})
    )
    assert isinstance(live.agent, RoutedAgent)
    first, then = live.agent.agents_for("coding")
    assert (ScriptedAgent, ClaudeAgent) == (type(first), type(then))
    assert "scripted:a.toml" == live.agent_name
    services = (live.watcher, live.deliverer, live.builder)
    assert {id(live.agent)} == {id(service.agent) for service in services}


def test_the_path_of_an_agent_is_its_own(tmp_path: Path) -> None:
    """`agentPath` beside `agent` is that agent's, and of no other that the command line names."""
    config = parse_config({"agent": "claude", "agentPath": "/opt/claude"})
    spare = configured_agent(config, cwd=tmp_path, agent=SPARE)
    assert isinstance(spare, Spare)
    assert spare.path is None
    alone = configured_agent(parse_config({"agentPath": "/opt/it"}), cwd=tmp_path, agent=SPARE)
    assert isinstance(alone, Spare)
    assert "/opt/it" == alone.path
