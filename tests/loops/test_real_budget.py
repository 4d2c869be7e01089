"""A budget in money over two real agents, of which one reports no dollars."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cuggino import events as ev
from tests import real_codex
from tests.limits import LIMIT
from tests.loops.demo import agent_env
from tests.loops.test_real_policies import Model, Project, of, project
from tests.model_responses import ResponsesServer
from tests.model_script import Message, ModelRequest, Text
from tests.model_server import ModelServer
from tests.real_codex import bash

pytestmark = pytest.mark.real_agent

__all__ = ["project"]

DEAR = Message([bash("echo worked | tee one.txt")], input_tokens=200_000, output_tokens=20_000)
MORE = Message([bash("sleep 20; echo more > two.txt")])
OVER = Message([Text("<DONE>one</DONE>")])


class Worker:
    """The model of the implementing agents: work that is dear, then more of it."""

    def __init__(self, *replies: Message) -> None:
        self._left = iter(replies)

    def __call__(self, _request: ModelRequest) -> Message:
        return next(self._left, OVER)


def run(
    project: Project, codex: Path, claude: ModelServer, openai: ModelServer, *words: str
) -> tuple[Sequence[ev.Event], str, int]:
    home = project.folder.parent / "codex"
    (home / ".codex").mkdir(parents=True, exist_ok=True)
    (home / "tmp").mkdir(exist_ok=True)
    program = home / "bin" / "codex"
    program.parent.mkdir(exist_ok=True)
    program.unlink(missing_ok=True)
    program.symlink_to(codex)
    own = real_codex.clean_env(home, openai.url)
    env = {**own, **agent_env(project.folder.parent / "home", claude)}
    env["PATH"] = f"{program.parent}:{env['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "cuggino_cli", "run", "--json", *words],
        cwd=project.folder,
        env={**env, "CLAUDE_CODE_MAX_RETRIES": "0", "TMPDIR": own["TMPDIR"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    events = [ev.parse_event(line) for line in done.stdout.decode().splitlines()]
    return events, done.stderr.decode(), done.returncode


def test_a_budget_of_two_agents(project: Project, codex_cli: Path) -> None:
    """Codex's tokens are priced: its session is cut when the budget is spent, and marked."""
    worker = {"agent": "codex", "model": real_codex.MODEL}
    config = {"agentPath": str(project.program), "agents": {"implementing": worker}}
    (project.folder / ".cuggino.json").write_text(json.dumps(config))
    with ModelServer(Model()) as claude, ResponsesServer(Worker(DEAR, MORE)) as openai:
        events, complaint, code = run(
            project, codex_cli, claude, openai, "--focus", "the task", "--budget", "0.5"
        )
        assert 13 == code, complaint
        assert "The budget of the run is used up: ~$" in complaint
        (planned,) = of(events, ev.SessionEnded)
        assert not planned.cost_estimated
        spent = of(events, ev.UsageUpdate)[-1]
        assert (real_codex.MODEL, True) == (spent.model, spent.cost_estimated)
        assert spent.cost_usd is not None
        assert spent.cost_usd > 0.5
        assert not (project.folder / "two.txt").exists()
        again, complaint, code = run(
            project, codex_cli, claude, openai, "--resume", "--budget", "10"
        )
    assert (0, "") == (code, complaint)
    assert "LoopApproved" == again[-1].tag
