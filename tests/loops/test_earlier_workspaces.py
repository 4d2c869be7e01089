"""Workspaces of earlier versions are listed, replayed, reported and resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, operators as ops

import cuggino
from cuggino import Runtime, events as ev
from cuggino.loops.frame.journal import ADDED_STAGES
from cuggino.runs import RunState
from cuggino.storage import read_journal
from cuggino.testing import no_leaks
from cuggino_cli.main import main
from tests.git_project import GitProject, isolate_git

DATA = Path(__file__).parent.parent / "data"
VERSIONS = ("0.1.0", "0.2.0")
LOOPS = ("run", "deliver", "loop")
STATES = {
    "run-finished": ["approved"],
    "run-killed": ["killed"],
    "watch-finished": ["approved", "approved", "interrupted"],
    "watch-killed": ["killed", "approved", "killed"],
    "deliver-finished": ["approved"],
    "deliver-killed": ["killed"],
    "loop-finished": ["approved"],
    "loop-killed": ["killed"],
}
"""The state of each recorded run, newest first."""


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if a test leaves a process, a thread or a file."""
    isolate_git(monkeypatch, tmp_path / "home")
    with no_leaks():
        yield


def project_of(version: str, name: str, folder: Path) -> Path:
    """Write the workspace of that version into a new project on a branch."""
    project = GitProject(folder / name)
    project.git("checkout", "--quiet", "-b", "bread")
    project.git("commit", "--quiet", "--allow-empty", "--message=Begin")
    files = json.loads(
        (DATA / f"workspaces_{version}" / f"{name}.json").read_text(encoding="utf-8")
    )
    # Otherwise the journals are removed when they are a month old.
    config = {**json.loads(files[".cuggino.json"]), "journalDays": 36_500}
    for path, text in {**files, ".cuggino.json": json.dumps(config)}.items():
        file = project.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace("$PROJECT", str(project.root))
        file.write_text(
            text.replace('"session_pause":3.0', '"session_pause":0.01'), encoding="utf-8"
        )
    return project.root


def collect(stream: Observable[Any]) -> list[Any]:
    """Run the stream and return its events."""
    events: list[Any] = []
    cuggino.run(stream, events.append)
    return events


def work_of(project: Path) -> dict[str, str]:
    """Return what the agents wrote."""
    names = ("*.txt", ".autonoe/status.json", "docs/**/*.json", "lopen.loop.done")
    paths = sorted(path for name in names for path in project.glob(name))
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("version", VERSIONS)
def test_read(
    version: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each run is listed with its state, replayed event by event and shown in a report."""
    project = project_of(version, name, tmp_path)
    monkeypatch.chdir(project)
    runtime = Runtime.live(cwd=project)
    runs = collect(runtime.runs())
    assert STATES[name] == [run.state for run in runs]
    own = [run for run in runs if run.journal.started.item is None]
    assert [name.endswith("killed")] == [run.resumable for run in own]
    for run in runs:
        assert run.totals.duration > 0
        recorded = [entry.event for entry in read_journal(run.path).entries]
        replayed = collect(runtime.replay(run.id))
        assert len(replayed) > 5
        assert replayed == [event for event in recorded if event in replayed]
    assert 0 == main(["report", own[0].id, "--output", "-"])
    assert own[0].short_id in capsys.readouterr().out


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("version", VERSIONS)
def test_resumed(version: str, kind: str, tmp_path: Path) -> None:
    """A killed run is resumed: no finished session is repeated, and its end is that of another."""
    finished = project_of(version, f"{kind}-finished", tmp_path)
    killed = project_of(version, f"{kind}-killed", tmp_path)
    runtime = Runtime.live(cwd=killed)
    resume: dict[str, Callable[[], Observable[Any]]] = {
        "run": runtime.resume,
        "deliver": runtime.resume_delivery,
        "loop": runtime.resume_plan_build,
    }
    last = collect(resume[kind]())[-1]
    match last:
        case ev.DeliverEnded() | ev.PlanBuildEnded():
            assert last.reason in ("all_passed", "complete")
        case _:
            assert isinstance(last, ev.LoopApproved)
    assert {**work_of(finished), "status.json": ""} == {**work_of(killed), "status.json": ""}
    (before,), (after,) = (
        [read_journal(path) for path in (project / ".cuggino" / "journal").iterdir()]
        for project in (finished, killed)
    )
    assert "approved" == after.state
    starts = [
        [
            entry.event.name
            for entry in journal.entries
            if isinstance(entry.event, ev.StageStarted) and entry.event.name not in ADDED_STAGES
        ]
        for journal in (before, after)
    ]
    assert len(starts[0]) + 1 == len(starts[1])  # the session that was killed
    assert RunState.of(before.entries).totals.cost_usd == RunState.of(after.entries).totals.cost_usd


@pytest.mark.parametrize("version", VERSIONS)
def test_a_resumed_watch(version: str, tmp_path: Path) -> None:
    """A new watch finishes the run of a killed one and archives its item."""
    finished, killed = (
        project_of(version, f"watch-{how}", tmp_path) for how in ("finished", "killed")
    )
    watch: Observable[Any] = Runtime.live(cwd=killed).watch()
    events = collect(watch.pipe(ops.take_while(_is_before_the_end, inclusive=True)))
    assert "RunResumed" in [event.tag for event in events]
    assert not {"PlanningStart", "ImplementingStart"} & {event.tag for event in events}
    assert work_of(finished) == work_of(killed)
    assert [] == list((killed / ".cuggino" / "backlog").iterdir())
    archived = sorted(path.name[37:] for path in (killed / ".cuggino" / "archive").iterdir())
    assert ["approved-10-kiwi.md", "approved-20-plum.md"] == archived


def _is_before_the_end(event: ev.Event) -> bool:
    return not isinstance(event, ev.WatchItemCompleted)
