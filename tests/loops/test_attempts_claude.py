"""Two attempts with the real Claude Code CLI on a scripted model: one never passes the check."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cuggino
from cuggino import Runtime, events as ev
from cuggino.agents.claude import ClaudeAgent
from cuggino.config import AttemptChoice
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
_SLOT = re.compile(r"/slot-(\d+)")
_PLAN = re.compile(r"\.cuggino/wip/[\w-]+\.planning/plan\.md")


class Model:
    """In slot 1 it claims to be done, and then works forever; in slot 2 it does the work."""

    def __init__(self) -> None:
        self.claims = 0
        """The requests of those that implement in slot 1."""
        self.plans: dict[str, str] = {}
        """The prompt of the planning agent in each slot."""

    def __call__(self, request: ModelRequest) -> Reply:
        said = request.system_text
        role = _ROLE.search(said)
        slot = _SLOT.search(f"{said}\n{request.messages_text}")
        if role is None or slot is None:  # a small question of the program itself
            return Message([Text("Words")])
        return Message([self._act(role[1], slot[1], request)])

    def _act(self, role: str, slot: str, request: ModelRequest) -> Text | Tool:
        first = request.turns == 0
        if role == "planning":
            self.plans.setdefault(slot, request.system_text)
            plan = _PLAN.search(request.system_text)
            assert plan is not None
            if first:
                return _bash(f"echo '# Plan' > {plan[0]}")
            return Text("<PLAN_COMPLETE>One task.</PLAN_COMPLETE>")
        if role == "reviewing":
            return Text("<APPROVED>As specified.</APPROVED>")
        if slot == "1":
            self.claims += 1
            steps: list[Text | Tool] = [_bash("echo > other.txt"), Text("<DONE>Say it</DONE>")]
            return steps[self.claims - 1] if self.claims <= len(steps) else _sleep(600)
        if self.claims <= 2:  # until the other one has been sent back, and works again
            return _sleep(0.3)
        if not first and "wrote hello" in request.messages_text:
            return Text("<DONE>Say hello</DONE>")
        return _bash("echo hello > hello.txt; echo wrote hello")


def _bash(command: str) -> Tool:
    return Tool("Bash", {"command": command})


def _sleep(seconds: float) -> Tool:
    return _bash(f"python3 -c 'import time; time.sleep({seconds})'")


@pytest.mark.parametrize("sandbox", ["off", "require"])
def test_one_never_passes_and_the_other_lands(
    claude_cli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    """The one that passes ends the other, with its tool; no request of that one follows."""
    isolate_git(monkeypatch, tmp_path / "git")
    if sandbox == "require":
        needs_bubblewrap(tmp_path)
    project = SlotProject(
        tmp_path,
        sandbox=sandbox,
        slots=1,
        check_command="grep -q hello hello.txt",
        attempts=[AttemptChoice(), AttemptChoice(hint="begin with the greeting")],
    )
    model, seen, claims = Model(), list[ev.Event](), list[int]()

    def hear(event: ev.Event) -> None:
        seen.append(event)
        if isinstance(event, ev.AttemptChosen):
            claims.append(model.claims)

    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks(within=LIMIT), ModelServer(model) as server:
        agent = ClaudeAgent(path=claude_cli, env=agent_env(tmp_path / "home", server))
        runtime = Runtime.live(cwd=project.folder, config=project.config, agent=agent)
        last = cuggino.run(runtime.run(focus="Say hello"), hear)

    assert isinstance(last, ev.LoopApproved)
    (chosen,) = [event for event in seen if isinstance(event, ev.AttemptChosen)]
    (lost,) = [event for event in seen if isinstance(event, ev.AttemptLost)]
    assert ("attempt-2", 1) == (chosen.filename, chosen.passed)
    assert ("attempt-1", "overtaken", ("Say it",)) == (lost.filename, lost.why, lost.tried)
    assert [3] == claims
    assert 3 == model.claims
    hint = "Advice for this attempt: begin with the greeting"
    assert {"1": False, "2": True} == {slot: hint in plan for slot, plan in model.plans.items()}
    assert 2 == sum(isinstance(event, ev.Approved) for event in seen)
    assert "hello\n" == (project.folder / "hello.txt").read_text()
    assert not (project.folder / "other.txt").exists()
    assert "" == project.git.git("status", "--short")
    subjects = project.git.git("log", "--first-parent", "--format=%s").splitlines()
    assert ["Say hello", "Begin"] == subjects
    assert "Say it" == project.git.git("log", "-1", "--format=%s", lost.ref).strip()
