"""`cuggino runs` on journals of all kinds."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.runs import RecordedRun, Runs
from cuggino.storage import Workspace
from cuggino.storage.journal import Journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.recorded_runs import APPROVED, AT, ONE, SAID, THREE, TWO, Said, record


def local(at: datetime) -> str:
    return f"{at.astimezone():%m-%d %H:%M}"


def states(root: Path) -> list[str]:
    return [run.state for run in Runs(root).all() if isinstance(run, RecordedRun)]


def test_no_runs(project: Path, cli: Cli) -> None:
    """Without a journal there is a sentence, and no JSON."""
    assert "There are no runs yet.\n" == cli("runs")
    assert "" == cli("runs", "--json")


def test_list(project: Path, cli: Cli) -> None:
    """Runs are listed newest first, one per line, including unreadable ones."""
    record(project, ONE, *SAID, *APPROVED)
    broken = record(project, TWO)
    broken.write_text("x\ny\n")
    record(
        project,
        THREE,
        *SAID[:4],
        (5, None, ev.RunEnded(state="interrupted")),
        focus="\na\x1b[2Jb\nmore",
    )
    out = cli("runs")
    head, three, two, one = out.splitlines()
    assert ["ID", "STATE", "STARTED", "TIME", "ITER", "COST", "AGENT", "FOCUS"] == head.split()
    date = local(AT)
    assert f"0193b2c3  interrupted  {date}  5s      1            claude  a␛[2Jb" == three
    assert re.match(r"0193b2c2  unreadable  +.*0193b2c2-.*line 1 is broken: not JSON$", two)
    assert f"0193b2c1  approved     {date}  1m 40s  1     $1.25  claude  login" == one
    assert out == cli("runs", "list")


def test_list_as_json(project: Path, cli: Cli) -> None:
    """With `--json` each run is an object on its own line."""
    record(project, ONE, *SAID, *APPROVED)
    record(project, TWO).write_text("")
    two, one = map(json.loads, cli("runs", "--json").splitlines())
    assert (TWO, "unreadable") == (two["run_id"], two["state"])
    assert {
        "run_id": ONE,
        "state": "approved",
        "checked": None,
        "resumable": False,
        "kind": "run",
        "command": "cuggino run",
        "focus": "login",
        "item": None,
        "agent": "claude",
        "started": "2026-11-21T12:00:00+00:00",
        "last": "2026-11-21T12:01:40+00:00",
        "duration": 100.0,
        "iterations": 1,
        "tasks": 1,
        "agents": 2,
        "commits": [{"hash": "abc1234", "subject": "Log in"}],
        "cost_usd": 1.25,
        "cost_estimated": False,
        "usage": ev.Usage(input_tokens=7).model_dump(),
        "delivery": None,
    } == one


def test_which_run_is_live(project: Path) -> None:
    """Only an unfinished run started by the workspace's current owner is running.

    Other unfinished runs were killed; without an owner all were, despite a dead owner's leftovers.
    """
    workspace = Workspace(project)
    record(project, ONE, *SAID, at=AT)
    record(project, TWO, at=AT + timedelta(hours=2))
    record(project, THREE, *APPROVED, at=AT + timedelta(hours=2))
    assert ["approved", "killed", "killed"] == states(project)
    with workspace.lock(since=AT + timedelta(hours=1, microseconds=5)):
        left_behind = (workspace.folder / "lock.json").read_bytes()
        assert ["approved", "running", "killed"] == states(project)
    (workspace.folder / "lock.json").write_bytes(left_behind)
    assert ["approved", "killed", "killed"] == states(project)
    journal = Journal.open(project / ".cuggino" / "journal" / f"{ONE}.jsonl")
    journal.append(ev.RunContinued(), at=AT + timedelta(hours=2))
    journal.close()
    with workspace.lock(since=AT + timedelta(hours=2)):
        assert ["approved", "running", "running"] == states(project)
        runs = list(Runs(project).all())
        assert not any(run.resumable for run in runs if isinstance(run, RecordedRun))


def test_listing_does_not_lock(project: Path) -> None:
    """Listing runs leaves the workspace unlocked, and its owner undisturbed."""
    record(project, ONE)
    workspace = Workspace(project)
    with workspace.lock():
        assert ["killed"] == states(project), "it began long before"
        owner = workspace.owner()
        assert owner is not None
        assert os.getpid() == owner.pid
    (workspace.folder / "lock.json").write_text("{}")
    assert ["killed"] == states(project)
    with workspace.lock():
        pass


def test_ids(project: Path, cli: Cli) -> None:
    """An ID may be a unique prefix; otherwise there is one clear sentence."""
    record(project, ONE)
    record(project, TWO)
    assert 0 == main(["runs", "show", "0193b2c1"])
    assert 0 == main(["runs", "show", TWO])
    cli.printed()
    for subcommand in ("show", "replay"):
        assert f"2 runs begin with '0193': {TWO}, {ONE}\n" in cli.err("runs", subcommand, "0193")
        assert "there is no run '7\\x1b'\n" in cli.err("runs", subcommand, "7\x1b")


def test_short_ids_are_unique(project: Path) -> None:
    """Short IDs have eight characters, or more where two runs started close together."""
    for run_id in ("0193b2c1-a", "0193b2c1-b", "0193b2d1-a", "0"):
        record(project, run_id)
    assert {
        "0193b2c1-a": "0193b2c1-a",
        "0193b2c1-b": "0193b2c1-b",
        "0193b2d1-a": "0193b2d1",
        "0": "0",
    } == {run.id: run.short_id for run in Runs(project).all()}


def test_show(project: Path, cli: Cli) -> None:
    """The summary has the run's facts, its stages with times and outcomes, and how to resume.

    Stages that only read something are left out.
    """
    again = [
        (97, "clock#9", ev.StageStarted(name="clock")),
        (97, "clock#9", ev.StageFinished(outcome={"time": "2026-11-21T12:00:00"})),
        (98, "implementing#4", ev.StageStarted(name="implementing")),
        (99, None, ev.RunContinued()),
        (99, "implementing#4", ev.StageStarted(name="implementing")),
        (120, None, ev.RunEnded(state="failed", message="the agent\ncrashed")),
    ]
    record(project, ONE, *SAID, *again)
    assert (
        f"""\
Run {ONE} failed
  Problem    the agent
             crashed
  Command    cuggino run
  Focus      login
  Agent      claude
  Started    {AT.astimezone():%Y-%m-%d %H:%M:%S}
  Duration   1m 59s
  Iterations 1
  Tasks      1
  Agents     2
  Commits    1
             abc1234 Log in
  Cost       $1.25
  Tokens     7 in, 0 out, 0 cached

Stages
  planning#1      1m 29s  PlanComplete
  implementing#2       4s  Progress: Log in
  commit#3             1s  CommitPerformed: abc1234 Log in
  implementing#4  unfinished (2 attempts)

Next         resume it: cuggino run --resume 0193b2c1
""".replace("1m 29s  P", " 1m 29s  P")
        == cli("runs", "show", "0193")
    )


def test_show_a_long_task(project: Path, cli: Cli) -> None:
    """Of a text of many lines, as that of a backlog item, the first one is shown."""
    record(project, ONE, *SAID, focus="# Log in\n\nWith a password.\n")
    assert "  Focus      Log in\n  Agent" in cli("runs", "show", "0193")
    assert cli("runs").endswith("  Log in\n")
    said = "The file `.specs/page.md`, with this content:\n\nA login page.\nWith a password."
    record(project, TWO, *SAID, focus=said)
    assert "  A login page.\n" in cli("runs")


def test_show_a_watch(project: Path, cli: Cli) -> None:
    """It has its items; the iterations and commits of these are in their own runs."""
    told = [
        ev.WatchProcessingItem(filename="1.md", slot=1),
        ev.WatchSentBack(filename="1.md", reason="check", output="", paths=(), returns=1),
        ev.WatchLanded(filename="1.md", commit="c", trunk_was="b"),
        ev.WatchItemCompleted(filename="1.md"),
        ev.WatchItemParked(filename="2.md", reason="x"),
        ev.WatchLanded(filename="3.md", commit="d", trunk_was="c"),
        ev.WatchItemCompleted(filename="3.md"),
    ]
    said = [(at, "slots", event) for at, event in enumerate(told)]
    record(project, ONE, *said, kind="watch", focus="")
    shown = cli("runs", "show", "0193")
    assert (
        "  Duration   6s\n  Items      2 completed, 1 parked\n  Landed     2, 1 sent back\n"
    ) in shown
    assert "Iterations" not in shown
    row = cli("runs").splitlines()[1]
    assert ["6s", "claude", "(cuggino", "watch)"] == row.split()[-4:]
    listed = json.loads(cli("runs", "--json"))
    assert (None, None) == (listed["iterations"], listed["tasks"])
    assert "Iterations" not in cli("runs", "replay", "0193")


def test_show_as_json(project: Path, cli: Cli) -> None:
    """The object of the list, plus the stages, the options and the error."""
    record(project, ONE, *SAID[:4], (3, None, ev.RunEnded(state="quota", message="limit")))
    shown = json.loads(cli("runs", "show", "0193", "--json"))
    listed = json.loads(cli("runs", "--json"))
    assert ("quota", True) == (listed["state"], listed["resumable"])
    stage = {"stage": "planning#1", "duration": None, "attempts": 1, "outcome": None}
    assert {**listed, "message": "limit", "options": {}, "stages": [stage]} == shown


@pytest.mark.parametrize(
    ("kind", "said", "hint"),
    [
        ("run", [], "cuggino run --resume 0193b2c1"),
        ("watch", [], "cuggino watch"),
        ("watch", [(1, None, ev.RunEnded(state="interrupted"))], None),
        ("run", [(1, None, ev.RunEnded(state="interrupted"))], "cuggino run --resume 0193b2c1"),
        ("run", [(1, None, ev.RunEnded(state="budget"))], "cuggino run --resume 0193b2c1"),
        ("run", APPROVED, None),
    ],
)
def test_how_to_resume(
    project: Path,
    cli: Cli,
    kind: str,
    said: list[Said],
    hint: str | None,
) -> None:
    """A resumable run shows how to resume; a finished one does not."""
    record(project, ONE, *said, kind=kind)
    for subcommand in ("show", "replay"):
        out = cli("runs", subcommand, "0193")
        assert (hint is not None) == ("resume it" in out)
        assert hint is None or f"resume it: {hint}" in out.splitlines()[-1]


def test_a_broken_journal(project: Path, cli: Cli) -> None:
    """An unreadable journal is an error with the file and the line."""
    record(project, ONE).write_text("x\ny\n")
    for subcommand in ("show", "replay"):
        assert f"{ONE}.jsonl: line 1 is broken: not JSON" in cli.err(
            "runs", subcommand, "0193", code=1
        )


def test_a_run_of_a_backlog_item(project: Path, cli: Cli) -> None:
    """An item's run is named after the item, without the digest, and the watch resumes it."""
    record(project, ONE, kind="run", focus="", item="001 log in.md 7f3a")
    assert cli("runs").endswith("  claude  001 log in.md\n")
    shown = cli("runs", "show", ONE)
    assert "  Item       001 log in.md\n" in shown
    assert shown.endswith("resume it: cuggino watch\n")


def test_runs_of_one_item(project: Path, cli: Cli) -> None:
    """They have the item's title and their number; what waits is shown at the latest one."""
    focus = "The file `.cuggino/backlog/001-log-in.md`, with this content:\n\n# Log in\n\nSoon."
    asked = ev.LoopSpecIssue(iteration=1, content="Which?", filename="1.md")
    ended: list[Said] = [(1, None, asked), (2, None, ev.RunEnded(state="spec_issue"))]
    for number, run_id in enumerate((ONE, TWO)):
        at = AT + timedelta(hours=number)
        record(project, run_id, *ended, at=at, focus=focus, item="001-log-in.md 7f3a")
    record(project, THREE, *SAID, *APPROVED, at=AT + timedelta(hours=3))
    shown = cli("runs").splitlines()
    assert [line.split("claude")[1].strip() for line in shown[1:]] == [
        "login",
        "Log in (run 2 of 2)",
        "Log in (run 1 of 2)",
    ]
    (project / ".cuggino" / "spec-issues").mkdir()
    (project / ".cuggino" / "spec-issues" / "1.md").write_text("# Which?\n")
    shown = cli("runs").splitlines()
    assert [line.split("claude")[1].strip() for line in shown[1:-1]] == [
        "login",
        "a question  Log in (run 2 of 2)",
        "Log in (run 1 of 2)",
    ]
    assert "1 run waits for you: `cuggino status` lists what to do" == shown[-1]
    (project / ".cuggino" / "spec-issues" / "1.md").unlink()
    (project / ".cuggino" / "parked").mkdir()
    (project / ".cuggino" / "parked" / "001-log-in.md").write_text("# Log in\n")
    assert "  parked  Log in (run 2 of 2)\n" in cli("runs")
