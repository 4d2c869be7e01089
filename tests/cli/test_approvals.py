"""`cuggino approve` and `cuggino reject`, beside a run that is killed while it waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.domain import approval_question
from cuggino.events import SessionEnded, WaitingStarted
from cuggino.storage import Workspace
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.test_waiting import SCENARIO, Waits
from tests.endurance.place import until

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
