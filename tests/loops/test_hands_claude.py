"""Two hands of the real Claude Code CLI at once, each in its own clone and view."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import cuggino
from cuggino import Runtime, events as ev
from cuggino.agents.claude import ClaudeAgent
from cuggino.processes import process_lines
from cuggino.testing import no_leaks
from tests.git_project import isolate_git
from tests.limits import LIMIT
from tests.loops.demo import agent_env
from tests.loops.slot_project import SlotProject
from tests.model_server import Message, ModelRequest, ModelServer, Reply, Text, Tool
from tests.sandbox.arena import needs_bubblewrap

pytestmark = pytest.mark.real_agent

_ROLE = re.compile(r"# Role: (\w+) agent")
_HAND = re.compile(r"/hands/slot-(\d+)")
_PLAN = re.compile(r"\.cuggino/wip/[\w-]+\.planning/plan\.md")
PLAN = """\
# Plan

## Task 1: alpha

after: none
files: alpha.txt

## Task 2: beta

after: none
files: beta.txt
"""


class Model:
    """Each implementing agent reads its task from its plan, and tries to write elsewhere."""

    def __init__(self, project: Path) -> None:
        self.at_work: set[str] = set()
        """The hands with an implementing session."""
        self.written: set[str] = set()
        self.prompts: list[str] = []
        """The first prompts of planning agents."""
        self._outside = [project, *(Path(f"../slot-{number}") for number in (1, 2))]

    def __call__(self, request: ModelRequest) -> Reply:
        role = _ROLE.search(request.system_text)
        if role is None:  # a small question of the program itself
            return Message([Text("Words")])
        return Message([self._act(role[1], request)])

    def _act(self, role: str, request: ModelRequest) -> Text | Tool:
        if role == "planning":
            plan = _PLAN.search(request.system_text)
            assert plan is not None
            if request.turns == 0:
                self.prompts.append(f"{request.system_text}\n{request.messages_text}")
                return _bash(f"printf %s {shlex.quote(PLAN)} > {plan[0]}")
            return Text("<PLAN_COMPLETE>Two words.</PLAN_COMPLETE>")
        if role == "reviewing":
            if request.turns == 0:
                return _bash("git log --oneline -3; cat alpha.txt beta.txt")
            return Text("<APPROVED>As specified.</APPROVED>")
        hand = _HAND.search(f"{request.system_text}\n{request.messages_text}")
        assert hand is not None
        self.at_work.add(hand[1])
        if len(self.at_work) < 2:  # neither goes on before both are at work
            return _bash("python3 -c 'import time; time.sleep(0.3)'")
        if hand[1] not in self.written:
            self.written.add(hand[1])
            return _bash(self._script(hand[1]))
        return Text("<DONE>Write a word</DONE>")

    def _script(self, hand: str) -> str:
        elsewhere = [path for path in self._outside if not path.name.endswith(f"-{hand}")]
        tries = "; ".join(f"(echo evil > {path / 'evil.txt'}) 2> /dev/null" for path in elsewhere)
        word = r"""sed -n 's/^## Task [0-9]*: //p' "$CUGGINO_SESSION_FILE" """
        return f'{tries}; word=$({word}); echo "$word" > "$word.txt"'


def _bash(command: str) -> Tool:
    return Tool("Bash", {"command": command})


def test_two_hands_at_once(
    claude_cli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both tasks land and are approved together; no hand writes to the project or another clone."""
    isolate_git(monkeypatch, tmp_path / "git")
    needs_bubblewrap(tmp_path)
    project = SlotProject(tmp_path, sandbox="require", slots=1, hands=2, gate="block")
    model, seen = Model(project.folder), list[ev.Event]()
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks(within=LIMIT), ModelServer(model) as server:
        env = agent_env(tmp_path / "home", server)
        agent = ClaudeAgent(path=claude_cli, env=env)
        runtime = Runtime.live(cwd=project.folder, config=project.config, agent=agent)
        cuggino.run(runtime.run(focus="the words"), seen.append)

    assert isinstance(seen[-1], ev.LoopApproved)
    assert seen[-1].checked
    assert {"1", "2"} == model.written
    (prompt,) = model.prompts
    assert "`after: 1, 2`" in prompt
    (ended,) = (event for event in seen if isinstance(event, ev.HandsEnded))
    assert ({"task-1.1", "task-1.2"}, {}) == (set(ended.landed), ended.undone)
    sessions = [event for event in seen if isinstance(event, ev.SessionEnded)]
    assert [None, None, "task-1.1", "task-1.2"] == sorted(
        (event.item for event in sessions), key=lambda item: item or ""
    )
    assert 1 == sum(isinstance(event, ev.WatchFollowed) for event in seen)
    assert "alpha\n" == (project.folder / "alpha.txt").read_text()
    assert "beta\n" == (project.folder / "beta.txt").read_text()
    assert [] == [*tmp_path.rglob("evil.txt")]
    assert "" == project.git.git("status", "--short")
    assert 3 == len(project.first_parents())
    assert all(project.is_green(commit) for commit in project.first_parents())
