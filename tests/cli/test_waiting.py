"""`cuggino run` while it waits: killed, stopped, beside another run, approved and rejected."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cuggino.domain import approval_question
from cuggino.events import SessionEnded, WaitingEnded, WaitingStarted
from cuggino.storage import JournalFile, Workspace, list_journals, read_journal
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, agent, plans
from tests.endurance.place import until
from tests.limits import LIMIT

pytestmark = pytest.mark.real_agent

SCENARIO = (
    plans("# Plan\n\n- [ ] one\n")
    + agent(
        "implementing",
        {"usage": {"input_tokens": 900, "output_tokens": 40}},
        {"say": "<WAITING>file build/report.xml</WAITING>"},
    )
    + '[[implementing.resumed]]\nsay = "<DONE>Add a</DONE>"\n'
    + APPROVES
)


class Waits:
    """A run that waits for a file of its project."""

    scenario = SCENARIO
    settings = '{"agent": "scripted:scenario.toml"}'

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".specs").mkdir()
        (folder / ".specs" / "a.md").write_text("a\n")
        (folder / "scenario.toml").write_text(self.scenario)
        (folder / ".cuggino.json").write_text(self.settings)
        self.process = self.start("--focus", "x")
        assert until(lambda: len(self.events(WaitingStarted)) == 1, seconds=60)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return self._command("run", "--quiet", *words)

    def _command(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "cuggino_cli", *words],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def command(self, *words: str) -> tuple[int, str]:
        return self.ended(self._command(*words))

    @staticmethod
    def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
        output, _ = process.communicate(timeout=LIMIT)
        return process.returncode, output.decode()

    @property
    def journal(self) -> JournalFile | None:
        paths = list_journals(Workspace(self.folder).journal)
        return read_journal(paths[0]) if paths else None

    def events(self, kind: type[Any]) -> list[Any]:
        journal = self.journal
        entries = journal.entries if journal is not None else ()
        return [entry.event for entry in entries if isinstance(entry.event, kind)]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Waits]:
    made = Waits(tmp_path)
    yield made
    made.process.kill()
    made.process.communicate(timeout=LIMIT)


@pytest.mark.parametrize(
    ("how", "code"), [("kill", -signal.SIGKILL), ("interrupt", 130), ("stop", 130)]
)
def test_it_goes_on_waiting(run: Waits, how: str, code: int) -> None:
    """However a waiting run ends, it goes on waiting when resumed, and then resumes the session."""
    match how:
        case "kill":
            run.process.kill()
        case "interrupt":
            run.process.send_signal(signal.SIGINT)
        case _:
            assert 0 == run.command("stop")[0]
    assert code == run.ended(run.process)[0]
    sessions = len(run.events(SessionEnded))
    again = run.start("--resume")
    assert until(lambda: len(run.events(WaitingStarted)) == 2, seconds=60)
    assert sessions == len(run.events(SessionEnded))
    (run.folder / "build").mkdir()
    (run.folder / "build" / "report.xml").touch()
    code, output = run.ended(again)
    assert 0 == code, output
    (ended,) = run.events(WaitingEnded)
    journal = run.journal
    assert journal is not None
    assert ("happened", "approved") == (ended.outcome, journal.state)


def test_a_second_run_is_refused(run: Waits) -> None:
    """A run that waits holds its project, as one that is paused; its status says why it waits."""
    code, output = run.ended(run.start("--focus", "y"))
    assert (2, True) == (code, "is in use by process" in output), output
    assert "Waits for  the file build/report.xml" in run.command("status")[1]


PLANNED = SCENARIO.replace(
    'say = "<WAITING>file build/report.xml</WAITING>"\n',
    'run = "cat .cuggino/wip/*.md > session.md"\n[[implementing.steps]]\n'
    'say = "<DONE>Add a</DONE>"\n',
)


class Approves(Waits):
    """A run that waits for the approval of its plan."""

    scenario = PLANNED
    settings = '{"agent": "scripted:scenario.toml", "approve": ["plan"]}'


@pytest.mark.real_agent
def test_it_is_approved_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed run waits for the same approval when resumed, and goes on with the edited plan."""
    run = Approves(tmp_path)
    run.process.kill()
    run.ended(run.process)
    code, output = run.command("status")
    assert (4, True) == (code, "Approve the plan? (x) (cuggino approve)" in output)
    again = run.start("--resume")
    assert until(lambda: len(run.events(WaitingStarted)) == 2, seconds=60)
    monkeypatch.setenv("EDITOR", "sed -i s/one/two/")
    assert (0, "Approved: Approve the plan? (x)\n") == run.command("approve", "--edit")
    code, output = run.ended(again)
    assert 0 == code, output
    assert 3 == len(run.events(SessionEnded))
    assert "[ ] two" in (run.folder / "session.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["approve"], "nothing waits for an approval here"),
        (["reject"], "Say why, in quotes"),
        (["reject", "no"], "nothing waits for an approval here"),
        (["run", "x", "--approve", "spend:x"], "'spend:x' is not an approval"),
        (["run", "x", "--approve-within", "soon"], "'soon' is not a duration"),
    ],
)
def test_bad_input(words: list[str], message: str, here: Path, cli: Cli) -> None:
    """What cannot be done is said in one sentence, with exit code 2."""
    (here / ".cuggino.json").write_text("{}")
    assert message in cli.err(*words)


def test_several_wait(here: Path, cli: Cli) -> None:
    """Of several approvals one is named by its number, its item, or what it is about."""
    (here / ".cuggino.json").write_text("{}")
    workspace = Workspace(here)
    workspace.open()
    for kind, about in (("plan", "001.md"), ("plan", "002.md"), ("landing", "003.md")):
        name = Workspace.new_approval()
        workspace.write_spec_issue(approval_question(kind, about, "# Plan"), name=name)
    assert "1 Approve the plan? (001.md); 2 " in cli.err("approve")
    assert "may be any of 1 Approve the plan? (001.md); 2 " in cli.err("approve", "plan")
    for words in (["approve", "002.md"], ["reject", "1", "no"], ["approve", "lands"]):
        assert 0 == main(words)
    assert [] == workspace.issues()
