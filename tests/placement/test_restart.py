"""A client that ends, is killed or comes back, and the attempts that it has placed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from reactivex import Observable, concat, operators as ops

import cuggino
from cuggino.agents.base import SpawnOptions
from cuggino.events import Event, ImplementingStart, WatchCandidate, WatchItemCompleted
from cuggino.storage.journal import list_journals, read_journal
from cuggino.testing import Item, Say, Write
from tests.placement.agent import PLAYS, sessions
from tests.placement.linked import ClusterProject, works

FULL = ["planning", "implementing", "reviewing"]


@pytest.mark.parametrize("role", FULL[1:])
@pytest.mark.real_agent  # watches on several machines: with the second command
def test_ended_client(project: ClusterProject, role: str) -> None:
    """A watch that ends cancels its attempts; the next one continues with the open stage."""
    project.item("one")
    project.watch_until(works(role))
    (attempt,) = project.link.attempts
    assert attempt.is_over
    project.watch()
    assert ["one"] == project.landed()
    at = FULL.index(role)
    assert [*FULL[: at + 1], *FULL[at:]] == sessions("one")


@pytest.mark.real_agent
def test_killed_client(project: ClusterProject, tmp_path: Path) -> None:
    """A client that had no time to write anything more resumes all the same."""
    kept = tmp_path / "kept"

    def killed(event: Event) -> bool:
        if is_killed := works("reviewing")(event):
            shutil.copytree(project.workspace.folder, kept)
        return is_killed

    project.item("one")
    project.watch_until(killed)
    shutil.rmtree(project.workspace.folder)
    kept.rename(project.workspace.folder)
    project.watch()
    assert ["one"] == project.landed()
    assert [*FULL, "reviewing"] == sessions("one")
    assert "" == project.git.git("status", "--porcelain")


def left_at(project: ClusterProject, kind: type[Event]) -> Observable[Event]:
    """Return a watch whose client dies at such an event, and leaves its attempts at work."""

    def goes_on(event: Event) -> bool:
        project.link.client_is_dead = isinstance(event, kind)
        return not project.link.client_is_dead

    return project.stream().pipe(ops.take_while(goes_on))


@pytest.mark.real_agent
def test_detached_attempts(project: ClusterProject) -> None:
    """A new client takes over the attempts that the old one has left at work."""
    project.item("one", "two")
    events = list(cuggino.iterate(concat(left_at(project, ImplementingStart), project.later())))
    assert {"one", "two"} == set(project.landed())
    assert (FULL, FULL) == (sessions("one"), sessions("two"))
    assert 2 == len(project.link.attempts)
    assert 2 == len([event for event in events if isinstance(event, WatchItemCompleted)])
    runs = [read_journal(path) for path in list_journals(project.workspace.journal)]
    assert ["approved"] * 2 == [run.state for run in runs if run.started.kind == "run"]


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_detached_attempt_at_another_text(project: ClusterProject) -> None:
    """An attempt at an old text of an item, or at a removed item, is ended."""
    project.item("one", "two")

    def changed(attempts: ClusterProject) -> None:
        attempts.item("one", text="# Something else\n")
        (attempts.workspace.backlog / "two.md").unlink()

    stream = concat(left_at(project, ImplementingStart), project.later(changed))
    list(cuggino.iterate(stream))
    assert ["one"] == project.landed()
    old, other, new = project.link.attempts
    assert {"one", "two"} == {old.item, other.item}
    assert {"one", "two"} <= set(project.link.cancelled[:2])
    assert "one" == new.item
    assert 2 == sessions("one").count("planning")


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_detached_attempt_that_had_its_candidate(project: ClusterProject) -> None:
    """An attempt whose candidate was sent back is not taken for the next one."""
    trunk = project.folder / "check.sh"
    project.item("one")

    def changed(again: ClusterProject) -> None:
        (attempt,) = again.link.attempts
        attempt.is_over = False  # its end was not received
        again.config = again.config.model_copy(update={"check_command": "test -e better"})
        PLAYS["one", "implementing"] = [better]

    stream = concat(left_at(project, WatchCandidate), project.later(changed))
    list(cuggino.iterate(stream))
    assert trunk.exists()
    assert ["one"] == project.landed()
    assert (project.folder / "better").exists()


def better(_: SpawnOptions) -> Sequence[Item]:
    return [Write("better", "yes\n"), Say("<DONE>Do it</DONE>")]
