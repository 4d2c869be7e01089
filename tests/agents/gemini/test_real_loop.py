"""The coding loop with the real Gemini CLI, which speaks to a scripted model."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cuggino import ScriptedAgent
from cuggino.agents.gemini import GeminiAgent
from cuggino.events import GuardDenied, LoopApproved, ToolResult
from cuggino_cli.commands.demo import make_project
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import SCENARIO, play
from tests.model_gemini import GeminiServer
from tests.model_script import Block, Message, ModelRequest, Reply, Script, Tool
from tests.real_gemini import MODEL, Gemini, clean_env, gemini, gemini_cli

__all__ = ["gemini", "gemini_cli"]

pytestmark = pytest.mark.real_agent


def in_geminis_words(script: Script) -> Script:
    """The model's calls, with the tools of Gemini."""

    def translated(block: Block) -> Block:
        match block:
            case Tool("Bash", given):
                return Tool("run_shell_command", dict(given))
            case Tool("Write", given):
                return Tool("write_file", dict(given))
            case _:
                return block

    def reply(request: ModelRequest) -> Reply:
        said = script(request)
        if isinstance(said, Message):
            return replace(said, blocks=[translated(block) for block in said.blocks])
        return said

    return reply


def test_the_demo_is_the_same(gemini: Gemini, tmp_path: Path) -> None:
    """Gemini, guarded, tells the same story as the scripted agent and leaves the same project."""
    expected = play(make_project(str(tmp_path / "scripted" / "demo")), ScriptedAgent(SCENARIO))
    folder = make_project(str(tmp_path / "demo"))
    with GeminiServer(in_geminis_words(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(gemini.home, server.url), "GEMINI_MODEL": MODEL}
        env["CUGGINO_PYTHON"] = sys.executable
        played = play(folder, GeminiAgent(path=gemini.program, env=env))
    assert expected.story == played.story
    assert expected.files == played.files
    assert expected.subjects == played.subjects
    assert isinstance(played.events[-1], LoopApproved)
    assert [] == [event for event in played.events if isinstance(event, GuardDenied)]
    results = [event for event in played.events if isinstance(event, ToolResult)]
    assert [] == [result for result in results if result.is_error]
    assert ["completed"] * 7 == [ended.outcome for ended in played.sessions]
    assert [] == played.session_files
