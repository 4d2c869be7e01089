"""The guarded scripted agent, whose tools are judged in process by the same policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cuggino
from cuggino.agents import SpawnOptions
from cuggino.agents.scripted import ScriptedAgent
from cuggino.agents.scripted.scenario import Scenario
from cuggino.errors import ConfigError, GuardNotLive
from cuggino.events import Event, GuardDenied, ToolResult
from cuggino.guard.policy import Policy
from cuggino.guard.roles import role_policy

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def play(folder: Path, *steps: dict[str, Any], policy: Policy | None) -> list[Event]:
    """Return the events of a session with these steps."""
    scenario = Scenario.model_validate({"implementing": [{"steps": steps}]})
    options = SpawnOptions(prompt="Go.", cwd=folder, role="implementing", guard=policy)
    events: list[Event] = []
    cuggino.run(ScriptedAgent(scenario).spawn(options), events.append)
    return events


STEPS: tuple[dict[str, Any], ...] = (
    {"write": "a.txt", "text": "a"},
    {"write": ".specs/a.md", "text": "a"},
    {"run": "echo b > b.txt"},
    {"run": "echo b > .specs/b.md"},
    {"append": "a.txt", "text": "a"},
    {"append": ".specs/task.md", "text": "a"},
    {"delete": ".specs/task.md"},
    {"say": "done"},
)


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".specs").mkdir()
    (tmp_path / ".specs" / "task.md").write_text("task")
    return tmp_path


def test_steps_are_judged(project: Path) -> None:
    """A denied step does not run, its result is the reason, and the session continues."""
    policy = role_policy("implementing", project=project, level="roles")
    events = play(project, *STEPS, policy=policy)
    assert {"a.txt": "aa", "b.txt": "b\n", ".specs/task.md": "task"} == contents(project)
    denied = [event for event in events if isinstance(event, GuardDenied)]
    assert ["tool_1", "tool_3", "tool_5", "tool_6"] == [event.tool_use_id for event in denied]
    assert ["Write", "Bash", "Edit", "Bash"] == [event.tool for event in denied]
    results = {event.name: event for event in events if isinstance(event, ToolResult)}
    for event in denied:
        assert ".specs" in event.reason
        assert results[event.tool_use_id].is_error
        assert event.reason in results[event.tool_use_id].output
    assert not results["tool_0"].is_error
    assert "AgentMessage" == events[-2].tag


def test_without_a_guard(project: Path) -> None:
    """An unguarded session runs all steps."""
    events = play(project, *STEPS, policy=None)
    expected = {"a.txt": "aa", "b.txt": "b\n", ".specs/a.md": "a", ".specs/b.md": "b\n"}
    assert expected == contents(project)
    assert "GuardDenied" not in [event.tag for event in events]


def test_without_a_parser(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a parser no guarded session starts."""

    def find() -> str:
        raise ConfigError("no shfmt", hint="install it")

    monkeypatch.setattr("cuggino.agents.base.guard.find_shfmt", find)
    policy = role_policy("implementing", project=project, level="roles")
    with pytest.raises(GuardNotLive, match="no shfmt") as caught:
        play(project, *STEPS, policy=policy)
    assert "install it" == caught.value.hint
    assert {".specs/task.md": "task"} == contents(project)


def test_a_broken_parser(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that fails its canary ends the session before its first tool."""
    monkeypatch.setattr("cuggino.agents.base.guard.find_shfmt", lambda: "/nonexistent/shfmt")
    policy = role_policy("implementing", project=project, level="roles")
    with pytest.raises(GuardNotLive, match="not live: it answers deny"):
        play(project, {"sleep": 0.5}, *STEPS, policy=policy)
    assert {".specs/task.md": "task"} == contents(project)
