"""`cuggino run` while it waits: killed, stopped, beside another run, approved and rejected."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cuggino.domain import approval_question
from cuggino.events import RunEnded, SessionEnded, WaitingEnded
from cuggino.storage import Workspace
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.commanded import Commanded
from tests.cli.rounds import APPROVES, agent, plans

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


class Waits(Commanded):
    """A run that waits for a file of its project."""

    def __init__(self, place: Path, text: str = SCENARIO, *approve: str) -> None:
        super().__init__(place, sandbox="auto", guard="roles", approve=approve)
        (self.folder / "scenario.toml").write_text(text)
        self.start("run", "--quiet", "--focus", "x")
        self.has("WaitingStarted")

    def resume(self) -> subprocess.Popen[str]:
        """Return the resumed run once it waits again."""
        again = self.start("run", "--quiet", "--resume")
        self.has("WaitingStarted", 2)
        return again

    def of_kind(self, kind: type[Any]) -> list[Any]:
        """Return the events of a kind."""
        return [event for event in self.events() if isinstance(event, kind)]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Waits]:
    with closing(Waits(tmp_path)) as made:
        yield made


@pytest.mark.real_agent
@pytest.mark.parametrize(
    ("how", "code"), [("kill", -signal.SIGKILL), ("interrupt", 130), ("stop", 130)]
)
def test_it_goes_on_waiting(run: Waits, how: str, code: int) -> None:
    """However a waiting run ends, it goes on waiting when resumed, and then resumes the session."""
    process = run.process
    assert process is not None
    match how:
        case "kill":
            process.kill()
        case "interrupt":
            process.send_signal(signal.SIGINT)
        case _:
            assert 0 == run.tell("stop")[0]
    assert code == run.ends()[0]
    sessions = len(run.of_kind(SessionEnded))
    again = run.resume()
    assert sessions == len(run.of_kind(SessionEnded))
    (run.folder / "build").mkdir()
    (run.folder / "build" / "report.xml").touch()
    code, output = run.of(again)
    assert 0 == code, output
    (waited,), (ended,) = run.of_kind(WaitingEnded), run.of_kind(RunEnded)[-1:]
    assert ("happened", "approved") == (waited.outcome, ended.state)


@pytest.mark.real_agent
def test_a_second_run_is_refused(run: Waits) -> None:
    """A run that waits holds its project, as one that is paused; its status says why it waits."""
    code, output = run.of(run.open("run", "--quiet", "--focus", "y"))
    assert (2, True) == (code, "is in use by process" in output), output
    assert "Waits for  the file build/report.xml" in run.tell("status")[1]


PLANNED = SCENARIO.replace(
    'say = "<WAITING>file build/report.xml</WAITING>"\n',
    'run = "cat .cuggino/wip/*.md > session.md"\n[[implementing.steps]]\n'
    'say = "<DONE>Add a</DONE>"\n',
)


@pytest.mark.real_agent
def test_it_is_approved_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed run waits for the same approval when resumed, and goes on with the edited plan."""
    run = Waits(tmp_path, PLANNED, "plan")
    run.kill()
    code, output = run.tell("status")
    assert (4, True) == (code, "Approve the plan? (x) (cuggino approve)" in output)
    again = run.resume()
    monkeypatch.setenv("EDITOR", "sed -i s/one/two/")
    assert (0, "Approved: Approve the plan? (x)\n") == run.tell("approve", "--edit")
    code, output = run.of(again)
    assert 0 == code, output
    assert 3 == len(run.of_kind(SessionEnded))
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
