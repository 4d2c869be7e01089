"""Sessions of the real Claude Code CLI at once, on a scripted model: slots, attempts, hands."""

from __future__ import annotations

import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, operators as ops

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

_ROLE = re.compile(r"# Role: (\w+ agent(?:, resolving a conflict)?)")
_SLOT = re.compile(r"/slot-(\d+)")
_PLAN = re.compile(r"\.cuggino/wip/[\w-]+\.planning/plan\.md")


def bash(command: str) -> Tool:
    return Tool("Bash", {"command": command})


def sleep(seconds: float) -> Tool:
    return bash(f"python3 -c 'import time; time.sleep({seconds})'")


class Model(ABC):
    """Plans, approves, and leaves the rest to the kind of model."""

    plan = "# Plan\n"
    look = ""
    """A command of the reviewing agent before it approves."""

    def __init__(self) -> None:
        self.at_work: set[str] = set()
        """The slots with an implementing session."""
        self.written: set[str] = set()
        self.prompts: dict[str, list[str]] = {}
        """The first prompts by role."""

    def __call__(self, request: ModelRequest) -> Reply:
        said = f"{request.system_text}\n{request.messages_text}"
        role, slot = _ROLE.search(request.system_text), _SLOT.search(said)
        if role is None:  # a small question of the program itself
            return Message([Text("Words")])
        if request.turns == 0:
            self.prompts.setdefault(role[1], []).append(said)
        return Message([self._act(role[1], slot[1] if slot else "", request)])

    def _act(self, role: str, slot: str, request: ModelRequest) -> Text | Tool:
        first = request.turns == 0
        match role:
            case "planning agent":
                plan = _PLAN.search(request.system_text)
                assert plan is not None
                if first:
                    return bash(f"printf %s {shlex.quote(self.plan)} > {plan[0]}")
                return Text("<PLAN_COMPLETE>Planned.</PLAN_COMPLETE>")
            case "reviewing agent":
                if first and self.look:
                    return bash(self.look)
                return Text("<APPROVED>As specified.</APPROVED>")
            case "implementing agent":
                return self.work(slot, request)
            case _:
                if first:
                    return bash("printf 'alpha\\nbeta\\n' > shared.txt")
                return Text("<DONE>Keep both words</DONE>")

    @abstractmethod
    def work(self, slot: str, request: ModelRequest) -> Text | Tool:
        """Return what an implementing agent does next."""

    def together(self, slot: str, command: str) -> Tool | None:
        """Return the command once, when two are at work; neither goes on before."""
        self.at_work.add(slot)
        if len(self.at_work) < 2:
            return sleep(0.3)
        if slot in self.written:
            return None
        self.written.add(slot)
        return bash(command)


def play(
    program: Path,
    project: SlotProject,
    model: Model,
    begin: Callable[[Runtime], Observable[Any]],
    hear: Callable[[ev.Event], object] = bool,
) -> list[ev.Event]:
    """Run the agent in the project; return the events. Nothing is left."""
    seen: list[ev.Event] = []

    def look(event: ev.Event) -> None:
        seen.append(event)
        hear(event)

    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks(within=LIMIT), ModelServer(model) as server:
        agent = ClaudeAgent(path=program, env=agent_env(project.place / "home", server))
        runtime = Runtime.live(cwd=project.folder, config=project.config, agent=agent)
        cuggino.run(begin(runtime), look)
    assert "" == project.git.git("status", "--short")
    return seen


def of(seen: list[ev.Event], kind: type[Any]) -> list[Any]:
    return [event for event in seen if isinstance(event, kind)]


@pytest.fixture(params=["off", "require"])
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    isolate_git(monkeypatch, tmp_path / "git")
    if request.param == "require":
        needs_bubblewrap(tmp_path)
    return str(request.param)


class Words(Model):
    """Two items change the same line; who comes second keeps both."""

    look = "git log --oneline -3; cat shared.txt"

    def work(self, slot: str, request: ModelRequest) -> Text | Tool:
        plans = self.prompts["planning agent"]
        (prompt,) = [said for said in plans if f"/slot-{slot}" in said]
        word = "alpha" if "the word alpha" in prompt else "beta"
        command = f'echo {word} > shared.txt; echo "$PORT" > port-$PORT'
        return self.together(slot, command) or Text(f"<DONE>Write {word}</DONE>")


def test_two_slots(claude_cli: Path, tmp_path: Path, sandbox: str) -> None:
    """Both items land, the second one after a session that resolves the conflict."""
    project = SlotProject(tmp_path, sandbox=sandbox)
    for word in ("alpha", "beta"):
        item = project.workspace.backlog / f"{word}.md"
        item.write_text(f"# Write the word {word}\n\nInto shared.txt.\n")
    model = Words()
    waits = ops.take_while(lambda e: not isinstance(e, ev.WatchBacklogWaiting), inclusive=True)
    seen = play(claude_cli, project, model, lambda runtime: runtime.watch().pipe(waits))

    assert {1, 2} == {event.slot for event in of(seen, ev.WatchSlotPrepared)}
    assert [("conflict", ("shared.txt",))] == [
        (event.reason, event.paths) for event in of(seen, ev.WatchSentBack)
    ]
    landed = [event.filename for event in of(seen, ev.WatchLanded)]
    assert ["alpha.md", "beta.md"] == sorted(landed)
    assert landed == [event.filename for event in of(seen, ev.WatchItemCompleted)]
    assert 2 == len(of(seen, ev.WatchFollowed))
    sessions = of(seen, ev.SessionEnded)
    assert 8 == len(sessions)  # three an item, a resolution and its review
    assert all(event.item for event in sessions)
    assert "alpha\nbeta\n" == (project.folder / "shared.txt").read_text()
    ports = sorted(path.name for path in project.folder.glob("port-*"))
    assert ["port-20100", "port-20200"] == ports
    assert all(project.is_green(commit) for commit in project.first_parents())
    assert [3, 3] == [len(of(seen, ev.Approved)), len(of(seen, ev.CommitPerformed))]
    (resolving,) = model.prompts["implementing agent, resolving a conflict"]
    for word in (name.removesuffix(".md") for name in landed):
        assert f"+{word}" in resolving
        assert f"Write the word {word}" in resolving
        assert f"+{word}" in model.prompts["reviewing agent"][-1]


class Claims(Model):
    """In slot 1 it claims to be done, and then works forever; in slot 2 it does the work."""

    claims = 0
    """The requests of those that implement in slot 1."""

    def work(self, slot: str, request: ModelRequest) -> Text | Tool:
        if slot == "1":
            self.claims += 1
            steps: list[Text | Tool] = [bash("echo > other.txt"), Text("<DONE>Say it</DONE>")]
            return steps[self.claims - 1] if self.claims <= len(steps) else sleep(600)
        if self.claims <= 2:  # until the other one has been sent back, and works again
            return sleep(0.3)
        if request.turns and "wrote hello" in request.messages_text:
            return Text("<DONE>Say hello</DONE>")
        return bash("echo hello > hello.txt; echo wrote hello")


def test_two_attempts(claude_cli: Path, tmp_path: Path, sandbox: str) -> None:
    """The one that passes ends the other, with its tool; no request of that one follows."""
    project = SlotProject(
        tmp_path,
        sandbox=sandbox,
        slots=1,
        check_command="grep -q hello hello.txt",
        attempts=[AttemptChoice(), AttemptChoice(hint="begin with the greeting")],
    )
    model, claims = Claims(), list[int]()

    def hear(event: ev.Event) -> None:
        if isinstance(event, ev.AttemptChosen):
            claims.append(model.claims)

    seen = play(claude_cli, project, model, lambda one: one.run(focus="Say hello"), hear)

    assert isinstance(seen[-1], ev.LoopApproved)
    (chosen,), (lost,) = of(seen, ev.AttemptChosen), of(seen, ev.AttemptLost)
    assert ("attempt-2", 1) == (chosen.filename, chosen.passed)
    assert ("attempt-1", "overtaken", ("Say it",)) == (lost.filename, lost.why, lost.tried)
    assert [3] == claims
    assert 3 == model.claims
    hint = "Advice for this attempt: begin with the greeting"
    plans = model.prompts["planning agent"]
    assert {False, True} == {hint in plan for plan in plans}
    assert all("/slot-2" in plan for plan in plans if hint in plan)
    assert 2 == len(of(seen, ev.Approved))
    assert "hello\n" == (project.folder / "hello.txt").read_text()
    assert not (project.folder / "other.txt").exists()
    subjects = project.git.git("log", "--first-parent", "--format=%s").splitlines()
    assert ["Say hello", "Begin"] == subjects
    assert "Say it" == project.git.git("log", "-1", "--format=%s", lost.ref).strip()


class Tasks(Model):
    """Each implementing agent reads its task from its plan, and tries to write elsewhere."""

    plan = "# Plan\n" + "".join(
        f"\n## Task {n}: {word}\n\nafter: none\nfiles: {word}.txt\n"
        for n, word in enumerate(("alpha", "beta"), 1)
    )
    look = "git log --oneline -3; cat alpha.txt beta.txt"

    def __init__(self, project: Path) -> None:
        super().__init__()
        self._outside = [project, *(Path(f"../slot-{number}") for number in (1, 2))]

    def work(self, slot: str, request: ModelRequest) -> Text | Tool:
        elsewhere = [path for path in self._outside if not path.name.endswith(f"-{slot}")]
        tries = "; ".join(f"(echo evil > {path / 'evil.txt'}) 2> /dev/null" for path in elsewhere)
        word = r"""sed -n 's/^## Task [0-9]*: //p' "$CUGGINO_SESSION_FILE" """
        script = f'{tries}; word=$({word}); echo "$word" > "$word.txt"'
        return self.together(slot, script) or Text("<DONE>Write a word</DONE>")


@pytest.mark.parametrize("sandbox", ["require"], indirect=True)
def test_two_hands(claude_cli: Path, tmp_path: Path, sandbox: str) -> None:
    """Both tasks land and are approved together; no hand writes to the project or another clone."""
    project = SlotProject(tmp_path, sandbox=sandbox, slots=1, hands=2, gate="block")
    model = Tasks(project.folder)
    seen = play(claude_cli, project, model, lambda one: one.run(focus="the words"))

    assert isinstance(seen[-1], ev.LoopApproved)
    assert seen[-1].checked
    assert {"1", "2"} == model.written
    (prompt,) = model.prompts["planning agent"]
    assert "`after: 1, 2`" in prompt
    (ended,) = of(seen, ev.HandsEnded)
    assert ({"task-1.1", "task-1.2"}, {}) == (set(ended.landed), ended.undone)
    assert [None, None, "task-1.1", "task-1.2"] == sorted(
        (event.item for event in of(seen, ev.SessionEnded)), key=lambda item: item or ""
    )
    assert 1 == len(of(seen, ev.WatchFollowed))
    assert "alpha\n" == (project.folder / "alpha.txt").read_text()
    assert "beta\n" == (project.folder / "beta.txt").read_text()
    assert [] == [*tmp_path.rglob("evil.txt")]
    assert 3 == len(project.first_parents())
    assert all(project.is_green(commit) for commit in project.first_parents())
