"""The coding loop with the real Gemini CLI, which speaks to a scripted model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.agents.gemini import GeminiAgent
from cuggino_cli.commands.demo import make_project
from tests.agents.demo import assert_the_same, expected
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import SCENARIO, Played, play
from tests.model_gemini import GeminiServer
from tests.model_script import Block, Script, Tool, in_words
from tests.real_gemini import MODEL, Gemini, clean_env, gemini, gemini_cli

__all__ = ["expected", "gemini", "gemini_cli"]

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

    return in_words(script, translated)


def test_the_demo_is_the_same(gemini: Gemini, tmp_path: Path, expected: Played) -> None:
    """Gemini, guarded, tells the same story as the scripted agent and leaves the same project."""
    folder = make_project(str(tmp_path / "demo"))
    with GeminiServer(in_geminis_words(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(gemini.home, server.url), "GEMINI_MODEL": MODEL}
        env["CUGGINO_PYTHON"] = sys.executable
        played = play(folder, GeminiAgent(path=gemini.program, env=env))
    assert_the_same(expected, played)
