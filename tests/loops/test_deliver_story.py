"""A whole project, from its specification to success with one deliverable blocked.

Driven by the scripted agent and by the real Claude Code CLI: both really call the tools over MCP.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino import Config, LlmAgent, Runtime, events as ev
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Failure, Limit, Scenario, ScenarioRun, Step
from cuggino.domain.deliverable_tools import agent_tool
from cuggino.errors import QuotaExceeded
from cuggino.processes import process_lines
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.model_script import SUBSCRIPTION, usage_limit
from tests.model_server import Message, ModelRequest, ModelServer, Reply, Text, Tool
from tests.real_claude import clean_env

IDS = ("A", "B", "C", "D", "E")
DESCRIPTIONS = {name: f"part {name.lower()}.txt" for name in IDS}


@dataclass(frozen=True)
class Write:
    """Write `name.txt`."""

    name: str


@dataclass(frozen=True)
class Set:
    """Say how far a deliverable is."""

    name: str
    status: str


@dataclass(frozen=True)
class Create:
    """Create all deliverables."""


@dataclass(frozen=True)
class LimitMet:
    """A usage limit is met in mid-session."""


Deed = Create | Write | Set | LimitMet
STORY: Sequence[Sequence[Deed]] = (
    (Create(),),
    (Write("a"), Set("A", "passed")),
    (Set("B", "blocked"), Write("c"), Set("C", "passed")),
    # The third coding session finds that C is broken, does D, and meets a limit.
    (Set("C", "pending"), Write("d"), Set("D", "passed"), LimitMet()),
    # When it is resumed it begins anew.
    (Write("c"), Set("C", "passed"), Write("e"), Set("E", "passed")),
)
AFTER = (
    ("", "A- B- C- D- E-"),
    ("a", "A+ B- C- D- E-"),
    ("a c", "A+ B! C+ D- E-"),
    ("a c d", "A+ B! C- D+ E-"),
    ("a c d e", "A+ B! C+ D+ E+"),
)
"""The files, and how far each deliverable is, after each session."""


@dataclass
class Project:
    """A project and its agent; what was seen of it after each session."""

    folder: Path
    agent: LlmAgent
    events: list[ev.Event] = field(default_factory=list)
    after: list[tuple[str, str]] = field(default_factory=list)

    @property
    def runtime(self) -> Runtime:
        return Runtime.live(cwd=self.folder, config=Config(), agent=self.agent)

    def see(self, event: ev.Event) -> None:
        self.events.append(event)
        if isinstance(event, ev.DeliverSessionEnded):
            self.after.append((self.files, self.statuses))

    @property
    def files(self) -> str:
        return " ".join(sorted(path.stem for path in self.folder.glob("*.txt")))

    @property
    def statuses(self) -> str:
        kept = json.loads((self.folder / ".autonoe" / "status.json").read_text())
        return " ".join(
            item["id"] + ("+" if item["passed"] else "!" if item["blocked"] else "-")
            for item in kept["deliverables"]
        )

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def create() -> dict[str, Any]:
    items = [
        {"id": name, "description": text, "acceptanceCriteria": [f"{name.lower()}.txt is there"]}
        for name, text in DESCRIPTIONS.items()
    ]
    return {"deliverables": items}


def scripted(_project: Path) -> ScriptedAgent:
    """The agent without a model, playing the story."""

    def step(deed: Deed) -> list[Step]:
        match deed:
            case Create():
                return [Step(tool="create_deliverable", input=create())]
            case Write(name=name):
                return [Step(write=f"{name}.txt", text=name)]
            case Set(name=name, status=status):
                given: dict[str, Any] = {"deliverableId": name, "status": status}
                return [Step(tool="set_deliverable_status", input=given)]
            case LimitMet():
                failure = Failure(status=429, error="usage_limit_reached", text="limit reached")
                return [Step(limit=Limit(resets_in=3600.0)), Step(fail=failure)]

    runs = [
        ScenarioRun(steps=tuple(x for deed in deeds for x in step(deed)), cost_usd=0.01)
        for deeds in STORY
    ]
    return ScriptedAgent(Scenario(initializer=(runs[0],), coding=tuple(runs[1:])))


class Model:
    """The model of the real agent, playing the story: a turn a deed, a list a conversation."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._begun: dict[str, int] = {}

    def __call__(self, request: ModelRequest) -> Reply:
        session = str(request.body["metadata"]["user_id"])
        deeds = STORY[self._begun.setdefault(session, len(self._begun))]
        if request.turns >= len(deeds):
            return Message([Text("That is all for this session.")])
        match deeds[request.turns]:
            case Create():
                return Message([Tool(agent_tool("create_deliverable"), create())])
            case Write(name=name):
                path = str(self._project / f"{name}.txt")
                if (self._project / f"{name}.txt").exists():  # it would have to be read before
                    return Message([Tool("Bash", {"command": f"echo {name} > {name}.txt"})])
                return Message([Tool("Write", {"file_path": path, "content": name})])
            case Set(name=name, status=status):
                given = {"deliverableId": name, "status": status}
                return Message([Tool(agent_tool("set_deliverable_status"), given)])
            case LimitMet():
                return usage_limit(time.time() + 3600)


@pytest.fixture(params=["scripted", pytest.param("claude", marks=pytest.mark.real_agent)])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    folder = tmp_path / "project"
    (folder / ".autonoe").mkdir(parents=True)
    (folder / ".autonoe" / "agent.json").write_text('{"mcpServers": {}}')
    (folder / "SPEC.md").write_text("Five files.\n")
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks(within=LIMIT):
        if request.param == "scripted":
            yield Project(folder, scripted(folder))
            return
        program: Path = request.getfixturevalue("claude_cli")
        with ModelServer(Model(folder)) as server:
            env = {**clean_env(tmp_path / "home", server.url), **SUBSCRIPTION}
            yield Project(folder, ClaudeAgent(path=program, env=env))


@pytest.mark.real_agent
def test_a_whole_project(project: Project) -> None:
    """Five deliverables in three coding sessions, with a usage limit, a resume, and one blocked."""
    runtime = project.runtime
    options = runtime.deliver_options(session_pause=0.0)
    with pytest.raises(QuotaExceeded):
        cuggino.run(runtime.deliver(options), project.see)
    (stopped,) = project.of(ev.DeliverEnded)
    assert ("quota_exceeded", 4, 2, 5, 1) == summary(stopped)
    assert list(AFTER[:4]) == project.after

    before = len(project.events)
    ended = cuggino.run(project.runtime.resume_delivery(session_pause=0.0), project.see)
    assert isinstance(ended, ev.DeliverEnded)
    assert isinstance(project.events[before], ev.RunResumed)
    assert ("all_passed", 4, 4, 5, 1) == summary(ended)
    assert list(AFTER) == project.after
    assert 0.04 < ended.cost_usd + 1e-9

    begun = [(event.session, event.instruction) for event in project.of(ev.DeliverSessionStarted)]
    coding = [(number, "coding") for number in (2, 3, 4, 4)]
    assert [(1, "initializer"), *coding] == begun
    changed = [(e.deliverable_id, e.status) for e in project.of(ev.DeliverableStatusChanged)]
    deeds = [deed for deeds in STORY for deed in deeds if isinstance(deed, Set)]
    assert [(deed.name, deed.status) for deed in deeds] == changed
    answers = [json.loads(r.output) for r in project.of(ev.ToolResult) if r.output.startswith("{")]
    assert len(deeds) + 1 == len(answers)
    assert all(answer["success"] for answer in answers)


def summary(ended: ev.DeliverEnded) -> tuple[str, int, int, int, int]:
    return ended.reason, ended.sessions, ended.passed, ended.total, ended.blocked
