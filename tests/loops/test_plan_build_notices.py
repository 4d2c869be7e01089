"""Notices about the agent's work in the plan/build loop, and the loop's own commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just, throw

from cuggino import events as ev
from cuggino.agents.base import SpawnOptions
from cuggino.errors import ProcessError
from cuggino.loops import PlanBuildOptions
from cuggino.loops.plan_build.notices import WorkNotices
from cuggino.loops.plan_build.session import phase_options
from cuggino.stages.repository import Commit
from cuggino.storage import Session
from tests.loops.plan_build_loop import (
    SPECIFICATION,
    Does,
    PlanBuildLoop,
    Turn,
    has,
    plan_build_marbles,
)
from tests.loops.session_loop import DONE

COMMIT = "git add . && git commit -m 'feat: bake'"


def call(name: str, key: str = "1", **given: Any) -> ev.ToolCall:
    return ev.ToolCall(name=name, input=given, id=key)


def result(key: str = "1", *, is_error: bool = False) -> ev.ToolResult:
    return ev.ToolResult(name=key, output="", is_error=is_error)


def noticed(project: Path, *events: ev.Event) -> list[ev.Event]:
    """Return the notices among the events."""
    notices = WorkNotices(project)
    told = [said for event in events for said in notices.notice(event)]
    assert [event for event in told if event in events] == list(events)
    return [event for event in told if event not in events]


def test_sub_agents(tmp_path: Path) -> None:
    """A subagent is reported after its call and after its result, with its kind."""
    task = call("Task", subagent_type="baker", description="knead")
    notices = WorkNotices(tmp_path)
    started, ended = (
        ev.SubAgentStarted(name="baker", description="knead"),
        ev.SubAgentEnded(name="baker"),
    )
    assert [task, started] == list(notices.notice(task))
    assert [result(), ended] == list(notices.notice(result()))
    assert [result()] == list(notices.notice(result()))


@pytest.mark.parametrize("given", [None, "text", {}, {"subagent_type": None, "description": None}])
def test_a_sub_agent_without_a_name(given: Any, tmp_path: Path) -> None:
    """A subagent without a name is reported too."""
    task = ev.ToolCall(name="Task", input=given, id="1")
    assert [ev.SubAgentStarted(name="agent"), ev.SubAgentEnded(name="agent")] == noticed(
        tmp_path, task, result()
    )


def test_files(tmp_path: Path) -> None:
    """A written file is reported once, relative to the project."""
    names = ["a.md", "./a.md", "b/../a.md", str(tmp_path / "a.md"), "/elsewhere/x", "../y"]
    events: list[ev.Event] = []
    for n, name in enumerate(names):
        events += [call("Write", str(n), file_path=name), result(str(n))]
    paths = ["a.md", "/elsewhere/x", str(tmp_path.parent / "y")]
    assert [ev.FileTouched(path=path) for path in paths] == noticed(tmp_path, *events)


def test_files_through_a_link(tmp_path: Path) -> None:
    """Files are relative to the project even if it is reached through a link."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    events = [call("Edit", file_path=str((tmp_path / "real").resolve() / "a.md")), result()]
    assert [ev.FileTouched(path="a.md")] == noticed(tmp_path / "link", *events)


@pytest.mark.parametrize(
    ("tool", "given", "paths"),
    [
        ("Write", {"file_path": "a"}, ["a"]),
        ("NotebookEdit", {"notebook_path": "n"}, ["n"]),
        ("MultiEdit", {"edits": [{"file_path": "a"}, {"file_path": "b"}, "odd"]}, ["a", "b"]),
        ("Write", {"file_path": 7}, []),
        ("Write", {}, []),
        ("Read", {"file_path": "a"}, []),
    ],
)
def test_tools(tool: str, given: dict[str, Any], paths: list[str], tmp_path: Path) -> None:
    """Files are taken from writing tools, also from each of several edits."""
    expected = [ev.FileTouched(path=path) for path in paths]
    assert expected == noticed(tmp_path, call(tool, **given), result())


def test_a_tool_that_fails(tmp_path: Path) -> None:
    """A failed tool, or one without a result, has written nothing."""
    events = [
        call("Write", file_path="a"),
        result(is_error=True),
        call("Write", "2", file_path="b"),
    ]
    assert [] == noticed(tmp_path, *events)


def test_a_commit_in_mid_session(tmp_path: Path) -> None:
    """A commit is reported once, at the result of its command."""
    t = plan_build_marbles(
        C=call("Bash", command=COMMIT),
        D=Does(commits=("feat: bake",)),
        R=result(),
        E=Does(commits=("fix: heat",)),
    )
    project = PlanBuildLoop(
        tmp_path, [Turn(stream=t.cold("-C-(DR)--E--d|"))], marbles=t, log=["old"]
    )
    story = project.run(max_sessions=1)
    seen = [(e.commit_hash, e.subject) for e in story.of(ev.CommitSeen)]
    assert [("h1", "feat: bake"), ("h2", "fix: heat")] == seen
    assert [3, 10] == story.times(ev.CommitSeen)


def test_events_that_come_at_once(tmp_path: Path) -> None:
    """Each is in the journal before it is seen, the notices of an event right after it."""
    work = [
        ev.AgentMessage(text="I begin"),
        call("Write", file_path="./docs/requirements/b.md"),
        result(),
        call("Read", "2", file_path="c"),
        result("2"),
        call("Task", "3", subagent_type="baker"),
        ev.AgentMessage(text="I wait"),
        result("3"),
        DONE,
    ]
    project = PlanBuildLoop(tmp_path, plan=[Turn(events=work)])
    said: list[ev.Event] = []

    def look(event: ev.Event) -> None:
        said.append(event)
        (journal,) = project.workspace.journal.glob("*.jsonl")
        if isinstance(
            event, ev.LlmAgentEvent | ev.FileTouched | ev.SubAgentStarted | ev.SubAgentEnded
        ):
            last = journal.read_text().splitlines()[-1]
            assert f'"_tag":"{event.tag}"' in last

    stream = project.stream(start="plan", plan_only=True, journal=True)
    errors: list[Exception] = []
    stream.subscribe(look, errors.append, scheduler=project.marbles.clock)
    project.marbles.clock.advance_by(60)
    assert [] == errors
    assert "PlanBuildEnded" == said[-1].tag
    tags = [event.tag for event in said]
    first, last = tags.index("AgentMessage"), tags.index("SessionEnded")
    assert [
        *("AgentMessage", "ToolCall", "ToolResult", "FileTouched", "ToolCall", "ToolResult"),
        *("ToolCall", "SubAgentStarted", "AgentMessage", "ToolResult", "SubAgentEnded"),
        "SessionEnded",
    ] == tags[first : last + 1]


def test_commits_of_two_sessions(tmp_path: Path) -> None:
    """A commit is reported in the session that made it."""
    turns = [Turn(commits=("feat: a",)), Turn(commits=("feat: b",))]
    story = PlanBuildLoop(tmp_path, turns).run(max_sessions=2)
    assert ["feat: a", "feat: b"] == [event.subject for event in story.of(ev.CommitSeen)]


def test_files_of_the_requirements(tmp_path: Path) -> None:
    """Changed requirement files are reported once, however they were changed."""
    changed = {SPECIFICATION: "REQ-1 and more", "docs/requirements/b.md": "b", "other.md": "x"}
    told = (call("Write", file_path="./docs/requirements/b.md"), result())
    turn = Turn(events=(*told, Does(changed), ev.AgentMessage(text="done"), DONE))
    story = PlanBuildLoop(tmp_path, plan=[turn]).run(start="plan", plan_only=True)
    paths = [event.path for event in story.of(ev.FileTouched)]
    assert ["docs/requirements/b.md", SPECIFICATION] == paths


def test_commits_of_the_loop(tmp_path: Path) -> None:
    """Changes of an iteration are committed after its verification, and reported."""
    project = PlanBuildLoop(tmp_path, [Turn(), Turn(has(True))], plan=[Turn()])
    story = project.run(start="plan", auto_commit=True)
    assert ["chore(loop): iteration 2", "chore(loop): iteration 3"] == project.log
    assert project.log == [event.subject for event in story.of(ev.CommitSeen)]


def test_no_commits_without_the_option(tmp_path: Path) -> None:
    """Without `auto_commit` nothing is committed."""
    project = PlanBuildLoop(tmp_path, [Turn()])
    project.run(max_sessions=1)
    assert [] == project.log


def test_a_commit_that_fails(tmp_path: Path) -> None:
    """A failed commit is reported, and the loop continues, but not to its completion."""
    no: Observable[Any] = throw(ProcessError("git", "the hook says no"))
    project = PlanBuildLoop(tmp_path, [Turn(), Turn(has(True))], committing=no)
    story = project.run(auto_commit=True)
    assert ["the commit failed: the hook says no"] == story.warnings
    assert ("failed", True) == (story.ended.reason, story.ended.is_resumable)
    assert "the work is not committed: the hook says no" == story.ended.error


def test_a_commit_that_leaves_something(tmp_path: Path) -> None:
    """Files that a commit cannot contain are reported with it, and nothing is complete."""
    made = Commit(hash="h1", message="chore", left=("module",))
    project = PlanBuildLoop(tmp_path, [Turn(), Turn(has(True))], committing=just(made))
    story = project.run(auto_commit=True)
    left = "submodule module has uncommitted changes; commit them there"
    assert [f"the commit failed: {left}"] == story.warnings
    assert f"the work is not committed: {left}" == story.ended.error


def test_no_commit_on_a_protected_branch(tmp_path: Path) -> None:
    """Nothing is committed on a protected branch, unless that is allowed."""
    turn = Turn({".git/HEAD": "ref: refs/heads/main\n", **has(True)})
    project = PlanBuildLoop(tmp_path, [turn])
    story = project.run(auto_commit=True)
    assert ["not committed: branch main is protected"] == story.warnings
    assert [] == project.log
    again = PlanBuildLoop(tmp_path, [turn])
    again.run(auto_commit=True, allow_main=True, fresh=True)
    assert 1 == len(again.log)


@pytest.mark.parametrize("guard", ["roles", "full", "off"])
@pytest.mark.parametrize("allow_all", [True, False])
@pytest.mark.parametrize("is_guarded", [True, False])
def test_permissions_of_agents(
    guard: Any, allow_all: bool, is_guarded: bool, tmp_path: Path
) -> None:
    """Without `allow_all` the guard, or else the agent's own permissions, limit tools."""
    options = PlanBuildOptions(cwd=tmp_path, guard=guard, allow_all=allow_all)
    spawn: SpawnOptions = phase_options(
        "build", "p", options, turn=1, is_guarded=is_guarded, session=Session("the-id", tmp_path)
    )
    holds = is_guarded and (guard != "off" or not allow_all)
    assert holds == (spawn.guard is not None)
    assert (allow_all or is_guarded) == spawn.dangerously_skip_permissions
    if spawn.guard is not None:
        assert ("roles" if allow_all and guard == "roles" else "full") == spawn.guard.level
