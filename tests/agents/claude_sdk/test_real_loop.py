"""The coding loop with the Claude Agent SDK, whose program speaks to a scripted model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.agents.claude_sdk import ClaudeSdkAgent
from cuggino_cli.commands.demo import make_project
from tests.agents.demo import assert_the_same, expected, results
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import SCENARIO, Played, play
from tests.model_server import ModelServer
from tests.real_claude import clean_env
from tests.real_claude_sdk import ClaudeSdk, claude_sdk

__all__ = ["claude_sdk", "expected"]

pytestmark = pytest.mark.real_agent


def test_the_demo_is_the_same(claude_sdk: ClaudeSdk, tmp_path: Path, expected: Played) -> None:
    """The SDK's agent, guarded, tells the same story as the scripted one, with the same files."""
    folder = make_project(str(tmp_path / "demo"))
    with ModelServer(scenario_model(SCENARIO, folder)) as server:
        env = {**clean_env(claude_sdk.home, server.url), "CUGGINO_PYTHON": sys.executable}
        played = play(folder, ClaudeSdkAgent(path=claude_sdk.program, env=env))
    assert_the_same(expected, played)
    assert 15 == len(results(played))
    assert min(ended.cost_usd or 0 for ended in played.sessions) > 0
