"""A recording inside its project: never part of the work, and never changed by a replay."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import cuggino
from cuggino import Config, Runtime
from cuggino.agents.cassettes import record_to, replay_of
from cuggino.agents.cassettes.cassette import FileState
from cuggino.agents.cassettes.files import put_files
from cuggino.agents.cassettes.places import Places
from cuggino.errors import CassetteError
from cuggino.events import AgentMessage, Event, SessionEnded
from cuggino.testing import AgentRun, InMemoryAgent
from tests.agents.cassettes.test_recording_files import make, of, record, replay
from tests.git_project import GitProject, isolate_git

STOPS = ("ImplementingStart", "NoProgress", "LoopStalled", "LoopMaxIterations")


@pytest.fixture(autouse=True)
def own_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate_git(monkeypatch, tmp_path / "home")


def test_an_agent_that_commits_all(tmp_path: Path) -> None:
    """A commit of everything includes the recording; a replay does not restore it."""
    project = make(tmp_path / "project")
    cassette = project / "run.jsonl"

    def change(folder: Path) -> None:
        (folder / "own.txt").write_text("x")
        GitProject(folder).git("add", "-A")
        GitProject(folder).git("commit", "-q", "-m", "all")

    record(project, cassette, change)
    there = make(tmp_path / "there")
    (there / "run.jsonl").write_bytes(cassette.read_bytes())
    before = (there / "run.jsonl").read_bytes()
    replay(there, there / "run.jsonl")
    assert before == (there / "run.jsonl").read_bytes()
    assert "x" == (there / "own.txt").read_text()
    assert "all" == GitProject(there).git("log", "-1", "--format=%s").strip()


def test_a_recording_that_contains_itself(tmp_path: Path) -> None:
    """Replaying a recording that contains its own file leaves the file unchanged."""
    project = make(tmp_path / "project")
    own = project / "run.jsonl"
    own.write_text("mine")
    files = {"run.jsonl": FileState(text="less"), "b.txt": FileState(text="b")}
    assert ["b.txt"] == put_files(project, files, Places.of(of(project)), without=own)
    assert ("mine", "b") == (own.read_text(), (project / "b.txt").read_text())


@pytest.mark.parametrize("name", ["g/hooks/pre-commit", "a\0b/c"])
def test_paths_into_the_repository(tmp_path: Path, name: str) -> None:
    """Paths are checked after links are resolved, and an invalid one is refused with a message."""
    project = make(tmp_path / "project")
    (project / "g").symlink_to(".git")
    with pytest.raises(CassetteError, match="not a file of the project"):
        put_files(project, {name: FileState(text="x")}, Places.of(of(project)))
    assert not (project / ".git" / "hooks" / "pre-commit").exists()


def test_a_binary_file_with_a_secret(tmp_path: Path) -> None:
    """A file omitted because of a secret can be provided before the replay."""
    project = make(tmp_path / "project")
    data = b"\xff\x00postgres://app:hunter22@db/x"
    record(project, tmp_path / "c", lambda folder: (folder / "x.sqlite").write_bytes(data))
    there = make(tmp_path / "there")
    with pytest.raises(CassetteError, match="its bytes contain a secret"):
        replay(there, tmp_path / "c")
    (there / "x.sqlite").write_bytes(data)
    replay(there, tmp_path / "c")
    assert data == (there / "x.sqlite").read_bytes()


def test_commit_hooks_do_not_run_again(tmp_path: Path) -> None:
    """A recorded commit is recreated exactly, without running the project's hooks."""
    project = make(tmp_path / "project")

    def change(folder: Path) -> None:
        (folder / "a.txt").write_text("x")
        GitProject(folder).git("add", "-A")
        GitProject(folder).git("commit", "-q", "-m", "[X-1] one")

    record(project, tmp_path / "c", change)
    there = make(tmp_path / "there")
    hook = there / ".git" / "hooks" / "prepare-commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\necho "[X-1] $(cat "$1")" > "$1"\n')
    hook.chmod(0o755)
    replay(there, tmp_path / "c")
    assert "[X-1] one" == GitProject(there).git("log", "-1", "--format=%s").strip()


def idle_agent() -> InMemoryAgent:
    """Return an agent whose sessions never change anything."""

    def says(text: str, plan: str | None = None) -> Iterator[AgentRun]:
        events: list[Event] = [AgentMessage(text=text), SessionEnded(outcome="completed")]
        while True:
            yield AgentRun(events, plan=plan)

    return InMemoryAgent(
        {
            "planning": says("<PLAN_COMPLETE>p</PLAN_COMPLETE>", "# Plan\n- [ ] a\n- [ ] b\n"),
            "implementing": says("<PROGRESS>x</PROGRESS>"),
            "reviewing": says("<REQUEST_CHANGES>y</REQUEST_CHANGES>"),
        }
    )


def course(folder: Path, agent: InMemoryAgent | str, record: Path | None = None) -> list[str]:
    config = Config(guard="off", max_iterations=2, max_tasks_per_plan=6)
    tags: list[str] = []
    stream = Runtime.live(cwd=folder, config=config, agent=agent, record=record).run(focus="f")
    cuggino.run(stream, lambda event: tags.append(event.tag))
    return [tag for tag in tags if tag in STOPS]


@pytest.mark.real_agent
def test_a_recording_is_no_progress(tmp_path: Path) -> None:
    """A growing recording inside the project does not count as progress of the loop."""
    folders = [make(tmp_path / name) for name in ("plain", "recorded", "replayed")]
    for folder in folders:
        (folder / ".specs").mkdir()
        (folder / ".specs" / "a.md").write_text("spec")
    plain, recorded, replayed = folders
    expected = course(plain, idle_agent())
    assert "LoopStalled" == expected[-1]
    assert expected == course(recorded, idle_agent(), recorded / "run.jsonl")
    os.replace(recorded / "run.jsonl", tmp_path / "run.jsonl")  # noqa: PTH105
    assert expected == course(replayed, f"replay:{tmp_path / 'run.jsonl'}")


def test_own_files(tmp_path: Path) -> None:
    """The recorder and the player name their file; other agents have none."""
    agent = InMemoryAgent({"coding": [AgentRun(())]})
    recorder = record_to(tmp_path / "c", agent, env={})
    assert ((), (tmp_path / "c",)) == (agent.own_files, recorder.own_files)
    cuggino.run(recorder.spawn(of(tmp_path)))
    player = replay_of(tmp_path / "c")
    again = record_to(tmp_path / "d", player, env={})
    assert (tmp_path / "d", tmp_path / "c") == again.own_files
