"""`cuggino runs` on runs of the deliverables loop."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import AgentFailed
from cuggino.events import RunEnded
from cuggino.runs import RunState
from cuggino.runs.digests import delivery_of, digest_of
from cuggino.storage.journal import Journal, read_journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.recorded_deliveries import (
    DONE,
    PLANNED,
    TURNS,
    bash,
    deliver,
    go_on,
    hanging,
    path_of,
    turn,
)
from tests.loops.deliver_loop import Turn

CRASH = Turn(events=(), error=AgentFailed("it crashed", reason="crash"))


def cells(cli: Cli) -> list[str]:
    """Return the cells of the only row."""
    _, row = cli("runs").splitlines()
    return [cell for cell in row.split("  ") if cell]


@pytest.mark.parametrize(
    ("turns", "options", "state", "focus"),
    [
        (TURNS[:2], {"max_sessions": 2}, "max iterations", "1/3 deliverables passed"),
        (TURNS[:4], {}, "passed", "2/3 deliverables passed"),
        (TURNS, {"verify": True}, "verified", "2/3 deliverables passed"),
        ((turn(leaves={"DL-1": "blocked"}),), {}, "all blocked", "0/1 deliverables passed"),
        ((CRASH,), {"max_retries": 0}, "stalled", "(cuggino deliver)"),
    ],
)
def test_list(
    project: Path,
    cli: Cli,
    turns: tuple[Turn, ...],
    options: dict[str, Any],
    state: str,
    focus: str,
) -> None:
    """A run is listed with its outcome, its sessions as iterations, and its progress."""
    journal = deliver(project, *turns, **options)
    row = cells(cli)
    assert (state, focus) == (row[1], row[-1].strip())
    assert str(len(turns)) == row[4].strip()
    (told,) = map(json.loads, cli("runs", "--json").splitlines())
    assert journal.state == told["state"]
    assert ("deliver", len(turns)) == (told["kind"], told["iterations"])


def test_a_sync_is_listed_by_what_is_verified(project: Path, cli: Cli) -> None:
    """A run that syncs with the specification shows how many are verified."""
    turns = (turn(), turn(verifies=["DL-1"]))
    deliver(project, *turns, start=DONE, workflow="sync", max_sessions=2)
    assert "1/3 deliverables verified" == cells(cli)[-1].strip()


def test_the_digest_has_the_deliverables(project: Path) -> None:
    """The digests of a writer and of a reader both agree with the journal."""
    deliver(project)
    path = path_of(project)
    delivery = RunState.of(read_journal(path).entries).delivery
    assert 4 == len(delivery.sessions)
    assert delivery == delivery_of(digest_of(path))
    digest = path.parent.with_name("digests") / f"{path.stem}.json"
    written = digest.read_text()
    digest.unlink()
    assert delivery == delivery_of(digest_of(path))
    assert written == digest.read_text()


def test_a_journal_that_broke_after_it_was_listed(project: Path, cli: Cli) -> None:
    """It is listed as unreadable, despite its digest, and the others are listed."""
    deliver(project, *TURNS[:2], max_sessions=2)
    path = path_of(project)
    cli("runs")
    status = path.stat()
    path.write_bytes(b"x" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert "unreadable" == cells(cli)[1]


def test_as_json(project: Path, cli: Cli) -> None:
    """The list has the counts and the reason; `show` adds deliverables and sessions."""
    run = deliver(project, verify=True)
    counts = {
        "reason": "all_verified",
        "failed_sessions": 1,
        "total": 3,
        "passed": 2,
        "blocked": 1,
        "verified": 2,
    }
    listed = json.loads(cli("runs", "--json"))
    assert counts == listed["delivery"]
    shown = json.loads(cli("runs", "show", run.run_id, "--json"))
    sessions, deliverables = (shown["delivery"].pop(key) for key in ("sessions", "deliverables"))
    assert counts == shown["delivery"]
    assert {
        "session": 3,
        "instruction": "coding",
        "model": None,
        "stage": sessions[2]["stage"],
        "started": "1970-01-01T00:00:10+00:00",
        "attempts": 1,
        "outcome": "error",
        "message": "it crashed\nin a loop",
        "cost_usd": None,
        "cost_estimated": False,
        "duration": 0.0,
    } == sessions[2]
    assert 5 == len(sessions)
    assert {
        "id": "DL-1",
        "description": "do DL-1",
        "status": "passed",
        "verified": True,
    } == deliverables[0]
    assert {stage["stage"].partition("#")[0] for stage in shown["stages"]} >= {"coding", "status"}


def test_show(project: Path, cli: Cli) -> None:
    """The summary has deliverables and sessions, without the loop's own lookups."""
    run = deliver(project, verify=True)
    shown = cli("runs", "show", run.run_id)
    assert f"Run {run.run_id} verified\n  Command    cuggino deliver\n" in shown
    _, _, rest = shown.partition("  Duration   ")
    assert (
        """\
20s
  Sessions   5 (1 failed)
  Passed     2/3 deliverables (1 blocked)
  Verified   2/2 deliverables
  Cost       $1.25
  Tokens     0 in, 40 out, 0 cached

Deliverables
  passed, verified  do DL-1 (DL-1)
  passed, verified  do DL-2 (DL-2)
  blocked           do DL-3 (DL-3)

Sessions
  1  initializer  5s  $0.25  completed: Planned.
  2  coding       5s  $0.25  completed: One <done>.
  3  coding       0s         failed: it crashed
  4  coding       5s  $0.50  completed: All done.
  5  verify       5s  $0.25  completed
"""
        == rest
    )


def test_the_error_is_shown(project: Path, cli: Cli) -> None:
    """An outcome without an error shows the last session's failure."""
    run = deliver(project, CRASH, max_retries=0)
    assert "  Problem    it crashed\n" in cli("runs", "show", run.run_id)
    shown = json.loads(cli("runs", "show", run.run_id, "--json"))
    assert "it crashed" == shown["message"]


@pytest.mark.parametrize("workflow", ["run", "sync"])
def test_how_to_resume(project: Path, cli: Cli, workflow: str) -> None:
    """An interrupted run shows the command that resumes it; a finished one does not."""
    run = deliver(project, hanging(), start=PLANNED, seconds=7, workflow=workflow)
    hint = f"resume it: cuggino deliver --resume {run.run_id[:8]}\n"
    shown = cli("runs", "show", run.run_id)
    assert shown.endswith(hint)
    assert "  1  " in shown
    assert shown.rpartition("Sessions")[2].partition("\n\n")[0].endswith("interrupted")
    assert cli("runs", "replay", run.run_id).endswith(f"\nNext: {hint}")
    assert cli("follow", run.run_id, code=130).endswith(f"\nNext: {hint}")
    last = [turn(leaves=DONE)]
    if workflow == "sync":
        last.append(turn(verifies=[*DONE]))
    go_on(project, *last)
    shown = cli("runs", "show", run.run_id)
    assert "go on with it" not in shown
    assert "(2 attempts)" in shown
    assert "interrupted" not in shown


def killed(folder: Path) -> str:
    """Return the ID of a run killed in its second session."""
    run = deliver(folder, TURNS[0], hanging(*bash("ls")), seconds=7)
    path = path_of(folder)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))  # the ends of session, loop and run
    return run.run_id


def test_a_killed_run(project: Path, cli: Cli) -> None:
    """Its last session is unfinished, and its replay ends with the progress up to then."""
    run_id = killed(project)
    shown = cli("runs", "show", run_id)
    assert f"Run {run_id} killed\n" in shown
    assert "  2  coding                  unfinished\n" in shown
    out = cli("runs", "replay", run_id)
    assert (
        """\
[Summary] Interrupted
  Sessions   2
  Passed     0/3 deliverables
  Cost       $0.25
"""
        in out
    )
    assert out.endswith(f"cuggino deliver --resume {run_id[:8]}\n")


def test_replay(project: Path, cli: Cli) -> None:
    """A finished run is replayed as it was, without a second summary."""
    run = deliver(project, verify=True)
    out = cli("runs", "replay", run.run_id)
    assert "Session 3 started" in out
    assert "Overall: 5 session(s), 2/3 deliverables passed (1 blocked), cost=$1.25" in out
    assert "[Summary]" not in out
    assert "Next" not in out
    told = cli("runs", "replay", run.run_id, "--json").splitlines()
    assert "DeliverEnded" == json.loads(told[-1])["_tag"]


def test_foreign_text_is_escaped(project: Path, cli: Cli) -> None:
    """Text of agents and deliverables is escaped and cannot start a line."""
    bad = "a\x1b[2J\nb"
    run = deliver(project, turn(words=bad, leaves={bad: "passed"}))
    shown = cli("runs", "show", run.run_id)
    assert "\x1b" not in shown
    assert "do a␛[2J b (a␛[2J b)" in shown
    assert "completed: a␛[2J\n" in shown


def test_an_end_from_outside_the_loop(project: Path, cli: Cli) -> None:
    """A process killed or failed after the loop's last event determines the state."""
    run = deliver(project, *TURNS[:4])
    path = path_of(project)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert f"Run {run.run_id} killed\n" in cli("runs", "show", run.run_id)
    journal = Journal.open(path)
    journal.append(RunEnded(state="failed", message="the disk is full"), at=run.entries[-1].at)
    journal.close()
    shown = cli("runs", "show", run.run_id)
    assert f"Run {run.run_id} failed\n  Problem    the disk is full\n" in shown
    assert 0 == main(["runs"])
