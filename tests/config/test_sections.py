"""Settings that are models of their own: their short and long forms, and what is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import (
    OCCASIONS,
    ClusterSettings,
    Config,
    FallbackAgent,
    NotifySettings,
    PullRequestSettings,
    RoleAgent,
    changed_config,
    config_path,
    load_config,
    parse_config,
    save_config,
)
from cuggino.guard.roles import Role

_VALUES: list[dict[str, Any]] = [
    {"acp": {"mine": {"command": ["my-agent", "--acp"]}}},
    {"agents": {"planning": "codex", "audit": {"model": "haiku"}}},
    {"agents": {"reviewing": {"fallback": ["claude", {"agent": "codex", "model": "x"}]}}},
    {"fallback": ["codex", {"agent": "gemini", "path": "/opt/gemini"}]},
    {"cluster": {"address": "tls://host:8786", "detach": True, "needs": {"gpu": 1.0}}},
    {"backlogSources": [{"type": "github", "label": "agent", "closeIssues": True}]},
    {"pullRequests": {"draft": True}},
    {"hooks": {"item.landed": "make"}},
    {"notify": {"to": "none", "on": ["end"]}},
    {"notify": {"to": ["bell"], "command": "mail me", "on": list(OCCASIONS), "at": None}},
    {"guard": "full", "profile": "node", "allowCommands": ["make", "g++"]},
    {"guard": "off", "profile": ["base", "go", "extended"], "allowPkillTargets": ["server"]},
    {"allowCommands": {"base": ["make"], "sync": []}, "allowDestructive": True},
    {"allowCommands": {}, "profile": []},
]


@pytest.mark.parametrize("raw", _VALUES, ids=lambda raw: json.dumps(raw)[:40])
def test_values_are_written_as_read(raw: dict[str, Any], tmp_path: Path) -> None:
    """A value is dumped and saved as it was read, with a change of another one too."""
    config = parse_config(raw)
    given = config.model_dump(by_alias=True, exclude_unset=True)
    assert raw == given == json.loads(json.dumps(given))
    assert given == json.loads(config.model_dump_json(by_alias=True, exclude_unset=True))
    assert config == parse_config(config.model_dump(by_alias=True)) == changed_config(config, {})
    assert config != Config()
    changed = changed_config(config, {"max_iterations": 3})
    save_config(tmp_path, changed)
    assert changed == load_config(tmp_path)


@pytest.mark.parametrize(
    ("raw", "name", "expected"),
    [
        ({}, "cluster_settings", ClusterSettings(address=None, remote="origin", needs={})),
        (
            {"notify": {}},
            "notifications",
            NotifySettings(to="bell", on=["end", "failed", "spec_issue", "login"], at="07:00"),
        ),
        *(
            ({"notify": short}, "notifications", NotifySettings(to=short))
            for short in ("bell", "none", ["bell", "ntfy://topic"], list[str]())
        ),
        (
            {"cluster": "tls://host:8786"},
            "cluster_settings",
            ClusterSettings(address="tls://host:8786"),
        ),
        ({"cluster": {}}, "cluster_settings", ClusterSettings()),
        ({"agents": {"planning": "codex"}}, "agents", {"planning": RoleAgent(agent="codex")}),
        (
            {"agents": {"audit": {"path": "bin/x", "fallback": ["a", {"agent": "b"}]}}},
            "agents",
            {
                "audit": RoleAgent(
                    path="bin/x", fallback=[FallbackAgent(agent="a"), FallbackAgent(agent="b")]
                )
            },
        ),
        ({"fallback": ["codex"]}, "fallback", [FallbackAgent(agent="codex")]),
    ],
)
def test_short_forms_and_defaults(raw: dict[str, Any], name: str, expected: object) -> None:
    """A name, a string or a list stands for the model; what is left out is the default."""
    assert expected == getattr(parse_config(raw), name)


def test_values_have_their_types() -> None:
    """Values are instances of the imported models, by whichever name a key is given."""
    config = Config(pull_requests=PullRequestSettings(draft=True), notify={"on": ["end"]})  # type: ignore[arg-type]
    assert config.pull_requests.draft
    assert isinstance(config.notify, NotifySettings)


def test_agents_and_clusters_are_written_in_the_shortest_form(tmp_path: Path) -> None:
    """An agent with only a name is saved as that; defaults are left out."""
    agents: dict[Role, RoleAgent] = {"audit": RoleAgent(agent="codex")}
    cluster = ClusterSettings(address="local", detach=True)
    fallback = [FallbackAgent(agent="x", model="m")]
    save_config(tmp_path, Config(agents=agents, fallback=fallback, cluster=cluster))
    raw = json.loads(config_path(tmp_path).read_text())
    assert {"audit": "codex"} == raw["agents"]
    assert [{"agent": "x", "model": "m"}] == raw["fallback"]
    assert {"address": "local", "detach": True} == raw["cluster"]
    save_config(tmp_path, Config())
    assert not {"agents", "fallback"} & json.loads(config_path(tmp_path).read_text()).keys()


def test_changing_keeps_defaults_unset() -> None:
    """Changing a configuration marks the changed values and the agent as given, and no other."""
    changed = changed_config(parse_config({"audit": True}), {"max_iterations": 3})
    assert {"agent", "audit", "max_iterations"} == changed.model_fields_set


def test_a_part_of_a_section_is_left_out() -> None:
    """The exclusions of a dump apply within a section, too."""
    config = parse_config({"pullRequests": {"repo": "a/b", "draft": True}})
    dumped = config.model_dump(include={"pull_requests"}, exclude={"pull_requests": {"repo"}})
    assert "repo" not in dumped["pull_requests"]
    assert dumped["pull_requests"]["draft"]
