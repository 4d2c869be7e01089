"""A recording within its project: it is no part of the work, and no replay changes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import cuggino
from cuggino import Config, Runtime
from cuggino.agents.cassettes import record_to, replay_of
from cuggino.agents.cassettes.cassette import FileState
from cuggino.agents.cassettes.project_files import put_files
from cuggino.agents.cassettes.text import Places
from cuggino.agents.protocol import own_files_of
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
    """A commit of everything holds the recording too; a replay does not put it back."""
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


def test_an_older_recording_of_itself(tmp_path: Path) -> None:
    """A recording that holds its own file is left as it is when it is played."""
    project = make(tmp_path / "project")
    own = project / "run.jsonl"
    own.write_text("mine")
    files = {"run.jsonl": FileState(text="less"), "b.txt": FileState(text="b")}
    assert ["b.txt"] == put_files(project, files, Places.of(of(project)), without=own)
    assert ("mine", "b") == (own.read_text(), (project / "b.txt").read_text())


@pytest.mark.parametrize("name", ["g/hooks/pre-commit", "a\0b/c"])
def test_ways_into_the_repository(tmp_path: Path, name: str) -> None:
    """Where a path leads to counts, and one that is none is refused in a sentence."""
    project = make(tmp_path / "project")
    (project / "g").symlink_to(".git")
    with pytest.raises(CassetteError, match="none of the project's files"):
        put_files(project, {name: FileState(text="x")}, Places.of(of(project)))
    assert not (project / ".git" / "hooks" / "pre-commit").exists()


def test_a_binary_file_with_a_secret(tmp_path: Path) -> None:
    """What was left out for a secret in it can be laid there before the replay."""
    project = make(tmp_path / "project")
    data = b"\xff\x00postgres://app:hunter22@db/x"
    record(project, tmp_path / "c", lambda folder: (folder / "x.sqlite").write_bytes(data))
    there = make(tmp_path / "there")
    with pytest.raises(CassetteError, match="there is a secret in its bytes"):
        replay(there, tmp_path / "c")
    (there / "x.sqlite").write_bytes(data)
    replay(there, tmp_path / "c")
    assert data == (there / "x.sqlite").read_bytes()


def test_hooks_have_done_their_part(tmp_path: Path) -> None:
    """A recorded commit is made again as it was, whatever the project's hooks would add."""
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
    """Agents that change nothing, for ever."""

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


def test_a_recording_is_no_progress(tmp_path: Path) -> None:
    """A loop that gets nowhere ends as soon with a recording that grows in its project."""
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


def test_whose_files_they_are(tmp_path: Path) -> None:
    """The recorder and the player name their file; other agents have none."""
    agent = InMemoryAgent({"coding": [AgentRun(())]})
    recorder = record_to(tmp_path / "c", agent, env={})
    assert ((), (tmp_path / "c",)) == (own_files_of(agent), own_files_of(recorder))
    cuggino.run(recorder.spawn(of(tmp_path)))
    player = replay_of(tmp_path / "c")
    again = record_to(tmp_path / "d", player, env={})
    assert (tmp_path / "d", tmp_path / "c") == own_files_of(again)
