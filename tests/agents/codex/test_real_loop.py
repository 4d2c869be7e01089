"""The coding loop with the real Codex CLI, which speaks to a scripted model."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cuggino import ScriptedAgent
from cuggino.agents.codex import CodexAgent
from cuggino.events import GuardDenied, LoopApproved, ToolResult
from cuggino_cli.commands.demo import make_project
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import SCENARIO, Played, play
from tests.model_responses import ResponsesServer
from tests.model_script import Block, Message, ModelRequest, Reply, Script, Tool
from tests.real_codex import MODEL, Codex, bash, clean_env, codex, codex_cli, patch

__all__ = ["codex", "codex_cli"]

pytestmark = pytest.mark.real_agent


def in_codexs_words(script: Script) -> Script:
    """The model's calls, with the tools of Codex."""

    def translated(block: Block) -> Block:
        match block:
            case Tool("Bash", given):
                return bash(given["command"])
            case Tool("Write", given):
                lines = str(given["content"]).removesuffix("\n").split("\n")
                return patch(f"*** Add File: {given['file_path']}", *(f"+{x}" for x in lines))
            case _:
                return block

    def reply(request: ModelRequest) -> Reply:
        said = script(request)
        if isinstance(said, Message):
            return replace(said, blocks=[translated(block) for block in said.blocks])
        return said

    return reply


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The demo as the scripted agent plays it."""
    folder = make_project(str(tmp_path_factory.mktemp("scripted") / "demo"))
    return play(folder, ScriptedAgent(SCENARIO))


def test_the_demo_is_the_same(codex: Codex, tmp_path: Path, expected: Played) -> None:
    """Codex, guarded, tells the same story as the scripted agent and leaves the same project."""
    folder = make_project(str(tmp_path / "demo"))
    codex.configure(f'model = "{MODEL}"\n')
    with ResponsesServer(in_codexs_words(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(codex.home, server.url), "CUGGINO_PYTHON": sys.executable}
        played = play(folder, CodexAgent(path=codex.program, env=env))
    assert expected.story == played.story
    assert expected.files == played.files
    assert expected.subjects == played.subjects
    assert isinstance(played.events[-1], LoopApproved)
    assert [] == [event for event in played.events if isinstance(event, GuardDenied)]
    results = [event for event in played.events if isinstance(event, ToolResult)]
    assert [] == [result for result in results if result.is_error]
    assert {"completed"} == {ended.outcome for ended in played.sessions}
    assert all(ended.usage and ended.usage.input_tokens for ended in played.sessions)
    assert [] == played.session_files
