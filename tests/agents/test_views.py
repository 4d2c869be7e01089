"""Tests for sessions in the view of their role, with the scripted agent and a fake program."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from cuggino import run
from cuggino.agents import SpawnOptions
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import Event
from cuggino.sandbox import ViewRole, role_view
from tests.sandbox.arena import needs_bubblewrap

_SCENARIO = """
[[reviewing]]
[[reviewing.steps]]
run = "echo x > src.py; echo r > own/r.md"
"""

_FAKE = """#!/bin/sh
[ "$1" = --version ] && echo "2.1.329 (Claude Code)" && exit
for word; do
    [ "$last" = --append-system-prompt-file ] && cat "$word" > own/seen
    last=$word
done
echo x > src.py
for name in .claude/state .claude/settings.json z; do echo x > "$HOME/$name"; done
echo '{"type": "result", "subtype": "success", "is_error": false, "result": "done"}'
"""


def options(project: Path, role: ViewRole) -> SpawnOptions:
    own = project / "own"
    own.mkdir(parents=True)
    view = role_view(role, project=project, folder=own)
    return SpawnOptions(
        prompt="work",
        cwd=project,
        view=view,
        dangerously_skip_permissions=True,
        system_prompt="SYS",
    )


def test_a_program_sees_its_files_and_its_state(tmp_path: Path) -> None:
    """It reads its private files, keeps its state, and changes nothing else."""
    needs_bubblewrap(tmp_path)
    project, home = tmp_path / "project", tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".claude/settings.json").write_text("{}")
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(_FAKE)
    program.chmod(0o755)
    agent = ClaudeAgent(path=program, env={**os.environ, "HOME": str(home)})
    events: list[Event] = []
    run(agent.spawn(options(project, "reviewing")), events.append)
    assert "SYS" == (project / "own/seen").read_text()
    assert not (project / "src.py").exists()
    assert "x\n" == (home / ".claude/state").read_text()
    assert "{}" == (home / ".claude/settings.json").read_text()
    assert not (home / "z").exists()
    assert events


def test_the_scripted_agent(tmp_path: Path) -> None:
    """Its tools run in the view, too."""
    needs_bubblewrap(tmp_path)
    project = tmp_path / "project"
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(_SCENARIO)
    given = options(project, "reviewing")
    events: list[Event] = []
    run(ScriptedAgent(scenario).spawn(replace(given, role="reviewing")), events.append)
    assert not (project / "src.py").exists()
    assert "r\n" == (project / "own/r.md").read_text(), events
