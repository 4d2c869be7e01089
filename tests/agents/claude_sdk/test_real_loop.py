"""The coding loop with the Claude Agent SDK, whose program speaks to a scripted model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino import ScriptedAgent
from cuggino.agents.claude_sdk import ClaudeSdkAgent
from cuggino.events import GuardDenied, LoopApproved, ToolResult
from cuggino_cli.commands.demo import make_project
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import SCENARIO, Played, play
from tests.model_server import ModelServer
from tests.real_claude import clean_env
from tests.real_claude_sdk import ClaudeSdk, claude_sdk

__all__ = ["claude_sdk"]

pytestmark = pytest.mark.real_agent


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The demo as the scripted agent plays it."""
    folder = make_project(str(tmp_path_factory.mktemp("scripted") / "demo"))
    return play(folder, ScriptedAgent(SCENARIO))


def test_the_demo_is_the_same(claude_sdk: ClaudeSdk, tmp_path: Path, expected: Played) -> None:
    """The SDK's agent, guarded, tells the same story as the scripted one, with the same files."""
    folder = make_project(str(tmp_path / "demo"))
    with ModelServer(scenario_model(SCENARIO, folder)) as server:
        env = {**clean_env(claude_sdk.home, server.url), "CUGGINO_PYTHON": sys.executable}
        played = play(folder, ClaudeSdkAgent(path=claude_sdk.program, env=env))
    assert expected.story == played.story
    assert expected.files == played.files
    assert expected.subjects == played.subjects
    assert isinstance(played.events[-1], LoopApproved)
    assert [] == [event for event in played.events if isinstance(event, GuardDenied)]
    results = [event for event in played.events if isinstance(event, ToolResult)]
    assert 15 == len(results)
    assert [] == [result for result in results if result.is_error]
    assert ["completed"] * 7 == [ended.outcome for ended in played.sessions]
    assert min(ended.cost_usd or 0 for ended in played.sessions) > 0
    assert [] == played.session_files
