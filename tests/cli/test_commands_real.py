"""A message from another terminal to the real Claude Code CLI, as its model gets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.agents.scripted.scenario import load_scenario
from cuggino.events import Steered
from cuggino_cli.commands.steer import _LATER
from tests.cli.commanded import Commanded
from tests.git_project import GitProject, isolate_git
from tests.limits import LIMIT
from tests.loops.demo import agent_env
from tests.loops.scenario_model import scenario_model
from tests.model_server import ModelServer

pytestmark = pytest.mark.real_agent

LATER = f"{_LATER}\n"
TEXT = "Use the form in forms.py, è\n\nand no other."
NEXT = "Add no comments."


@pytest.mark.timeout(2 * LIMIT)
def test_steer(claude_cli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message reaches the running agent, or the next one if it comes between sessions."""
    isolate_git(monkeypatch, tmp_path)
    run = Commanded(tmp_path, agent="claude", agentPath=str(claude_cli), loginCheck=False)
    GitProject(run.folder)
    model = scenario_model(load_scenario(run.folder / "scenario.toml"), run.folder)
    with ModelServer(model) as server:
        for name, value in agent_env(tmp_path / "home", server).items():
            monkeypatch.setenv(name, value)
        try:
            run.start("run", "--quiet", "--focus", "the page")
            run.at("planning")
            answer = run.tell("steer", TEXT)  # Claude Code reads it when its tool has ended
            assert (0, LATER) == answer
            run.tell("pause")
            run.let("planning")
            run.has("Steered")
            run.has("RunPaused")
            assert (0, LATER) == run.tell("steer", NEXT)
            run.let("implementing", "reviewing")
            run.tell("continue")
            code, said = run.ends()
        finally:
            run.close()
    assert 0 == code, said
    assert [Steered(text=TEXT, to="session"), Steered(text=NEXT, to="prompt")] == [
        event for event in run.events() if isinstance(event, Steered)
    ]
    told = [TEXT in request.messages_text for request in server.requests]
    assert told[0] is False
    assert any(told)
    first = next(request for request in server.requests if NEXT in request.messages_text)
    assert TEXT not in first.messages_text
    assert 0 == first.turns
