"""`kill -9` of a run at each of its stages, of a watch with slots, and of a run with hands.

A killed stage leaves no process; a resumed run does it again and ends as an undisturbed one.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from cuggino.events import CommitPerformed, LoopApproved
from cuggino.storage import list_journals, read_journal
from cuggino.testing import Write
from tests.endurance.agent import TASKS
from tests.endurance.kills import finish, kill_in_series
from tests.endurance.trials import TRIALS
from tests.limits import LIMIT
from tests.loops.endings import RUN_TOOL
from tests.loops.test_real_views import Site, delivered, make, open_folder
from tests.model_script import Text
from tests.processes.subscribers import eventually
from tests.real_acp import Kimi
from tests.real_claude import Claude
from tests.real_program import RealProgram

__all__ = ["make", "open_folder"]

pytestmark = pytest.mark.real_agent

_TOOL = """
import os

os.execvp("sleep", ["sleep", "{seconds}"])
"""
"""Programs and guards may refuse to run `sleep` itself."""


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        *((Claude, stage) for stage in ("planning", "implementing", "commit", "reviewing")),
        (Kimi, "implementing"),  # a server, whose tools are processes of its own
    ],
)
def test_killed_and_resumed(kind: type[RealProgram], stage: str, make: Any) -> None:
    """A killed run leaves no process; a resumed one does every stage exactly once."""
    with make(kind, "root", guard="roles") as project:
        project.add("tool.py", _TOOL.format(seconds=project.seconds))
        source = str(project.folder / "src" / "new.txt")
        working = project.real.tool(Write(source, "new\n"))
        undisturbed = {
            "planning": delivered(project, "planning/plan.md", "<PLAN_COMPLETE>1</PLAN_COMPLETE>"),
            "implementing": [working, Text("<DONE>Add it</DONE>")],
            "reviewing": delivered(project, "reviewing/review.md", "<APPROVED>1</APPROVED>"),
        }
        project.sessions.update(undisturbed)
        hook = project.folder / ".git" / "hooks" / "pre-commit"
        if stage == "commit":
            hook.write_text(f"#!/bin/sh\nexec sleep {project.seconds}\n")
            hook.chmod(0o755)
        else:
            project.sessions[stage] = [project.shell(RUN_TOOL)]
        _kill(project)
        hook.unlink(missing_ok=True)
        project.sessions.update(undisturbed)
        story = project.run("run", "--resume")
        assert isinstance(story.events[-1], LoopApproved)
        (path,) = list_journals(project.folder / ".cuggino" / "journal")
        events = [entry.event for entry in read_journal(path).entries]
        assert 1 == sum(isinstance(event, CommitPerformed) for event in events)
        assert 1 == sum(isinstance(event, LoopApproved) for event in events)
        subjects = subprocess.check_output(
            ["git", "-c", "safe.directory=*", "log", "--format=%s"], cwd=project.folder, text=True
        )
        assert ["Add it", "Begin"] == subjects.splitlines()
        assert "new\n" == Path(source).read_text()


def _kill(project: Site) -> None:
    """Start a run, kill it when the command that sleeps is running, and wait for all processes."""
    process = subprocess.Popen(
        [project.python, "-m", "cuggino_cli", "run", "--quiet", "--focus", "the file"],
        cwd=project.folder,
        env=project.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        assert eventually(lambda: bool(project.left) or process.poll() is not None)
        assert project.left, process.communicate()
        assert len(list(_of(project))) > 2
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT)
    assert eventually(lambda: not project.left and not list(_of(project)))


def _of(project: Site) -> Iterator[psutil.Process]:
    """Yield the processes with the home folder of the project's program."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("HOME") == str(project.real.home):
                yield process


# -- a watch with slots and a run with hands; `python -m tests.endurance slots` does more


def test_killed_hands_land_the_same_tasks(tmp_path: Path) -> None:
    """The tree is that of an undisturbed run, no agent is paid twice, and no process is left."""
    trial = TRIALS["hands"]
    undisturbed = trial.make(tmp_path / "undisturbed")
    assert [] == [*finish(trial, undisturbed), *undisturbed.problems()]
    expected = trial.outcome(undisturbed)
    assert [] == expected["result"]
    assert TASKS == str(expected["history"]).count("feat: word-")
    series = kill_in_series(trial, tmp_path / "killed", seed=7, most=3, expected=expected)
    assert [] == series.problems
    assert series.kills.total() > 0


def test_a_killed_watch_lands_the_same_items(tmp_path: Path) -> None:
    """No item lands twice, no process is left, and the user's tree is clean."""
    trial = TRIALS["slots"]
    undisturbed = trial.make(tmp_path / "undisturbed")
    assert [] == [*finish(trial, undisturbed), *undisturbed.problems()]
    expected = trial.outcome(undisturbed)
    landed, red, waiting = cast("tuple[list[str], list[str], str]", expected["history"])
    assert [*(f"word-{n}.md" for n in range(1, 7))] == [item for item in landed if item]
    assert ([], "") == (red, waiting)
    series = kill_in_series(trial, tmp_path / "killed", seed=7, most=3, expected=expected)
    assert [] == series.problems
    assert series.kills.total() > 0
