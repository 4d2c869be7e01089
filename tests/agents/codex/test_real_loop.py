"""The coding loop with the real Codex CLI, which speaks to a scripted model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.agents.codex import CodexAgent
from cuggino_cli.commands.demo import make_project
from tests.agents.demo import assert_the_same, expected
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import SCENARIO, Played, play
from tests.model_responses import ResponsesServer
from tests.model_script import Block, Script, Tool, in_words
from tests.real_codex import MODEL, Codex, bash, clean_env, codex, codex_cli, patch

__all__ = ["codex", "codex_cli", "expected"]

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

    return in_words(script, translated)


def test_the_demo_is_the_same(codex: Codex, tmp_path: Path, expected: Played) -> None:
    """Codex, guarded, tells the same story as the scripted agent and leaves the same project."""
    folder = make_project(str(tmp_path / "demo"))
    codex.configure(f'model = "{MODEL}"\n')
    with ResponsesServer(in_codexs_words(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(codex.home, server.url), "CUGGINO_PYTHON": sys.executable}
        played = play(folder, CodexAgent(path=codex.program, env=env))
    assert_the_same(expected, played)
    assert all(ended.usage and ended.usage.input_tokens for ended in played.sessions)
