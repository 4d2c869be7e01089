"""Two sessions of the real Claude Code CLI at once, in two slots, with one conflict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reactivex import operators as ops

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

_ROLE = re.compile(r"# Role: (\w+ agent(?:, resolving a conflict)?)")
_SLOT = re.compile(r"/slot-(\d+)")
_PLAN = re.compile(r"\.cuggino/wip/[\w-]+\.planning/plan\.md")


class Model:
    """Two items change the same line; who comes second keeps both."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        """The word of the item in each slot."""
        self.at_work: set[str] = set()
        """The slots with an implementing session."""
        self.written: set[str] = set()
        self.prompts: dict[str, list[str]] = {}

    def __call__(self, request: ModelRequest) -> Reply:
        said = request.system_text
        role = _ROLE.search(said)
        slot = _SLOT.search(f"{said}\n{request.messages_text}")
        if role is None or slot is None:  # a small question of the program itself
            return Message([Text("Words")])
        if request.turns == 0:
            self.prompts.setdefault(role[1], []).append(said)
        return Message([self._act(role[1], slot[1], request)])

    def _act(self, role: str, slot: str, request: ModelRequest) -> Text | Tool:
        first = request.turns == 0
        if role == "planning agent":
            self.words[slot] = "alpha" if "the word alpha" in request.system_text else "beta"
            plan = _PLAN.search(request.system_text)
            assert plan is not None
            if first:
                return _bash(f"echo '# Plan' > {plan[0]}")
            return Text("<PLAN_COMPLETE>One task.</PLAN_COMPLETE>")
        if role == "implementing agent":
            self.at_work.add(slot)
            if len(self.at_work) < 2:  # neither goes on before both are at work
                return _bash("python3 -c 'import time; time.sleep(0.3)'")
            if slot not in self.written:
                self.written.add(slot)
                return _bash(f'echo {self.words[slot]} > shared.txt; echo "$PORT" > port-$PORT')
            return Text(f"<DONE>Write {self.words[slot]}</DONE>")
        if role == "implementing agent, resolving a conflict":
            if first:
                return _bash("printf 'alpha\\nbeta\\n' > shared.txt")
            return Text("<DONE>Keep both words</DONE>")
        if first:
            return _bash("git log --oneline -3; cat shared.txt")
        return Text("<APPROVED>As specified.</APPROVED>")


def _bash(command: str) -> Tool:
    return Tool("Bash", {"command": command})


@pytest.mark.parametrize("sandbox", ["off", "require"])
def test_two_sessions_at_once(
    claude_cli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    """Both land, the second one after a session that resolves the conflict."""
    isolate_git(monkeypatch, tmp_path / "git")
    project = SlotProject(tmp_path, sandbox=sandbox)
    if sandbox == "require":
        needs_bubblewrap(tmp_path)
    for word in ("alpha", "beta"):
        item = project.workspace.backlog / f"{word}.md"
        item.write_text(f"# Write the word {word}\n\nInto shared.txt.\n")
    model, seen = Model(), list[ev.Event]()
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks(within=LIMIT), ModelServer(model) as server:
        env = agent_env(tmp_path / "home", server)
        agent = ClaudeAgent(path=claude_cli, env=env)
        watch = Runtime.live(cwd=project.folder, config=project.config, agent=agent).watch()
        waits = ops.take_while(lambda e: not isinstance(e, ev.WatchBacklogWaiting), inclusive=True)
        cuggino.run(watch.pipe(waits), seen.append)

    assert {"alpha", "beta"} == set(model.words.values())
    assert {1, 2} == {event.slot for event in seen if isinstance(event, ev.WatchSlotPrepared)}
    assert [("conflict", ("shared.txt",))] == [
        (event.reason, event.paths) for event in seen if isinstance(event, ev.WatchSentBack)
    ]
    landed = [event.filename for event in seen if isinstance(event, ev.WatchLanded)]
    assert ["alpha.md", "beta.md"] == sorted(landed)
    completed = [event.filename for event in seen if isinstance(event, ev.WatchItemCompleted)]
    assert landed == completed
    assert 2 == sum(isinstance(event, ev.WatchFollowed) for event in seen)
    sessions = [event for event in seen if isinstance(event, ev.SessionEnded)]
    assert 8 == len(sessions)  # three an item, a resolution and its review
    assert all(event.item for event in sessions)
    assert "alpha\nbeta\n" == (project.folder / "shared.txt").read_text()
    ports = sorted(path.name for path in project.folder.glob("port-*"))
    assert ["port-20100", "port-20200"] == ports
    assert "" == project.git.git("status", "--short")
    assert all(project.is_green(commit) for commit in project.first_parents())
    assert 3 == sum(isinstance(event, ev.Approved) for event in seen)
    assert 3 == sum(isinstance(event, ev.CommitPerformed) for event in seen)
    (resolving,) = model.prompts["implementing agent, resolving a conflict"]
    first, second = landed
    for word in (first.removesuffix(".md"), second.removesuffix(".md")):
        assert f"+{word}" in resolving
        assert f"Write the word {word}" in resolving
        assert f"+{word}" in model.prompts["reviewing agent"][-1]
