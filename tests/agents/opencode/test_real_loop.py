"""The coding loop with the real OpenCode CLI, which speaks to a scripted model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino.agents.opencode import OpenCodeAgent
from cuggino_cli.commands.demo import make_project
from tests.agents.demo import assert_the_same, expected
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import SCENARIO, Played, play
from tests.model_openai import OpenAiServer
from tests.model_script import Block, Script, Tool, in_words
from tests.real_opencode import OpenCode, clean_env, opencode, opencode_cli

__all__ = ["expected", "opencode", "opencode_cli"]

pytestmark = pytest.mark.real_agent


def in_opencodes_words(script: Script) -> Script:
    """The model's calls, with the tools of OpenCode."""

    def translated(block: Block) -> Block:
        match block:
            case Tool("Bash", given):
                return Tool("bash", {**given, "description": "a command"})
            case Tool("Write", given):
                return Tool("write", {"filePath": given["file_path"], "content": given["content"]})
            case _:
                return block

    return in_words(script, translated)


@pytest.mark.timeout(400)
def test_the_demo_is_the_same(opencode: OpenCode, tmp_path: Path, expected: Played) -> None:
    """OpenCode, guarded, tells the same story as the scripted agent and leaves the same project."""
    folder = make_project(str(tmp_path / "demo"))
    with OpenAiServer(in_opencodes_words(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(opencode.home, server.url), "CUGGINO_PYTHON": sys.executable}
        played = play(folder, OpenCodeAgent(path=opencode.program, env=env))
    assert_the_same(expected, played)
