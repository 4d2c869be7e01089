"""Settings that are models of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from cuggino.config import (
    Config,
    FallbackAgent,
    NotifySettings,
    PullRequestSettings,
    changed_config,
    parse_config,
)

_VALUES: Mapping[str, Any] = {
    "acp": {"mine": {"command": ["my-agent", "--acp"]}},
    "agents": {"reviewing": {"fallback": ["claude", {"agent": "codex", "model": "x"}]}},
    "fallback": ["codex", {"agent": "gemini", "path": "/opt/gemini"}],
    "cluster": {"address": "tls://host:8786", "needs": {"gpu": 1.0}},
    "backlogSources": [{"type": "github", "label": "agent", "closeIssues": True}],
    "pullRequests": {"draft": True},
    "hooks": {"item.landed": "make"},
    "notify": {"to": "none", "on": ["end"]},
}


@pytest.mark.parametrize("key", _VALUES)
def test_values_are_written_as_read(key: str) -> None:
    """A value is dumped as its type dumps it, in both modes, and reads as the same value."""
    config = parse_config({key: _VALUES[key]})
    given = config.model_dump(by_alias=True, exclude_unset=True)
    assert {key: _VALUES[key]} == given == json.loads(json.dumps(given))
    assert given == json.loads(config.model_dump_json(by_alias=True, exclude_unset=True))
    assert config == parse_config(config.model_dump(by_alias=True))
    assert config == changed_config(config, {})
    assert config != Config()


def test_values_have_their_types() -> None:
    """Values are instances of the imported models, by whichever name a key is given."""
    config = Config(pull_requests=PullRequestSettings(draft=True), notify={"on": ["end"]})  # type: ignore[arg-type]
    assert config.pull_requests.draft
    assert isinstance(config.notify, NotifySettings)
    assert [FallbackAgent(agent="codex")] == parse_config({"fallback": ["codex"]}).fallback
    assert PullRequestSettings() == Config().pull_requests


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
