"""`cuggino guard audit`: the calls of a recorded run, checked against their roles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuggino.config import Config, save_config
from cuggino.events import RunContinued, RunEnded, RunStarted, StageStarted, ToolCall
from cuggino.guard_audit import check_call
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.recorded_runs import AT, ONE, Said, record


def write(path: str) -> ToolCall:
    return ToolCall(name="Write", input={"file_path": path, "content": "x"})


def bash(command: str) -> ToolCall:
    return ToolCall(name="Bash", input={"command": command})


def denied(cli: Cli, *args: str) -> list[dict[str, Any]]:
    """Return the denied calls as JSON after checking the exit code."""
    code = main(["guard", "audit", ONE[:9], "--json", *args])
    found = [json.loads(line) for line in cli.printed().out.splitlines()]
    assert code == bool(found)
    return found


SAID: list[Said] = [
    (1, "planning#1", StageStarted(name="planning")),
    (2, "planning#1", write(f".cuggino/wip/{ONE}.planning/plan.md")),
    (3, "planning#1", write("src/a.py")),
    (4, None, RunContinued()),
    (5, "implementing#2", write("src/a.py")),
    (6, "implementing#2", bash("nc -h && echo x > .specs/a.md")),
    (7, "implementing#2", ToolCall(name="Bash", input=["ls"])),
    (8, "reviewing#3", write(f".cuggino/wip/{ONE}.reviewing/review.md")),
    (9, "reviewing#3", bash("git stash && git diff")),
    (10, None, RunEnded(state="approved")),
]


def test_by_the_roles(project: Path, cli: Cli) -> None:
    """Each call is checked against its stage's role, and denied calls are listed."""
    record(project, ONE, *SAID)
    found = denied(cli)
    assert [
        ("planning#1", "planning", "Write"),
        ("implementing#2", "implementing", "Bash"),
        ("implementing#2", "implementing", "Bash"),
        ("reviewing#3", "reviewing", "Bash"),
    ] == [(call["stage"], call["role"], call["tool"]) for call in found]
    assert {"file_path": "src/a.py", "content": "x"} == found[0]["input"]
    assert 4 == found[0]["seq"]
    assert "2026-11-21T12:00:03+00:00" == found[0]["at"]
    assert all(call["decision"] == "deny" and call["reason"] for call in found)
    assert ["deny"] == [p["decision"] for p in found[1]["parts"] if ".specs" in p["text"]]


def test_as_text(project: Path, cli: Cli) -> None:
    """The text output lists denied parts after each call, and the counts last."""
    record(project, ONE, *SAID)
    lines = cli("guard", "audit", ONE, code=1).splitlines()
    assert lines[0].endswith(" planning#1 ▶ Write: src/a.py")
    assert "✗ git stash" in lines
    assert not any("git diff" in line for line in lines if line.startswith(("✓", "✗")))
    assert "4 of 7 tool calls would be denied." == lines[-1]


def test_at_which_level(project: Path, cli: Cli) -> None:
    """The level is the given one, or that of the run, or `roles`."""
    record(project, ONE, (1, "implementing#1", bash("nc -h")))
    assert 0 == len(denied(cli))
    assert 1 == len(denied(cli, "--level", "full"))
    save_config(project, Config(allow_commands=["nc"]))
    assert 0 == len(denied(cli, "--level", "full"))


def test_the_level_of_the_run(project: Path, cli: Cli) -> None:
    """A fully guarded run is audited at that level, unless another is given."""
    started = RunStarted(run_id=ONE, kind="run", command="cuggino run", options={"guard": "full"})
    journal = Journal.create(project / ".cuggino" / "journal", started, at=AT, sync=False)
    journal.append(bash("nc -h"), at=AT, stage="implementing#1")
    journal.close()
    assert 1 == len(denied(cli))
    assert 0 == len(denied(cli, "--level", "roles"))


def test_a_watch(project: Path, cli: Cli) -> None:
    """The calls of a watch itself belong to the audit role."""
    record(project, ONE, (1, None, bash("ls")), (2, None, write("a.md")), kind="watch")
    assert ["audit"] == [call["role"] for call in denied(cli)]


@pytest.mark.parametrize(("allow_all", "more"), [(True, []), (False, ["build#1"])])
def test_a_plan_build_run(allow_all: bool, more: list[str], project: Path, cli: Cli) -> None:
    """Verifiers have the permissions of an audit; without `allow_all` the level is `full`."""
    started = RunStarted(
        run_id=ONE, kind="loop", command="cuggino loop", options={"allow_all": allow_all}
    )
    journal = Journal.create(project / ".cuggino" / "journal", started, at=AT, sync=False)
    journal.append(bash("nc -h"), at=AT, stage="build#1")
    journal.append(write("src/a.py"), at=AT, stage="build#1")
    journal.append(write("src/a.py"), at=AT, stage="verify-1#2")
    journal.close()
    found = denied(cli)
    assert [*((stage, "implementing") for stage in more), ("verify-1#2", "audit")] == [
        (call["stage"], call["role"]) for call in found
    ]


def test_a_call_from_elsewhere(tmp_path: Path) -> None:
    """A working folder outside the project is taken for the project."""
    given = {"file_path": str(tmp_path / "other" / "a.md"), "content": "x"}
    options: Any = {"project": tmp_path / "own", "config": Config(), "role": "implementing"}
    assert not check_call("Write", given, **options).verdict.is_allowed
    assert check_call("Write", given, **options, cwd=tmp_path / "other").verdict.is_allowed


def test_nothing_denied(project: Path, cli: Cli) -> None:
    """A run without denied calls exits with 0."""
    record(project, ONE)
    assert "0 of 0 tool calls would be denied.\n" == cli("guard", "audit", ONE)


def test_a_missing_run(project: Path, cli: Cli) -> None:
    """An unknown ID is a usage error; a broken journal is an error."""
    path = record(project, ONE, *SAID)
    assert "there is no run 'abc'" in cli.err("guard", "audit", "abc")
    path.write_text("x\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert "line 1 is broken" in cli.err("guard", "audit", ONE, code=1)
