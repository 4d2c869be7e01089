"""The coding loop with the real GitHub Copilot CLI, which speaks to a scripted model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuggino.agents.copilot import CopilotAgent
from cuggino.events import parse_event
from cuggino_cli.commands.demo import make_project
from tests.agents.demo import assert_the_same, expected
from tests.loops.scenario_model import scenario_model
from tests.loops.test_real_loop import FOCUS, SCENARIO, Played, play
from tests.model_openai import OpenAiServer
from tests.model_script import Block, Script, Tool, in_words
from tests.real_copilot import Copilot, clean_env, copilot, copilot_cli

__all__ = ["copilot", "copilot_cli", "expected"]

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

    return in_words(script, translated)


def test_the_demo_is_the_same(copilot: Copilot, tmp_path: Path, expected: Played) -> None:
    """Copilot, guarded, tells the same story as the scripted agent and leaves the same project."""
    folder = make_project(str(tmp_path / "demo"))
    with OpenAiServer(in_copilots_words(scenario_model(SCENARIO, folder))) as server:
        env = {**clean_env(copilot.home, server.url), "CUGGINO_PYTHON": sys.executable}
        played = play(folder, CopilotAgent(path=copilot.program, env=env))
    assert_the_same(expected, played)


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
