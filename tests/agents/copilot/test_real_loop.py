"""The coding loop with the real GitHub Copilot CLI, which speaks to a scripted model."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cuggino import ScriptedAgent
from cuggino.agents.copilot import CopilotAgent
from cuggino.events import GuardDenied, LoopApproved, ToolResult, parse_event
from cuggino_cli.commands.demo import make_project
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import FOCUS, SCENARIO, Played, play
from tests.model_openai import OpenAiServer
from tests.model_script import Block, Message, ModelRequest, Reply, Script, Tool
from tests.real_copilot import Copilot, clean_env, copilot, copilot_cli

__all__ = ["copilot", "copilot_cli"]

pytestmark = pytest.mark.real_agent


def in_copilots_words(script: Script) -> Script:
    """The model's calls, with the tools of Copilot."""

    def translated(block: Block) -> Block:
        match block:
            case Tool("Bash", given):
                return Tool("bash", {**given, "description": "a command"})
            case Tool("Write", given):
                return Tool("create", {"path": given["file_path"], "file_text": given["content"]})
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


def test_the_demo_is_the_same(copilot: Copilot, tmp_path: Path, expected: Played) -> None:
    """Copilot, guarded, tells the same story as the scripted agent and leaves the same project."""
    folder = make_project(str(tmp_path / "demo"))
    with OpenAiServer(in_copilots_words(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(copilot.home, server.url), "CUGGINO_PYTHON": sys.executable}
        played = play(folder, CopilotAgent(path=copilot.program, env=env))
    assert expected.story == played.story
    assert expected.files == played.files
    assert expected.subjects == played.subjects
    assert isinstance(played.events[-1], LoopApproved)
    assert [] == [event for event in played.events if isinstance(event, GuardDenied)]
    results = [event for event in played.events if isinstance(event, ToolResult)]
    assert [] == [result for result in results if result.is_error]
    assert ["completed"] * 7 == [ended.outcome for ended in played.sessions]
    assert [] == played.session_files


def test_through_the_command_line(copilot: Copilot, tmp_path: Path, expected: Played) -> None:
    """`cuggino run --agent copilot` finds the program on PATH and tells the same story."""
    folder = make_project(str(tmp_path / "demo"))
    with OpenAiServer(in_copilots_words(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(copilot.home, server.url), "CUGGINO_PYTHON": sys.executable}
        env["PATH"] = f"{copilot.program.parent}:{env['PATH']}"
        words = ["run", "--agent", "copilot", "--focus", FOCUS, "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "cuggino_cli", *words],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=100,
            check=False,
        )
    assert (0, b"") == (done.returncode, done.stderr)
    played = Played(folder, [parse_event(line) for line in done.stdout.decode().splitlines()])
    assert expected.story == played.story
    assert expected.subjects == played.subjects
