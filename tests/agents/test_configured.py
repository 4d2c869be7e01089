"""Creating a project's agents from its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cuggino import Runtime
from cuggino.agents import LlmAgent, Role, RoutedAgent, configured_agent
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.config import Config
from cuggino.config.file import parse_config
from cuggino.errors import ConfigError
from cuggino.testing import InMemoryAgent


class Spare(InMemoryAgent):
    """An agent selected by import path."""

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


def test_a_single_agent_is_not_wrapped(tmp_path: Path) -> None:
    """Without `agents` and `fallback` the agent is not wrapped."""
    assert isinstance(configured_agent(Config(), cwd=tmp_path), ClaudeAgent)
    given = InMemoryAgent({})
    assert given is configured_agent(Config(), cwd=tmp_path, agent=given)


def test_agents_and_fallbacks_of_roles(tmp_path: Path) -> None:
    """A role has its own agent and the common fallbacks, unless it has its own fallbacks."""
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


def test_agents_are_shared(tmp_path: Path) -> None:
    """An agent named repeatedly is created once and has one usage limit."""
    agent = routed({"agents": {"audit": SPARE, "judge": SPARE}, "fallback": [SPARE]}, tmp_path)
    usual, spare = agent.candidates_for("coding")
    assert (spare,) == agent.candidates_for("audit") == agent.candidates_for("judge")
    other = routed({"agents": {"audit": {"agent": SPARE, "model": "m"}, "judge": SPARE}}, tmp_path)
    audit, judge = (other.candidates_for(role)[0] for role in ("audit", "judge"))
    assert audit is not judge
    assert audit.agent is judge.agent
    assert usual.agent is not spare.agent


def test_a_program_of_its_own(tmp_path: Path) -> None:
    """A path belongs to its agent; `agentPath` belongs to the default one, wherever it is named."""
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


def test_the_option_replaces_the_default_agent(tmp_path: Path) -> None:
    """The command-line option replaces `agent`, not the agents of roles."""
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
def test_an_invalid_agent(raw: dict[str, Any], message: str, tmp_path: Path) -> None:
    """The error is one sentence with the place in the configuration, and the exit code is 2."""
    pattern = message.replace("[", r"\[")
    with pytest.raises(ConfigError, match=rf"^\.cuggino\.json: {pattern}") as caught:
        Runtime.live(cwd=tmp_path, config=parse_config(raw))
    assert 2 == caught.value.code
    assert "\n" not in caught.value.message


def test_agents_of_a_runtime(tmp_path: Path) -> None:
    """The services of a project share its agents; the journal names the default one."""
    (tmp_path / "a.toml").write_text("")
    live = Runtime.live(
        cwd=tmp_path, config=parse_config({"agent": "scripted:a.toml", "fallback": ["claude"]})
    )
    assert isinstance(live.agent, RoutedAgent)
    first, then = live.agent.agents_for("coding")
    assert (ScriptedAgent, ClaudeAgent) == (type(first), type(then))
    assert "scripted:a.toml" == live.agent_name
    services = (live.watcher, live.deliverer, live.builder)
    assert {id(live.agent)} == {id(service.services.agent) for service in services}


def test_the_path_of_an_agent_is_its_own(tmp_path: Path) -> None:
    """`agentPath` beside `agent` does not apply to another agent named on the command line."""
    config = parse_config({"agent": "claude", "agentPath": "/opt/claude"})
    spare = configured_agent(config, cwd=tmp_path, agent=SPARE)
    assert isinstance(spare, Spare)
    assert spare.path is None
    alone = configured_agent(parse_config({"agentPath": "/opt/it"}), cwd=tmp_path, agent=SPARE)
    assert isinstance(alone, Spare)
    assert "/opt/it" == alone.path
