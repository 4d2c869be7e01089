"""Spec issues answered by replies on issues."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.errors import ForgeUnreachable
from cuggino.events import LoopSpecIssue, RunStarted, WatchIssueAnswered, WatchItemParked
from cuggino.storage import answer_issue, new_run_id
from cuggino.storage.journal import Journal
from tests.forge.desks import ITEM, Machine, machine


def asking(folder: Path) -> tuple[Machine, str]:
    """Return a machine whose item has asked, and the file of the spec issue."""
    here = machine(folder, every=60.0)
    here.begins()
    file = here.question("Which color?\n\n@ada knows #7")
    here.passes(10)
    return here, file


def decisions(here: Machine) -> str:
    """Return what the specifications have learned."""
    file = here.folder / "specs" / "decisions.md"
    return file.read_text() if file.exists() else ""


def test_a_reply_answers(tmp_path: Path) -> None:
    """Question and answer become part of the specifications, and work continues."""
    here, file = asking(tmp_path)
    assert "**Work on this needs an answer.**" in here.body()
    assert "> Which color?" in here.body()
    assert "@ada" not in here.body()
    assert "reply here.** The first reply from someone with write access counts" in here.body()
    here.forge.person("ada").comments(7, "Blue.<!-- hidden -->\n")
    here.passes(59)
    (answer,) = [event for _, event in here.seen if isinstance(event, WatchIssueAnswered)]
    assert (ITEM, file, "ada") == (answer.filename, answer.issue, answer.author)
    assert "> Which color?" in decisions(here)
    assert "\nBlue.(comment removed)\n\n(ada, https://github.com/owner/repo/issues/7#" in decisions(
        here
    )
    assert [] == here.workspace.spec_issue_names()
    here.passes(5)
    assert "ada has answered; work continues." in here.bodies()[0]
    before = len(here.forge.calls)
    here.passes(3600)
    assert before == len(here.forge.calls)


def test_nothing_is_polled_without_a_question(tmp_path: Path) -> None:
    """The forge is asked only while a question is open."""
    here = machine(tmp_path, every=60.0)
    here.begins()
    here.passes(10)
    before = len(here.forge.calls)
    here.passes(7200)
    assert before == len(here.forge.calls)


def test_what_does_not_answer(tmp_path: Path) -> None:
    """Earlier comments, strangers, edits by strangers, blank ones and cuggino's own do not."""
    here = machine(tmp_path, every=60.0)
    ada, eve = here.forge.person("ada"), here.forge.person("eve", trusted=False)
    ada.comments(7, "An early remark")
    here.begins()
    here.question()
    here.passes(10)
    eve.comments(7, "Red!")
    changed = ada.comments(7, "Green")
    eve.edits_comment(7, changed.id, "Red!!")
    ada.comments(7, "\u200b \n")
    ada.comments(7, f"<!-- cuggino:{'0' * 16} -->\nof another machine")
    here.passes(600)
    assert "" == decisions(here)
    assert 1 == len(here.workspace.spec_issue_names())
    ada.comments(7, "Blue")
    ada.comments(7, "No, green")
    here.passes(60)
    assert "Blue" in decisions(here)
    assert "green" not in decisions(here)


def test_the_user_of_the_same_login_answers(tmp_path: Path) -> None:
    """A comment by cuggino's own login is a reply unless it has a marker."""
    here, _ = asking(tmp_path)
    here.forge.person("me").comments(7, "Blue")
    here.passes(60)
    assert "Blue" in decisions(here)


def test_a_question_settled_here_is_not_polled(tmp_path: Path) -> None:
    """The comment reports the answer, and the forge is not polled."""
    here, _ = asking(tmp_path)
    (issue,) = here.workspace.issues()
    specs = here.folder / "specs"
    answer_issue(here.workspace, issue, "Red", specs=specs, at=here.clock.now)
    here.passes(65)
    assert "It was answered elsewhere; work continues." in here.body()
    here.forge.person("ada").comments(7, "Blue")
    before = len(here.forge.calls)
    here.passes(3600)
    assert before == len(here.forge.calls)
    assert "Blue" not in decisions(here)


def test_a_settled_question_of_a_parked_item(tmp_path: Path) -> None:
    """The newer state stays."""
    here, file = asking(tmp_path)
    here.emit(WatchItemParked(filename=ITEM, reason="skipped", item=ITEM))
    (here.workspace.spec_issues / file).unlink()
    here.passes(120)
    assert "given up" in here.body()


@pytest.mark.parametrize("tenth", range(0, 80, 2))
def test_killed_at_each_step(tmp_path: Path, tenth: int) -> None:
    """A reply counts once, whenever the watch is killed; also one that came while it was down."""
    here = machine(tmp_path, latency=1, every=5.0)
    here.begins()
    here.question()
    here.passes(tenth / 10)
    here.kill()
    here.passes(100)
    asked = "needs an answer" in here.body()
    if asked:
        here.forge.person("ada").comments(7, "Blue")
    here.begin()
    here.passes(tenth / 10)
    here.restart()
    here.passes(20)
    if not asked:
        here.forge.person("ada").comments(7, "Blue")
        here.passes(20)
    here.restart()
    here.passes(100)
    assert not here.errors
    assert 1 == decisions(here).count("Blue")
    assert 1 == here.tags().count("WatchIssueAnswered")
    assert "ada has answered" in here.bodies()[0]
    assert 1 == len(here.forge.writes("add_comment"))


def test_killed_between_answer_and_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is written once."""
    here, _ = asking(tmp_path)

    def killed(*_: object) -> str:
        raise KeyboardInterrupt

    here.forge.person("ada").comments(7, "Blue")
    with monkeypatch.context() as patched:
        patched.setattr(type(here.workspace), "resolve", killed)
        with pytest.raises(KeyboardInterrupt):
            here.passes(60)
    here.restart()
    here.passes(100)
    assert 1 == decisions(here).count("Blue")
    assert [] == here.workspace.spec_issue_names()


def test_an_outage_delays_the_answer(tmp_path: Path) -> None:
    """It counts once the forge is back."""
    here, _ = asking(tmp_path)
    here.forge.fail("comments", ForgeUnreachable("502"), times=5)
    here.forge.person("ada").comments(7, "Blue")
    here.passes(600)
    assert "Blue" in decisions(here)
    assert "WatchForgeWaiting" in here.tags()


def test_an_issue_that_is_gone(tmp_path: Path) -> None:
    """Its question stays open here, and is reported once."""
    here, file = asking(tmp_path)
    here.forge.person("ada").deletes(7)
    here.passes(3600)
    assert [file] == here.workspace.spec_issue_names()
    assert 1 == here.tags().count("WatchReportFailed")
    before = len(here.forge.calls)
    here.restart()
    here.passes(3600)
    assert before == len(here.forge.calls)


def test_a_question_that_was_not_recorded_in_time(tmp_path: Path) -> None:
    """A watch that is killed as an agent asks is followed by one that asks on the issue."""
    here = machine(tmp_path)
    here.begins()
    here.kill()
    file = here.workspace.write_spec_issue("Which color?")
    started = RunStarted(run_id=new_run_id(), kind="run", command="cuggino watch", item=f"{ITEM} d")
    journal = Journal.create(here.workspace.journal, started, at=here.clock.now, sync=False)
    asked = LoopSpecIssue(iteration=1, content="Which color?", filename=file)
    journal.append(asked, at=here.clock.now)
    journal.close()
    here.begin()
    here.passes(10)
    assert "> Which color?" in here.body()
    assert file == here.origin().question
