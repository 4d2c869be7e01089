"""`cuggino doctor` on session files left in the wip folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from cuggino.doctor.result import CheckResult
from cuggino.events import RunEnded
from cuggino.storage import Workspace
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.looking import look
from tests.cli.recorded_runs import APPROVED, ONE, SAID, THREE, TWO, record

NONE = CheckResult("ok", "session files: none left over")


def leave(project: Path, *names: str) -> Path:
    """Create session files with these names and return their folder."""
    wip = Workspace(project).wip
    wip.mkdir(parents=True, exist_ok=True)
    for name in names:
        (wip / name).write_text("", encoding="utf-8")
    return wip


def test_no_files(project: Path) -> None:
    """Without a wip folder, or with an empty one, there are no leftovers."""
    assert [NONE] == look("session files", project)
    leave(project)
    assert [NONE] == look("session files", project)


def test_left_overs(project: Path) -> None:
    """Files without a resumable run are counted by file and run, and may be deleted."""
    record(project, ONE, *SAID, *APPROVED)
    wip = leave(project, f"{ONE}.md", f"{ONE}.plan.md", f"{TWO}.md", "notes.md")
    what = f"session files: 4 files of 3 ended runs left in {wip}"
    assert [CheckResult("note", what, "they are safe to delete")] == look("session files", project)


def test_files_in_use(project: Path) -> None:
    """Files count as used while the process recorded for them is alive."""
    leave(project, "a.md")
    owner = Workspace(project).folder / "lock.json"
    owner.write_text("no number", encoding="utf-8")
    assert "note" == look("session files", project)[0].status
    owner.write_text(f'{{"pid": {os.getpid()}}}', encoding="utf-8")
    in_use = CheckResult("ok", f"session files: in use by process {os.getpid()}")
    assert [in_use] == look("session files", project)


@pytest.mark.parametrize("state", [None, "failed", "quota", "budget", "interrupted"])
def test_files_of_a_run_that_can_be_resumed(project: Path, state: Any) -> None:
    """Files of a resumable run are reported as needed, with how to resume it."""
    record(project, ONE, *SAID, *([] if state is None else [(98, None, RunEnded(state=state))]))
    leave(project, f"{ONE}.md", f"{ONE}.check.txt")
    expected = CheckResult(
        "note",
        "session files: of run 0193b2c1, which can be resumed",
        "resume it: `cuggino run --resume 0193b2c1`",
    )
    assert [expected] == look("session files", project)


def test_files_of_an_item_of_the_backlog(project: Path) -> None:
    """A backlog item's run is resumed with `cuggino watch`."""
    record(project, ONE, *SAID, item="001-a.md 7f3a")
    leave(project, f"{ONE}.md")
    [found] = look("session files", project)
    assert found.what.endswith("of run 0193b2c1, which is unfinished")
    assert "`cuggino watch` resumes it when it takes the item again" == found.hint


def test_files_of_several_runs(project: Path) -> None:
    """Leftovers are reported beside files that are needed."""
    record(project, ONE, *SAID)
    record(project, TWO, *SAID, *APPROVED)
    record(project, THREE, *SAID)
    wip = leave(project, f"{ONE}.md", f"{TWO}.md", f"{THREE}.md", "b.md")
    one, three, rest = look("session files", project)
    hints = [f"resume it: `cuggino run --resume {short}`" for short in ("0193b2c1", "0193b2c3")]
    assert hints == [one.hint, three.hint]
    what = f"session files: 2 files of 2 ended runs left in {wip}"
    assert CheckResult("note", what, f"safe to delete: {TWO}.md, b.md") == rest


def test_files_of_a_run_whose_journal_is_broken(project: Path) -> None:
    """Files of an unreadable journal are not called safe to delete."""
    record(project, ONE).write_text("x\ny\n")
    leave(project, f"{ONE}.md")
    [found] = look("session files", project)
    assert ("note", True) == (found.status, "line 1 is broken" in found.what)
    assert "delete" not in f"{found.hint}"
    folder = Workspace(project).journal
    shutil.rmtree(folder)
    folder.touch()  # in place of the folder
    [found] = look("session files", project)
    assert "journal" in found.what
    assert "delete" not in f"{found.hint}"


def test_the_advice_works(ready: Path, cli: Cli) -> None:
    """The suggested command resumes the failed run."""
    assert 1 == main(["run", "--focus", "x", "--max-retries", "0"])
    cli.printed()
    _, _, advice = cli("doctor").partition("resume it: `cuggino ")
    command = advice[: advice.index("`")].split()
    assert ["run", "--resume"] == command[:2]
    (ready / "scenario.toml").write_text(
        """
[[planning]]
[[planning.steps]]
write = "$CUGGINO_PLAN_FILE"
text = "# Plan"
[[planning.steps]]
say = "<PLAN_COMPLETE>one task</PLAN_COMPLETE>"
[[implementing]]
steps = [{ say = "<DONE>done</DONE>" }]
[[reviewing]]
steps = [{ say = "<APPROVED>fine</APPROVED>" }]
"""
    )
    assert 0 == main(command)
    assert [NONE] == look("session files", ready)
