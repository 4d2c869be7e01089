"""`cuggino guard audit` on runs of the deliverables loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from cuggino.config import AGENT_FILE, Config, deliver_policy, read_agent_file, save_config
from cuggino.events import DeliverInstruction, RunStarted, ToolCall
from cuggino.guard.roles import PERMISSIONS
from cuggino.guard_audit.audit import deliver_settings
from cuggino.loops import DeliverRunOptions
from cuggino.loops.deliver.setup import session_setup
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.recorded_deliveries import PLANNED, bash, deliver, turn
from tests.cli.recorded_runs import AT, ONE
from tests.loops.deliver_loop import Turn


def write(path: str) -> ToolCall:
    return ToolCall(name="Write", input={"file_path": path, "content": "x"})


def denied(cli: Cli, run_id: str, *args: str) -> list[tuple[str, str, str]]:
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
    ] == denied(cli, run.run_id)
    assert [("verify", "verify", "src/a.py")] == denied(cli, run.run_id, "--level", "roles")


def test_a_sync(project: Path, cli: Cli) -> None:
    """A session that syncs with the specification has the sync role."""
    turns = (turn(write("src/a.py")), turn(verifies=["DL-1"]))
    run = deliver(project, *turns, start={"DL-1": "passed"}, workflow="sync")
    assert [("sync", "sync", "src/a.py")] == denied(cli, run.run_id)


def test_the_settings_are_those_of_the_run(project: Path, cli: Cli) -> None:
    """The settings of the run apply instead of the current configuration.

    The project's own file still adds to them.
    """
    run = deliver(project, *story()[:2], allow_commands={"base": ["nc"]})
    assert [] == denied(cli, run.run_id)
    other = deliver(project, *story()[:2], recheck=True, start=PLANNED)
    save_config(project, Config(allow_commands=["nc"]))
    assert 2 == len(denied(cli, other.run_id))
    settle(project, allowCommands=["nc"])
    assert [] == denied(cli, other.run_id)


def test_nothing_is_written(project: Path, cli: Cli) -> None:
    """The next run still reports that the project's own file has changed."""
    run = deliver(project, *story()[:2])
    settle(project, allowCommands=["nc"])
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    assert [] == denied(cli, run.run_id)
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
