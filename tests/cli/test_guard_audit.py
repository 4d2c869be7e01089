"""`cuggino guard audit`: the calls of recorded runs, checked against their roles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from cuggino.config import AGENT_FILE, Config, deliver_policy, read_agent_file, save_config
from cuggino.events import (
    DeliverInstruction,
    RunContinued,
    RunEnded,
    RunStarted,
    StageStarted,
    ToolCall,
)
from cuggino.guard.roles import PERMISSIONS
from cuggino.guard_audit import check_call
from cuggino.guard_audit.audit import deliver_settings
from cuggino.loops import DeliverRunOptions
from cuggino.loops.deliver.setup import session_setup
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.recorded_deliveries import PLANNED, bash, deliver, turn
from tests.cli.recorded_runs import AT, ONE, Said, record
from tests.loops.deliver_loop import Turn


def write(path: str) -> ToolCall:
    return ToolCall(name="Write", input={"file_path": path, "content": "x"})


def shell(command: str) -> ToolCall:
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
    (6, "implementing#2", shell("nc -h && echo x > .specs/a.md")),
    (7, "implementing#2", ToolCall(name="Bash", input=["ls"])),
    (8, "reviewing#3", write(f".cuggino/wip/{ONE}.reviewing/review.md")),
    (9, "reviewing#3", shell("git stash && git diff")),
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
    record(project, ONE, (1, "implementing#1", shell("nc -h")))
    assert 0 == len(denied(cli))
    assert 1 == len(denied(cli, "--level", "full"))
    save_config(project, Config(allow_commands=["nc"]))
    assert 0 == len(denied(cli, "--level", "full"))


def test_the_level_of_the_run(project: Path, cli: Cli) -> None:
    """A fully guarded run is audited at that level, unless another is given."""
    started = RunStarted(run_id=ONE, kind="run", command="cuggino run", options={"guard": "full"})
    journal = Journal.create(project / ".cuggino" / "journal", started, at=AT, sync=False)
    journal.append(shell("nc -h"), at=AT, stage="implementing#1")
    journal.close()
    assert 1 == len(denied(cli))
    assert 0 == len(denied(cli, "--level", "roles"))


def test_a_watch(project: Path, cli: Cli) -> None:
    """The calls of a watch itself belong to the audit role."""
    record(project, ONE, (1, None, shell("ls")), (2, None, write("a.md")), kind="watch")
    assert ["audit"] == [call["role"] for call in denied(cli)]


@pytest.mark.parametrize(("allow_all", "more"), [(True, []), (False, ["build#1"])])
def test_a_plan_build_run(allow_all: bool, more: list[str], project: Path, cli: Cli) -> None:
    """Verifiers have the permissions of an audit; without `allow_all` the level is `full`."""
    started = RunStarted(
        run_id=ONE, kind="loop", command="cuggino loop", options={"allow_all": allow_all}
    )
    journal = Journal.create(project / ".cuggino" / "journal", started, at=AT, sync=False)
    journal.append(shell("nc -h"), at=AT, stage="build#1")
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


def denied_calls(cli: Cli, run_id: str, *args: str) -> list[tuple[str, str, str]]:
    """Return instruction, role and command or file of each denied call."""
    code = main(["guard", "audit", run_id, "--json", *args])
    found = [json.loads(line) for line in cli.printed().out.splitlines()]
    assert code == bool(found)
    return [
        (
            call["stage"].partition("#")[0],
            call["role"],
            call["input"].get("command") or call["input"]["file_path"],
        )
        for call in found
    ]


def settle(folder: Path, **settings: Any) -> None:
    """Write the project's own agent settings."""
    file = folder / AGENT_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings), encoding="utf-8")


def story() -> tuple[Turn, ...]:
    """Return sessions that run an unlisted program and write a source and a note."""
    calls = (*bash("nc -h"), write("src/a.py"), write(".autonoe-note.md"))
    return (
        turn(*calls, leaves=PLANNED),
        turn(*calls, leaves={"DL-1": "passed"}),
        turn(*calls, verifies=["DL-1"]),
    )


def test_by_the_roles_in_full(project: Path, cli: Cli) -> None:
    """Working sessions may write sources, verifying ones only their note, both at `full`.

    Unlisted programs are denied; a given level replaces `full`.
    """
    run = deliver(project, *story(), verify=True)
    assert [
        ("initializer", "deliver", "nc -h"),
        ("coding", "deliver", "nc -h"),
        ("verify", "verify", "nc -h"),
        ("verify", "verify", "src/a.py"),
    ] == denied_calls(cli, run.run_id)
    assert [("verify", "verify", "src/a.py")] == denied_calls(cli, run.run_id, "--level", "roles")


def test_a_sync(project: Path, cli: Cli) -> None:
    """A session that syncs with the specification has the sync role."""
    turns = (turn(write("src/a.py")), turn(verifies=["DL-1"]))
    run = deliver(project, *turns, start={"DL-1": "passed"}, workflow="sync")
    assert [("sync", "sync", "src/a.py")] == denied_calls(cli, run.run_id)


def test_the_settings_are_those_of_the_run(project: Path, cli: Cli) -> None:
    """The settings of the run apply instead of the current configuration.

    The project's own file still adds to them.
    """
    run = deliver(project, *story()[:2], allow_commands={"base": ["nc"]})
    assert [] == denied_calls(cli, run.run_id)
    other = deliver(project, *story()[:2], recheck=True, start=PLANNED)
    save_config(project, Config(allow_commands=["nc"]))
    assert 2 == len(denied_calls(cli, other.run_id))
    settle(project, allowCommands=["nc"])
    assert [] == denied_calls(cli, other.run_id)


def test_nothing_is_written(project: Path, cli: Cli) -> None:
    """The next run still reports that the project's own file has changed."""
    run = deliver(project, *story()[:2])
    settle(project, allowCommands=["nc"])
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert [] == denied_calls(cli, run.run_id)
    assert before == {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}


@pytest.mark.parametrize("instruction", get_args(DeliverInstruction))
def test_the_policy_is_that_of_the_session(project: Path, instruction: DeliverInstruction) -> None:
    """A call is checked with the policy that guarded the session."""
    own = {
        "profile": ["node"],
        "allowCommands": {"base": ["make"], "run": ["nc"], "sync": ["dig"]},
        "allowPkillTargets": ["server"],
    }
    options = DeliverRunOptions(
        cwd=project,
        profile="python",
        allow_commands={"run": ["just", "nc"], "sync": ["host"]},
        allow_pkill_targets=["worker"],
        allow_destructive=True,
    )
    started = RunStarted(
        run_id=ONE,
        kind="deliver",
        command="cuggino deliver",
        options=options.model_dump(mode="json", exclude={"cwd"}),
    )
    for settings in (own, {}):
        settle(project, **settings)
        agent = read_agent_file(project).settings
        setup = session_setup(
            instruction, options, agent, socket=project / "tools", is_guarded=True
        )
        assert setup.guard == deliver_policy(
            deliver_settings(started), agent, PERMISSIONS[instruction], project=project
        )


def begun(folder: Path, **options: Any) -> None:
    """Return a run that has just started with these options."""
    started = RunStarted(
        run_id=ONE, kind="deliver", command="cuggino deliver", options={"new": 1, **options}
    )
    journal = Journal.create(folder / ".cuggino" / "journal", started, at=AT, sync=False)
    journal.append(bash("nc -h")[0], at=AT, stage=None)
    journal.close()


def test_options_of_another_version(project: Path, cli: Cli) -> None:
    """Unknown options are ignored; invalid ones are reported."""
    begun(project)
    assert "1 of 1 tool calls would be denied." not in cli("guard", "audit", ONE, code=1)
    (project / ".cuggino" / "journal" / f"{ONE}.jsonl").unlink()
    begun(project, profile="cobol")
    told = cli.err("guard", "audit", ONE)
    assert 'cannot be used by this version: "profile" is "cobol": unknown profile' in told


def test_an_own_file_that_is_a_folder(project: Path, cli: Cli) -> None:
    """A folder in place of the file is a one-sentence error."""
    begun(project)
    (project / AGENT_FILE).mkdir(parents=True)
    assert "agent.json: not a regular file" in cli.err("guard", "audit", ONE)
