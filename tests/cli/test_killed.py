"""Deliveries of which a process is killed at a random moment: `cuggino`, its agent, or the tools.

The program `tests.endurance` does the same to whole commands, again and again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cuggino.domain import agent_tool
from cuggino.events import DeliverEnded, ToolCall, ToolResult
from cuggino.storage import list_journals, read_journal
from tests.limits import LIMIT
from tests.processes.subscribers import eventually

pytestmark = pytest.mark.real_agent  # many processes for a long time: with the second command

NAMES = [f"D{n:02}" for n in range(12)]
COMMAND = [sys.executable, "-m", "cuggino_cli", "deliver", "--agent", "scripted:scenario.toml"]

PARTS = {
    "cuggino": lambda words: "deliver" in words,
    "agent": lambda words: any("scripted/process.py" in word for word in words),
    "tools": lambda words: any("mcp_server.py" in word for word in words),
}
"""The processes of a run, by their command lines."""


def scenario() -> str:
    """Return sessions that report one deliverable after another, each reporting all of them.

    They wait for the file `killed` before the last one, so that they can be killed in time.
    """
    items = [
        f'{{ id = "{name}", description = "do {name}", acceptanceCriteria = ["it is"] }}'
        for name in NAMES
    ]
    steps = [
        '[[coding.steps]]\ntool = "set_deliverable_status"\n'
        f'input = {{ deliverableId = "{name}", status = "passed" }}\n'
        for name in NAMES
    ]
    steps.insert(-1, '[[coding.steps]]\nrun = "until test -e killed; do sleep 0.02; done"\n')
    return (
        "pause = 0.02\nrepeat = true\n\n[[initializer]]\n[[initializer.steps]]\n"
        f'tool = "create_deliverable"\ninput.deliverables = [{", ".join(items)}]\n\n'
        "[[coding]]\n" + "\n".join(steps)
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".autonoe").mkdir()
    (tmp_path / ".autonoe" / "agent.json").write_text('{"mcpServers": {}}')
    (tmp_path / "SPEC.md").write_text("Twelve things.\n")
    (tmp_path / "scenario.toml").write_text(scenario())
    (tmp_path / ".cuggino.json").write_text('{"maxRetries": 20}')
    return tmp_path


def run(project: Path, *options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "--json", *options],
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def statuses(project: Path) -> dict[str, bool]:
    """Return which deliverables are passed; a missing file has none."""
    file = project / ".autonoe" / "status.json"
    if not file.exists():
        return {}
    kept = json.loads(file.read_text())
    return {item["id"]: item["passed"] for item in kept["deliverables"]}


def acknowledged(project: Path) -> set[str]:
    """Return the deliverables that the journals show as acknowledged to an agent."""
    told: set[str] = set()
    calls: dict[tuple[str | None, str], str] = {}
    for path in list_journals(project / ".cuggino" / "journal"):
        for entry in read_journal(path).entries:
            match entry.event:
                case ToolCall(name=name, id=call, input={"deliverableId": str(item)}):
                    if name == agent_tool("set_deliverable_status"):
                        calls[entry.stage, call] = item
                case ToolResult(name=call, output=output, is_error=False):
                    if (entry.stage, call) in calls and json.loads(output).get("success"):
                        told.add(calls[entry.stage, call])
                case _:
                    pass
    return told


def kill(root: psutil.Process, part: str) -> bool:
    """Kill that part of the run; return False if it is not running."""
    with suppress(psutil.Error):
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.Error):
                if PARTS[part](process.cmdline()):
                    os.kill(process.pid, signal.SIGKILL)
                    return True
    return False


@pytest.mark.parametrize("part", PARTS)
def test_acknowledged_statuses_survive(part: str, project: Path) -> None:
    """After a SIGKILL at a random moment the file is valid and complete, and the run succeeds."""
    chance = random.Random(part)
    after = 1 + chance.randrange(len(NAMES) - 2)
    with run(project) as command:
        root = psutil.Process(command.pid)
        assert eventually(lambda: sum(statuses(project).values()) >= after)
        moment = chance.random() * 0.03
        eventually(lambda: False, limit=moment)  # somewhere within the next call
        assert kill(root, part)
        (project / "killed").touch()
        if part == "cuggino":
            assert -signal.SIGKILL == command.wait(LIMIT)
        else:
            assert 0 == command.wait(LIMIT)
    told = acknowledged(project)
    assert told <= {name for name, passed in statuses(project).items() if passed}
    assert list(statuses(project)) == NAMES
    if part != "cuggino":
        return
    with run(project, "--resume") as command:
        assert 0 == command.wait(LIMIT)
    assert all(statuses(project).values())
    (path,) = list_journals(project / ".cuggino" / "journal")
    entries = read_journal(path).entries
    (ended,) = (entry.event for entry in entries if isinstance(entry.event, DeliverEnded))
    assert "all_passed" == ended.reason
