"""`agents` and `fallback` in `.cuggino.json`: parsing, validation and saving."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino.config import (
    Config,
    FallbackAgent,
    RoleAgent,
    changed_config,
    config_path,
    load_config,
    save_config,
)
from cuggino.guard.roles import ROLES, Role
from tests.config.test_config import refused, write


def test_names_and_objects(tmp_path: Path) -> None:
    """An agent is a name, or an object with its name, model, program and fallbacks."""
    write(
        tmp_path,
        """{
          "agents": {
            "planning": "codex",
            "reviewing": {"agent": "claude", "model": "opus", "path": "bin/claude"},
            "audit": {"model": "haiku", "fallback": ["codex", {"agent": "copilot", "model": "m"}]}
          },
          "fallback": ["codex", {"agent": "claude", "path": "/opt/claude"}]
        }""",
    )
    config = load_config(tmp_path)
    assert {
        "planning": RoleAgent(agent="codex"),
        "reviewing": RoleAgent(agent="claude", model="opus", path="bin/claude"),
        "audit": RoleAgent(
            model="haiku",
            fallback=[FallbackAgent(agent="codex"), FallbackAgent(agent="copilot", model="m")],
        ),
    } == config.agents
    assert [
        FallbackAgent(agent="codex"),
        FallbackAgent(agent="claude", path="/opt/claude"),
    ] == config.fallback


def test_there_are_none_by_default() -> None:
    """Without settings all roles use the one agent, without a fallback."""
    assert ({}, []) == (Config().agents, Config().fallback)


@pytest.mark.parametrize(
    ("raw", "message", "hint"),
    [
        (
            {"agents": {"reviwing": "codex"}},
            'unknown key "reviwing" in "agents"',
            'did you mean "reviewing"?',
        ),
        ({"agents": {"x": "codex"}}, 'unknown key "x" in "agents"', "valid keys: planning, "),
        (
            {"agents": "codex"},
            '"agents" is "codex": ',
            'correct the value; for example "agents": {',
        ),
        ({"agents": None}, '"agents" is null: ', 'correct the value; for example "agents": {'),
        (
            {"agents": ["codex"]},
            '"agents" is ["codex"]: ',
            'correct the value; for example "agents": {',
        ),
        (
            {"agents": {"planning": 5}},
            '"agents.planning" is 5: must be the name of an agent, or an object with',
            "correct",
        ),
        ({"agents": {"planning": None}}, '"agents.planning" is null: must be the name', "correct"),
        (
            {"agents": {"planning": {"modle": "m"}}},
            'unknown key "modle" in "agents.planning"',
            'did you mean "model"?',
        ),
        ({"agents": {"planning": {"model": 5}}}, '"agents.planning.model" is 5: ', "correct"),
        ({"agents": {"planning": " "}}, '"agents.planning" is " ": must not be blank', "correct"),
        (
            {"agents": {"planning": {"fallback": "codex"}}},
            '"agents.planning.fallback" is "codex": ',
            "correct",
        ),
        (
            {"agents": {"planning": {"fallback": [{"model": "m"}]}}},
            '"agents.planning.fallback[0]" has no "agent"',
            "add it",
        ),
        ({"fallback": "codex"}, '"fallback" is "codex": must be a list', "correct"),
        ({"fallback": ["codex", 5]}, '"fallback[1]" is 5: ', "correct"),
        ({"fallback": [""]}, '"fallback[0]" is "": must not be blank', "correct"),
        (
            {"fallback": [{"agent": "codex", "fallback": []}]},
            'unknown key "fallback" in "fallback[0]"',
            "valid keys: agent, model, path",
        ),
    ],
    ids=lambda value: json.dumps(value)[:50] if isinstance(value, dict) else "",
)
def test_invalid_settings(raw: Any, message: str, hint: str, tmp_path: Path) -> None:
    """An invalid setting is one sentence with its place in the file and advice."""
    error = refused(tmp_path, json.dumps(raw))
    assert error.message.startswith(f".cuggino.json: {message}")
    assert error.hint is not None
    assert error.hint.startswith(hint)
    assert len(error.message) < 250


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
shown = texts.filter(str.strip)
fallbacks = st.lists(
    st.builds(FallbackAgent, agent=shown, model=st.none() | shown, path=st.none() | shown),
    max_size=3,
)
roles: st.SearchStrategy[dict[Role, RoleAgent]] = st.dictionaries(
    st.sampled_from(ROLES),
    st.builds(
        RoleAgent,
        agent=st.none() | shown,
        model=st.none() | shown,
        path=st.none() | shown,
        fallback=st.none() | fallbacks,
    ),
    max_size=3,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=2 * settings().max_examples,
)
@given(roles, fallbacks)
def test_settings_round_trip(
    tmp_path: Path, agents: dict[Role, RoleAgent], fallback: list[FallbackAgent]
) -> None:
    """Settings survive saving and loading, and a change of another setting."""
    config = Config(agents=agents, fallback=fallback)
    save_config(tmp_path, config)
    assert config == load_config(tmp_path)
    assert agents == changed_config(config, {"max_retries": 1}).agents


def test_it_is_written_in_the_shortest_form(tmp_path: Path) -> None:
    """An agent with only a name is saved as that; defaults are left out."""
    agents: dict[Role, RoleAgent] = {"audit": RoleAgent(agent="codex")}
    save_config(tmp_path, Config(agents=agents, fallback=[FallbackAgent(agent="x", model="m")]))
    raw = json.loads(config_path(tmp_path).read_text())
    assert {"audit": "codex"} == raw["agents"]
    assert [{"agent": "x", "model": "m"}] == raw["fallback"]
    save_config(tmp_path, Config())
    assert not {"agents", "fallback"} & json.loads(config_path(tmp_path).read_text()).keys()
