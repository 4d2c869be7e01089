"""Snapshots of every loop before its agents, repository reports, and branches that change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, just

from cuggino import events as ev
from cuggino.errors import ConfigError
from cuggino.git import current_branch
from cuggino.loops import LoopRunOptions, LoopService
from cuggino.operators import StateRef
from cuggino.stages import Commit
from tests.git_project import GitProject
from tests.loops.coding_loop import drawn, marbles
from tests.loops.deliver_loop import DeliverLoop, Turn as Session
from tests.loops.plan_build_loop import PlanBuildLoop, Turn, has


class Recording:
    """Snapshots that are only counted."""

    def __init__(self, *, fails: bool = False) -> None:
        self.taken: list[str] = []
        self.runs: set[str] = set()
        self.pruned: list[Callable[[str], bool]] = []
        self._fails = fails

    def take(self, run: str, stage: str) -> Observable[ev.SnapshotTaken | ev.SnapshotFailed]:
        self.taken.append(stage)
        self.runs.add(run)
        if self._fails:
            return just(ev.SnapshotFailed(stage=stage, message="no space"))
        return just(ev.SnapshotTaken(stage=stage, ref=f"refs/x/{stage}", commit="c"))

    def prune(
        self, before: datetime, *, is_needed: Callable[[str], bool] = lambda _: False
    ) -> Observable[int]:
        self.pruned.append(is_needed)
        return just(0)


class Rewritten:
    """A repository whose history is rewritten, and with a person's uncommitted file."""

    def __init__(self) -> None:
        self.dirty_at: list[Mapping[str, str]] = []

    def head(self) -> Observable[str | None]:
        return just("0")

    def is_ancestor(self, commit: str) -> Observable[bool]:
        assert "0" == commit
        return just(False)

    def dirty(self, *, exclude: tuple[Path, ...] = ()) -> Observable[dict[str, str]]:
        return just({"mine": "state"})

    def commit(
        self, message: str, *, exclude: tuple[Path, ...] = (), dirty: Mapping[str, str]
    ) -> Observable[Commit]:
        self.dirty_at.append(dirty)
        return just(Commit(hash="abc", message=message, mixed=("mine",)))

    def push(self, remote: str, branch: str) -> Observable[Any]:
        raise AssertionError("nothing is pushed")


def test_deliver(tmp_path: Path) -> None:
    """Each session of the deliverables loop has a snapshot, which its run needs."""
    snapshots = Recording()
    project = DeliverLoop(
        tmp_path, [Session(leaves={"a": "pending"}), Session(leaves={"a": "passed"})]
    )
    project.replace(snapshots=snapshots)
    project.run()
    assert ["initializer-1", "coding-1"] == snapshots.taken
    (name,) = snapshots.runs
    (is_needed,) = snapshots.pruned
    assert is_needed(name)
    assert not is_needed("another")


def test_plan_build(tmp_path: Path) -> None:
    """Each session that may write has one; those that verify have none."""
    snapshots = Recording()
    project = PlanBuildLoop(tmp_path, [Turn(), Turn(has(True))], plan=[Turn()])
    project.replace(snapshots=snapshots)
    story = project.run(start="plan")
    assert "complete" == story.ended.reason
    assert ["plan-1", "build-1", "build-2"] == snapshots.taken
    assert 3 == len(story.of(ev.SnapshotTaken))


def test_a_failed_snapshot_ends_nothing(tmp_path: Path) -> None:
    """The run goes on without it."""
    project = PlanBuildLoop(tmp_path, [Turn(has(True))])
    project.replace(snapshots=Recording(fails=True))
    story = project.run()
    assert "complete" == story.ended.reason
    assert ["build-1"] == [failed.stage for failed in story.of(ev.SnapshotFailed)]


def test_a_rewritten_history_of_deliver(tmp_path: Path) -> None:
    """The start of a run that has left the history is reported before its result."""
    project = DeliverLoop(tmp_path, [Session(leaves={"a": "passed"})])
    project.replace(repository=Rewritten())
    story = project.run()
    assert ["HistoryRewritten", "DeliverEnded"] == [event.tag for event in story.events[-2:]]


def test_a_dirty_tree_of_plan_build(tmp_path: Path) -> None:
    """The loop's own commits leave a person's files out, and name those that both changed."""
    repository = Rewritten()
    project = PlanBuildLoop(tmp_path, [Turn(has(True))])
    project.replace(repository=repository)
    story = project.run(auto_commit=True)
    assert [("mine",)] == [event.paths for event in story.of(ev.DirtyFilesKept)]
    assert [("mine",)] == [event.paths for event in story.of(ev.DirtyFilesCommitted)]
    assert [{"mine": "state"}] == repository.dirty_at
    assert [ev.HistoryRewritten(base="0", head="0")] == story.of(ev.HistoryRewritten)


def test_a_dirty_tree_is_refused(tmp_path: Path) -> None:
    """With `dirty: refuse` no session starts."""
    project = PlanBuildLoop(tmp_path, [])
    project.replace(repository=Rewritten())
    story = project.run(auto_commit=True, dirty="refuse")
    assert isinstance(story.error, ConfigError)
    assert "uncommitted changes: mine" in story.error.message
    assert [] == project.agent.of("build")


# -- a branch that somebody checks out during a run: it is reported, since it gets the commits


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
