"""A branch that somebody checks out during a run: it is reported, since it gets the commits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from reactivex import Observable, just

from cuggino import events as ev
from cuggino.git import current_branch
from cuggino.loops import LoopRunOptions, LoopService
from cuggino.operators import StateRef
from cuggino.stages import Commit
from tests.git_project import GitProject
from tests.loops.coding_loop import drawn, marbles
from tests.loops.deliver_loop import DeliverLoop, Turn as Session
from tests.loops.plan_build_loop import PlanBuildLoop, Turn, has

CHANGED = ev.BranchChanged(before="work", after="other")


class Switching:
    """Takes no snapshot; a person changes the branch when that of the stage is due."""

    def __init__(self, project: GitProject, stage: str) -> None:
        self._project = project
        self._stage = stage

    def take(self, run: str, stage: str) -> Observable[ev.SnapshotTaken]:
        if stage == self._stage:
            self._project.git("symbolic-ref", "HEAD", "refs/heads/other")
        return just(ev.SnapshotTaken(stage=stage, ref="refs/x", commit="c"))

    def prune(
        self, before: datetime, *, is_needed: Callable[[str], bool] = lambda _: False
    ) -> Observable[int]:
        return just(0)


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    made = GitProject(tmp_path)
    made.git("symbolic-ref", "HEAD", "refs/heads/work")
    return made


def after(event: ev.Event, events: list[ev.Event]) -> str:
    """Return the tag of what follows the event, which is there once."""
    (at,) = (n for n, one in enumerate(events) if one == event)
    return events[at + 1].tag


def test_of_the_coding_loop(project: GitProject) -> None:
    """The commit that follows is on the other branch."""
    t = marbles(k=Commit(hash="abc", message="one"))
    loop = drawn(project.root, t, "c|", "d|", "y|", commits=[t.cold("(k|)")])
    services = replace(loop.service.services, snapshots=Switching(project, "implementing-1"))
    run = LoopService(services).run(LoopRunOptions(focus="the page", cwd=project.root, commit=True))
    events = [value for _, kind, value in t.record(run) if kind == "next"]
    assert "CommitPerformed" == after(CHANGED, events)


def test_between_two_items(project: GitProject, tmp_path: Path) -> None:
    """A run that shares the branch with an earlier one reports the change, and only once."""
    t = marbles()
    loop = drawn(project.root, t, "c| c|", "d| d|", "y| y|")
    branch: StateRef[str | None] = StateRef("before")
    options = LoopRunOptions(focus="the page", cwd=project.root)
    seen = [
        value
        for _ in range(2)
        for _, kind, value in t.record(loop.service.run(options, branch=branch))
        if kind == "next"
    ]
    changed = [event for event in seen if isinstance(event, ev.BranchChanged)]
    assert [ev.BranchChanged(before="before", after="work")] == changed


def test_of_deliver(project: GitProject) -> None:
    """Its agents commit by themselves: it is reported before the next session."""
    loop = DeliverLoop(
        project.root, [Session(leaves={"a": "pending"}), Session(leaves={"a": "passed"})]
    )
    loop.replace(snapshots=Switching(project, "initializer-1"))
    assert "SnapshotTaken" == after(CHANGED, loop.run().events)


def test_of_plan_build(project: GitProject) -> None:
    """Its own commits go there, too."""
    loop = PlanBuildLoop(project.root, [Turn(), Turn(has(True))])
    project.git("symbolic-ref", "HEAD", "refs/heads/work")  # the loop has made its own
    loop.replace(snapshots=Switching(project, "build-1"))
    events = loop.run(auto_commit=True).events
    assert [CHANGED] == [event for event in events if isinstance(event, ev.BranchChanged)]
    assert "other" == current_branch(project.root)
