"""Commands load only the modules that they use, so that they start quickly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.events import IterationStart, RunEnded, RunStarted
from cuggino.events.names import NAMES
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal
from tests.limits import LIMIT

_SCRIPT = """
import json, os, sys

def report():
    with open("modules.json", "w") as file:
        json.dump(list(sys.modules), file)

def at_agent(event, arguments):
    if event == "subprocess.Popen" and sys.argv[1:2] == ["run"]:
        program, words = str(arguments[0]), [str(word) for word in arguments[1]]
        if any(word.endswith("/claude") for word in (program, *words)) and "--version" not in words:
            report()
            os._exit(0)

sys.addaudithook(at_agent)
from cuggino_cli import startup

startup.begin()
from cuggino_cli.main import main

code = main(sys.argv[1:])
report()
sys.exit(code)
"""

_RUN = ["run", "--focus", "x"]
_SECTIONS = ("agents", "cluster", "forges", "notifying")
_LOOPS = ("coding", "watch", "deliver", "plan_build")
_PROVIDERS = ("claude", "claude_sdk", "codex", "copilot", "gemini", "opencode", "scripted")


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[[list[str]], frozenset[str]]:
    """Return the modules that a command has loaded at its end; `run` at the start of an agent."""
    (tmp_path / ".specs").mkdir()
    (tmp_path / ".specs" / "a.md").write_text("A specification.\n")
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\necho "2.1.329 (Claude Code)"\n')
    program.chmod(0o755)
    config = {"agentPath": str(program), "guard": "off", "loginCheck": False}
    (tmp_path / ".cuggino.json").write_text(json.dumps(config))

    def run(arguments: list[str]) -> frozenset[str]:
        subprocess.run(
            [sys.executable, "-c", _SCRIPT, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path.cwd())},
            check=True,
            capture_output=True,
            timeout=LIMIT,
        )
        return frozenset(json.loads((tmp_path / "modules.json").read_text()))

    return run


def _within(modules: Iterable[str], *packages: str) -> set[str]:
    return {
        module
        for module in modules
        for package in packages
        if module == package or module.startswith(f"{package}.")
    }


def _events(modules: Iterable[str]) -> set[str]:
    """Return the modules of events, without those of the format."""
    names = {f"cuggino.events.{module}" for module in NAMES} - {"cuggino.events.wire"}
    return {name.removeprefix("cuggino.events.") for name in names & set(modules)}


def test_a_run_loads_one_loop_and_one_provider(
    loaded: Callable[[list[str]], frozenset[str]],
) -> None:
    """`cuggino run` loads nothing of other loops and providers up to its first agent."""
    modules = loaded(_RUN)
    assert {"cuggino.loops.coding.service", "cuggino.agents.claude.agent"} <= modules
    assert set() == _within(
        modules,
        *(f"cuggino.loops.{name}" for name in _LOOPS if name != "coding"),
        *(f"cuggino.events.{name}" for name in _LOOPS),
        *(f"cuggino.agents.{name}" for name in _PROVIDERS if name != "claude"),
        "cuggino.agents.cassettes.cassette",
        "cuggino.agents.claude.wire",
        "cuggino.agents.choosing.routing",
        *(f"cuggino.config.{name}" for name in ("agent_file", *_SECTIONS)),
        "cuggino.doctor.checks",
        "cuggino.domain.fallback",
        "cuggino.domain.findings",
        "cuggino.domain.titles",
        "cuggino.guard.profiles",
        "cuggino.guard.shell",
        "cuggino.guard_audit.audit",
        "cuggino.logins",
        "cuggino.notify.notifier",
        "cuggino.prompts.deliver",
        "cuggino.prompts.plan_build",
        "cuggino.report",
        "cuggino.runs.listing",
        "cuggino.stages.undo",
        "cuggino.storage.backlog",
        "cuggino.storage.journal.digest",
        "cuggino.storage.served",
        "cuggino_cli.follow.resumable",
        "cuggino_cli.screen.deliver_text",
        "cuggino_cli.screen.plan_build_text",
        "cuggino_cli.screen.watch_text",
    )
    assert set() == _within(modules, "git", "watchdog", "prompt_toolkit", "wcwidth", "apprise")
    assert set() == _within(modules, "ctypes", "difflib", "importlib.metadata", "email", "zipfile")


def test_a_run_loads_few_events(loaded: Callable[[list[str]], frozenset[str]]) -> None:
    """Up to its first agent, `cuggino run` loads the events that it emits or reads by then."""
    emitted = {"journal", "loop", "role", "snapshot"}
    awaited = {"agent", "marker", "planning_markers"}
    below = {"base", "result", "supervision"}
    assert _events(loaded(_RUN)) <= emitted | awaited | below


@pytest.mark.parametrize("arguments", [["runs"], ["backlog", "list"], ["issues", "list"]])
def test_listings_load_no_loop(
    loaded: Callable[[list[str]], frozenset[str]], arguments: list[str]
) -> None:
    """Commands that list files load no loop, stage, operator or provider."""
    modules = loaded(arguments)
    assert "cuggino.storage.workspace" in modules
    rooms = ("agents", "config", "guard", "loops", "operators", "sources", "stages", "runtime")
    assert set() == _within(modules, *(f"cuggino.{room}" for room in rooms))
    assert set() == _within(modules, "reactivex", "psutil", "git", "watchdog", "wcwidth")
    assert _events(modules) <= {"base", "journal", "result", "resumed", "supervision", "usage"}


def test_runs_reads_kept_digests(
    loaded: Callable[[list[str]], frozenset[str]], tmp_path: Path
) -> None:
    """`cuggino runs` lists a run by its digest, without the events of its journal."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    started = RunStarted(run_id="0193b2c1", kind="run", command="cuggino run", focus="x")
    journal = Journal.create(tmp_path / ".cuggino" / "journal", started, at=at)
    journal.append(IterationStart(iteration=1, max_iterations=1), at=at)
    journal.append(RunEnded(state="approved"), at=at)
    journal.close()
    modules = loaded(["runs"])
    assert "cuggino.storage.journal.digest" in modules
    assert "cuggino.storage.journal.totals" not in modules
    assert {"base", "journal", "result", "resumed", "supervision", "usage"} == _events(modules)


@pytest.mark.parametrize("arguments", [["status", "--json"], ["pause"]])
def test_commands_to_a_run_load_no_loop(
    loaded: Callable[[list[str]], frozenset[str]], arguments: list[str], tmp_path: Path
) -> None:
    """Looking at a run and commanding it loads no loop, stage or provider."""
    with Workspace(tmp_path).lock(command="cuggino run"):
        modules = loaded(arguments)
    rooms = ("agents", "config", "guard", "loops", "stages", "runtime", "web", "report")
    assert set() == _within(modules, *(f"cuggino.{room}" for room in rooms))
    assert set() == _within(modules, "git", "watchdog", "wcwidth", "prompt_toolkit", "reactivex")
