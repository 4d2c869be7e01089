"""`cuggino top`: a run in a separate process, seen and commanded on a pseudo-terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuggino.events import PauseAsked, SteerAsked, StopAsked, WaitingEnded
from tests.cli.cli import Cli
from tests.cli.commanded import Commanded
from tests.git_project import isolate_git
from tests.limits import LIMIT
from tests.screen.pseudo_terminal import PseudoTerminal

FOCUS = ("run", "--quiet", "--focus", "the page")


class Top(PseudoTerminal):
    """The command on a pseudo-terminal, and a person at it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cuggino_cli", "top"],
            cwd=folder,
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
        )

    def sees(self, *texts: str, without: str = "\0") -> None:
        """Wait until all of the texts are on the screen, and one is not."""

        def shown() -> bool:
            seen = "\n".join(self.seen())
            return all(text in seen for text in texts) and without not in seen

        self.until(shown)

    def ends(self) -> int:
        """Return the exit code; the terminal is as before."""
        code = self.process.wait(LIMIT)
        assert self.before == self.mode()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        super().close()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The projects that are known are those of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "cuggino"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Commanded]:
    isolate_git(monkeypatch, tmp_path)
    commanded = Commanded(tmp_path)
    yield commanded
    commanded.close()


@pytest.fixture
def top(run: Commanded, tmp_path: Path) -> Iterator[Top]:
    """The screen in a folder that is no project, while the run plans."""
    run.start(*FOCUS)
    run.at("planning")
    (tmp_path / "elsewhere").mkdir()
    top = Top(tmp_path / "elsewhere")
    top.sees("PROJECT", "project", "the page", "1/", "plan", "▶ Bash")
    yield top
    top.close()


def test_nothing_is_known(project: Path, state: Path, cli: Cli) -> None:
    """Without a project there is one sentence on what to do next, and nothing is written."""
    assert cli("top", "--once", code=3).startswith("No project has run here yet. Begin in one: ")
    assert not state.exists()


def test_a_named_folder(project: Path, cli: Cli) -> None:
    """A folder can be named that has had no run."""
    assert "no run yet" in cli("top", "--once", str(project), code=3)
    assert not (project / ".cuggino").exists()


@pytest.mark.real_agent
def test_keys_reach_the_run(run: Commanded, top: Top) -> None:
    """A run is looked in, steered, paused and stopped; leaving the screen does not end it."""
    top.type("\r")
    top.sees("[Planning] Starting...", "▶ Bash: touch", "q back")
    top.type("sUse the form")
    top.sees("steer (Enter sends, Esc cancels): Use the form")
    top.type("\r")
    run.has("SteerAsked")
    assert SteerAsked(text="Use the form") in run.events()
    top.sees("[Control] Message: Use the form")
    top.type("q")
    top.sees("PROJECT")
    top.type("p")
    run.has("PauseAsked")
    assert PauseAsked() in run.events()
    top.sees("pausing")
    top.type("p")
    run.has("ContinueAsked")
    top.type("x")
    top.sees("Stop `cuggino run` in project after this stage? y/n")
    top.type("y")
    run.has("StopAsked")
    assert StopAsked() in run.events()
    top.sees("stopping")
    top.type("q")
    assert 0 == top.ends()
    run.let("planning")
    assert 130 == run.ends()[0]


def test_a_run_is_found_from_anywhere(run: Commanded, top: Top) -> None:
    """A run has a row while it works and after its end, and is not ended by leaving the screen.

    A question appears by itself; its answer is in the specifications.
    """
    code, said = run.tell("top", "--once")
    assert 0 == code
    assert "the page" in said and "plan" in said
    folder = run.workspace.spec_issues
    folder.mkdir(exist_ok=True)
    (folder / "i.md").write_text("PDF or HTML?\n\nBoth are named.\n")
    top.sees("? PDF or HTML?", "asks you", "1 waits for you")
    top.type("j\r")
    top.sees("Both are named.")
    top.type("aPDF only\r")
    top.sees("Answered")
    assert (run.folder / ".specs" / "decisions.md").read_text().endswith("\nPDF only\n")
    assert [] == run.workspace.issues()
    top.type("\x1b")
    top.sees("1 at work", "PROJECT", without="waits for you")
    top.type("\x03")
    assert 130 == top.ends()
    assert run.process is not None and run.process.poll() is None
    run.let("planning", "implementing", "reviewing")
    assert 0 == run.ends()[0]
    code, said = run.tell("top", "--once", "--color", "never")
    assert 3 == code
    assert ["PROJECT", "project", "Nothing"] == [line.split()[0] for line in said.splitlines()]


def test_a_plan_is_approved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that waits for the approval of its plan goes on after one key."""
    isolate_git(monkeypatch, tmp_path)
    run = Commanded(tmp_path, approve=["plan"])
    top = Top(tmp_path)
    try:
        run.start(*FOCUS)
        run.let("planning", "implementing", "reviewing")
        top.sees("Approve the plan?")
        top.type("j\r")
        top.sees("## Task 1: the page")
        top.type("y")
        assert 0 == run.ends()[0]
        (ended,) = (one for one in run.events() if isinstance(one, WaitingEnded))
        assert ("happened", "Approve") == (ended.outcome, ended.answer.splitlines()[0])
    finally:
        top.close()
        run.close()


@pytest.mark.real_agent  # with the second command: Ctrl-C is tested above
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(top: Top, number: signal.Signals, code: int) -> None:
    """A signal ends the screen and gives the terminal back."""
    top.process.send_signal(number)
    assert code == top.ends()
