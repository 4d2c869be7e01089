"""A whole plan/build run: planned, built in five iterations and one more, verified, done.

Driven by the scripted agent and by the real CLIs of Claude Code and GitHub Copilot.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino import Config, LlmAgent, Runtime, events as ev
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario, ScenarioRun, Step
from cuggino.processes import process_lines
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.model_server import Message, ModelRequest, ModelServer, Reply, Text, Tool
from tests.real_claude import clean_env
from tests.real_copilot import Copilot

BREADS = ("rye", "wheat", "spelt", "corn", "oat")
JOBS = "docs/requirements/jobs-to-be-done.json"
NO = {"issues": ["The recipe names no temperature"]}


def jobs(done: int) -> str:
    """Return the jobs file with the first jobs done."""
    items = [
        {
            "id": f"J{n}",
            "requirementCode": f"REQ-{n}",
            "description": f"a recipe for {bread} bread",
            "status": "done" if n <= done else "open",
            "priority": n,
            "owner": "kitchen",
        }
        for n, bread in enumerate(BREADS, 1)
    ]
    return json.dumps({"jobs": items})


def built(n: int, *, last: bool = False) -> list[str]:
    """The commands of the iteration that makes the n-th recipe."""
    bread = BREADS[n - 1]
    commands = [
        f"mkdir -p recipes docs/reference && echo {bread} > recipes/{bread}.md",
        f"echo '{jobs(n)}' > {JOBS}",
        f"git add -- recipes {JOBS} && git commit -qm 'feat(recipes): add {bread} bread'",
    ]
    return commands + (["echo done > lopen.loop.done"] if last else [])


PLAN = [f"mkdir -p docs/requirements && echo '{jobs(0)}' > {JOBS}"]
BUILDS = [
    built(1),
    built(2),
    built(3),  # the verification sends it back
    ["echo '200 C' >> recipes/spelt.md", *built(3)[1:2], "git commit -qam 'fix(recipes): heat'"],
    built(4),
    built(5, last=True),
]
VERDICTS = (True, True, False, True, True, True)


def answer(complete: bool) -> str:
    parts = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")
    return json.dumps(dict.fromkeys(parts, complete) | ({} if complete else NO))


@dataclass
class Project:
    """A project on a branch, and its agent."""

    folder: Path
    agent: LlmAgent
    events: list[ev.Event] = field(default_factory=list)

    def run(self, **options: Any) -> ev.PlanBuildEnded:
        runtime = Runtime.live(cwd=self.folder, config=Config(), agent=self.agent)
        given = {"iteration_pause": 0.0, "verify_build": "test -d recipes", **options}
        run = runtime.plan_build(runtime.plan_build_options(**given))
        last = cuggino.run(run, self.events.append)
        assert isinstance(last, ev.PlanBuildEnded)
        return last

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def log(self) -> list[str]:
        words = ["git", "-C", str(self.folder), "log", "--reverse", "--format=%s"]
        return subprocess.check_output(words, text=True).splitlines()


def scripted() -> ScriptedAgent:
    def runs(sessions: Sequence[Sequence[str]]) -> tuple[ScenarioRun, ...]:
        return tuple(
            ScenarioRun(steps=tuple(Step(run=command) for command in commands), cost_usd=0.01)
            for commands in sessions
        )

    judged = tuple(ScenarioRun(steps=(Step(say=answer(verdict)),)) for verdict in VERDICTS)
    return ScriptedAgent(Scenario(plan=runs([PLAN]), build=runs(BUILDS), judge=judged))


class Model:
    """The model of a real agent: a list of commands a conversation, or a verdict."""

    def __init__(self) -> None:
        self._begun = 0
        self._verdicts = iter(VERDICTS)

    def __call__(self, request: ModelRequest) -> Reply:
        if "Another session says that a job" in request.messages_text:
            return Message([Text(answer(next(self._verdicts)))])
        if request.turns == 0:
            self._begun += 1
        commands = [PLAN, *BUILDS][self._begun - 1]
        if request.turns >= len(commands):
            return Message([Text("That is all.")])
        return Message([Tool("Bash", {"command": commands[request.turns]})])


REAL = pytest.mark.real_agent


@pytest.fixture(
    params=["scripted", pytest.param("claude", marks=REAL), pytest.param("copilot", marks=REAL)]
)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    folder = tmp_path / "project"
    specification = folder / "docs" / "requirements" / "bread" / "SPECIFICATION.md"
    specification.parent.mkdir(parents=True)
    specification.write_text("".join(f"## REQ-{n}\n" for n in range(1, 6)))
    (folder / "PLAN.PROMPT.md").write_text("Plan the bread.\n")
    (folder / "BUILD.PROMPT.md").write_text("Bake the next one.\n")
    git = ["git", "-C", str(folder)]
    subprocess.run(["git", "init", "-qb", "bread", str(folder)], check=True)
    for key, value in (("user.name", "A"), ("user.email", "a@example.com")):
        subprocess.run([*git, "config", key, value], check=True)
    subprocess.run([*git, "add", "--", "docs", "PLAN.PROMPT.md", "BUILD.PROMPT.md"], check=True)
    subprocess.run([*git, "commit", "-qm", "docs: specify"], check=True)
    cuggino.run(process_lines(["true"]))  # the guardian stays, and keeps a pipe
    with no_leaks(within=LIMIT):
        if request.param == "scripted":
            yield Project(folder, scripted())
            return
        program: Path = request.getfixturevalue(f"{request.param}_cli")
        if request.param == "copilot":
            copilot = Copilot(program, folder, tmp_path / "home")
            with copilot.serve(copilot.translated(Model())) as server:
                yield Project(folder, copilot.agent(server.url))
            return
        with ModelServer(Model()) as server:
            env = clean_env(tmp_path / "home", server.url)
            yield Project(folder, ClaudeAgent(path=program, env=env))


@pytest.mark.real_agent
def test_five_breads(project: Project) -> None:
    """Each job is done when it is verified; the refuted one is reopened and repaired."""
    ended = project.run()
    assert ("complete", 7, 5, 0, 0) == (
        ended.reason,
        ended.iterations,
        ended.done,
        ended.open,
        ended.blocked,
    )
    assert list(range(1, 8)) == [e.iteration for e in project.of(ev.PlanBuildIterationEnded)]
    verified = [(event.job_id, event.passed) for event in project.of(ev.JobVerified)]
    names = ("J1", "J2", "J3", "J3", "J4", "J5")
    assert list(zip(names, VERDICTS, strict=True)) == verified
    assert NO["issues"] == list(project.of(ev.JobVerified)[2].issues)
    subjects = [event.subject for event in project.of(ev.CommitSeen)]
    assert ["docs: specify", *subjects] == project.log
    assert 6 == len(subjects)
    phases = [event.phase for event in project.of(ev.PlanBuildPhaseStarted)]
    assert ["plan", *(["build", "verify"] * 6)] == phases
    assert [0, 1, 2, 2, 3, 4, 5] == [event.done for event in project.of(ev.JobsCounted)][1:8]
    kept = json.loads((project.folder / JOBS).read_text())
    assert {"kitchen"} == {job["owner"] for job in kept["jobs"]}
    assert sorted(f"{bread}.md" for bread in BREADS) == sorted(
        file.name for file in (project.folder / "recipes").iterdir()
    )
    assert (project.folder / "lopen.loop.done").exists()
