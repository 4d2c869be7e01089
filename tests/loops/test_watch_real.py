"""The watch with real files, a real file watcher, real processes and git, by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cuggino.agents.scripted.scenario import Scenario
from cuggino.events import LoopSpecIssue, WatchTbdItemFound
from tests.git_project import isolate_git
from tests.limits import LIMIT
from tests.loops.real_watch import FINDING, FIRST, ISSUE, SECOND, Watch, WatchProject
from tests.loops.scenario_model import scenario_model
from tests.model_script import Message, ModelRequest, Reply, RoleScript, Script, Text, Tool
from tests.model_server import ModelServer
from tests.processes.subscribers import alive, eventually
from tests.real_claude import clean_env


def loop_of(item: str, *, approved: bool) -> list[str]:
    """Return the events of a run on the item, with one iteration and one task."""
    begun = [f"WatchProcessingItem {item}", "IterationStart", "PlanningStart"]
    if not approved:
        return [*begun, "StageCost", "SpecIssue"]
    return [
        *begun,
        "StageCost",
        "PlanWritten",
        "PlanComplete",
        "ImplementingStart",
        "StageCost",
        "Done",
        "CommitPerformed",
        "ReviewingStart",
        "StageCost",
        "Approved",
        "LoopApproved",
        f"WatchItemCompleted {item}",
    ]


def two_items(project: WatchProject) -> Scenario:
    """The agents of two items; the second one is a riddle at first. They look for the audit."""
    look = {"run": project.look_for_audit}
    plan = {"write": "$CUGGINO_PLAN_FILE", "text": "# Plan\n- [ ] The word\n"}
    planned = {"say": "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"}
    works = [plan, planned]

    def implementing(word: str) -> dict[str, Any]:
        done = {"say": f"<DONE>Add {word}</DONE>"}
        return {"steps": [{"write": f"{word}.txt", "text": f"{word}\n"}, done]}

    approved = {"steps": [{"say": "<APPROVED>As specified.</APPROVED>"}]}
    return Scenario.model_validate(
        {
            "planning": [
                {"steps": [look, *works]},
                {"steps": [look, {"say": f"<SPEC_ISSUE>{ISSUE}</SPEC_ISSUE>"}]},
                {"steps": [look, *works]},
            ],
            "implementing": [implementing("alpha"), implementing("beta")],
            "reviewing": [approved, approved],
            "audit": [
                {"steps": [{"say": _found(FINDING)}, {"run": project.tool}]},
                {"steps": [{"run": project.tool}]},
                {"steps": [{"run": project.tool}]},
            ],
        }
    )


def _found(finding: str) -> str:
    return f"<TO_BE_DISCUSSED>{finding}</TO_BE_DISCUSSED>"


def scripted(project: WatchProject, scenario: Scenario) -> str:
    """The name of the scripted agent that plays the scenario."""
    path = project.folder.parent / "scenario.toml"
    path.write_text(_toml(scenario))
    return f"scripted:{path}"


def _toml(scenario: Scenario) -> str:
    lines: list[str] = []
    for role in ("planning", "implementing", "reviewing", "audit"):
        for run in scenario.runs(role):
            lines.append(f"[[{role}]]")
            for step in run.steps:
                lines.append(f"[[{role}.steps]]")
                said = step.model_dump(exclude_defaults=True)
                lines += [f"{key} = {json.dumps(value)}" for key, value in said.items()]
    return "\n".join(lines)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_is_left: None) -> Path:
    """A folder out of reach of git's configuration, as the system names it."""
    isolate_git(monkeypatch, tmp_path.resolve() / "home")
    return tmp_path.resolve()


def see_the_whole_cycle(project: WatchProject, watch: Watch) -> None:
    """A finding, two items, a spec issue that is resolved, and Ctrl-C."""
    watch.until("WatchBacklogWaiting")
    watch.until("WatchAuditStarted")
    found = watch.until("WatchTbdItemFound")
    assert isinstance(found, WatchTbdItemFound)
    assert FINDING == found.content
    assert FINDING in (project.workspace.tbd / found.filename).read_text()
    audit = project.wait_for_tool("audit")
    assert 3 <= len(audit)  # the agent, its tool, the tool's child

    project.drop(FIRST, SECOND)
    watch.until("WatchAuditInterrupted")
    assert [] == [pid for pid in audit if alive(pid)]
    issue = watch.until("LoopSpecIssue")
    assert isinstance(issue, LoopSpecIssue)
    watch.until("WatchSpecIssueWaiting")
    assert [SECOND] == project.backlog
    assert [f"approved-{FIRST}"] == project.archived
    stored = project.workspace.spec_issues / issue.filename
    assert ISSUE in stored.read_text()

    watch.until("WatchAuditStarted")
    project.wait_for_tool("audit")
    stored.unlink()
    watch.until("WatchItemCompleted")
    watch.until("WatchBacklogWaiting")
    watch.until("WatchAuditStarted")
    project.wait_for_tool("audit")
    watch.interrupt()

    assert [
        "WatchBacklogWaiting",
        "WatchAuditStarted",
        "ToBeDiscussed",
        f"WatchTbdItemFound {found.filename}",
        "WatchAuditInterrupted",
        *loop_of(FIRST, approved=True),
        *loop_of(SECOND, approved=False),
        f"LoopSpecIssue {issue.filename}",
        "WatchSpecIssueWaiting",
        "WatchAuditStarted",
        "WatchAuditInterrupted",
        *loop_of(SECOND, approved=True),
        "WatchBacklogWaiting",
        "WatchAuditStarted",
    ] == watch.story
    assert ["looked"] * 3 == project.witnessed
    assert [] == project.working("audit")
    assert [] == project.backlog
    assert [f"approved-{FIRST}", f"approved-{SECOND}"] == project.archived
    assert ["Begin", "Add alpha", "Add beta"] == project.subjects
    assert {"alpha.txt", "beta.txt"} < project.git.committed()
    assert [] == project.session_files
    assert project.is_free


@pytest.mark.real_agent
def test_the_whole_cycle(place: Path) -> None:
    """A finding, two items in order, a spec issue and its resolution, an end: nothing is left."""
    project = WatchProject(place, audit=True)
    agent = scripted(project, two_items(project))
    with Watch(project, "--agent", agent) as watch:
        see_the_whole_cycle(project, watch)


AUDIT = "# Role: audit agent"
"""How the system prompt of the audit begins."""


def audit_model(project: WatchProject, audits: list[str | None], others: Script) -> Script:
    """A model that plays the audits, each a finding or none before it is busy; else `others`."""
    tool = Tool("Bash", {"command": project.tool, "timeout": 600_000})
    runs = [[Message([Text(_found(said)), tool] if said else [tool])] for said in audits]
    audit = RoleScript({"audit": AUDIT}, {"audit": runs})

    def model(request: ModelRequest) -> Reply:
        return audit(request) if AUDIT in request.system_text else others(request)

    return model


@pytest.mark.real_agent
def test_the_whole_cycle_with_the_real_agent(claude_cli: Path, place: Path) -> None:
    """Claude Code goes through the same cycle, and its audit is ended with its tools in time."""
    # The witness writes beside the project, which a sandbox would not allow.
    project = WatchProject(place, audit=True, sandbox=False, agent_path=str(claude_cli))
    others = scenario_model(two_items(project), project.folder)
    with ModelServer(audit_model(project, [FINDING, None, None], others)) as server:
        env = {
            **clean_env(place / "home", server.url),
            **{name: value for name, value in os.environ.items() if name.startswith("GIT_")},
            "CUGGINO_PYTHON": sys.executable,
        }
        with Watch(project, env=env) as watch:
            see_the_whole_cycle(project, watch)
    asked = [request.system_text for request in server.requests if AUDIT in request.system_text]
    assert FINDING not in asked[0]
    assert FINDING in asked[-1]  # known by now, and not to be declared again


def busy(project: WatchProject) -> Scenario:
    """A planning agent that is busy."""
    return Scenario.model_validate({"planning": [{"steps": [{"run": project.tool}]}]})


@pytest.mark.real_agent  # many processes: with the second command
def test_another_command_in_the_same_folder(place: Path) -> None:
    """A second command exits with 2 and names the first: process, command and start."""
    project = WatchProject(place)
    agent = scripted(project, busy(project))
    with Watch(project, "--agent", agent) as watch:
        watch.until("WatchBacklogWaiting")
        for command in (("watch",), ("run", "--focus", "the words")):
            second = subprocess.run(
                [sys.executable, "-m", "cuggino_cli", *command, "--json", "--agent", agent],
                cwd=project.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
            assert (2, "") == (second.returncode, second.stdout)
            assert f"in use by process {watch.process.pid} (cuggino watch, since " in second.stderr
            assert "Traceback" not in second.stderr
        project.drop(FIRST)
        watch.until("WatchProcessingItem")  # the first one is not disturbed
        watch.interrupt()
    assert [FIRST] == project.backlog
    assert project.is_free


@pytest.mark.real_agent  # many processes: with the second command
def test_a_watch_that_is_killed(place: Path) -> None:
    """After a SIGKILL its agents end all the same, and the next watch takes the item again."""
    project = WatchProject(place)
    project.workspace.open()
    project.drop(FIRST)
    agent = scripted(project, busy(project))
    with Watch(project, "--agent", agent) as watch:
        planning = project.wait_for_tool("planning")
        tree = watch.kill()
        assert set(planning) & set(tree)
    assert eventually(lambda: not [pid for pid in {*planning, *tree} if alive(pid)])
    assert [] == project.working("planning")
    assert [FIRST] == project.backlog

    with Watch(project, "--agent", agent) as watch:
        project.wait_for_tool("planning")
        watch.interrupt()
        # The round and the planning had begun before: they are not announced again.
        assert [f"WatchProcessingItem {FIRST}", "RunResumed"] == watch.story
    assert [] == project.working("planning")
    assert [FIRST] == project.backlog
    assert project.is_free
