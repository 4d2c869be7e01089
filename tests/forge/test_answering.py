"""Claims and replies on issues."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings, strategies as st

from cuggino.errors import ForgeRefused, ForgeUnreachable
from cuggino.events import LoopSpecIssue, RunStarted, WatchIssueAnswered, WatchItemParked
from cuggino.storage import answer_issue, new_run_id
from cuggino.storage.journal import Journal
from cuggino.testing import InMemoryForge, VirtualClock
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


MOMENTS = st.floats(min_value=0, max_value=4).map(lambda one: round(one, 1))


def two(folder: Path, *, same_login: bool = False, latency: float = 1) -> tuple[Machine, Machine]:
    """Return two machines that have imported the same issue."""
    forge = InMemoryForge(VirtualClock(), latency=latency, name="one")
    forge.person("ada").opens(7, "Add a page", labels=("agent",))
    other = forge.login("one" if same_login else "two")
    machines = Machine(folder / "1", forge, every=60.0), Machine(folder / "2", other, every=60.0)
    for one in machines:
        one.imported()
    return machines


@pytest.mark.real_agent
@given(begin=MOMENTS, kill=MOMENTS, late=MOMENTS, same_login=st.booleans(), lost=st.booleans())
@example(begin=0, kill=0, late=0, same_login=False, lost=False)
@example(begin=0.5, kill=1.0, late=0.5, same_login=True, lost=True)
@settings(max_examples=2 * settings().max_examples, deadline=None)
def test_every_interleaving(
    begin: float, kill: float, late: float, same_login: bool, lost: bool
) -> None:
    """One of two machines works, whoever begins when, also if one is killed and starts again."""
    with TemporaryDirectory() as folder:
        first, second = two(Path(folder), same_login=same_login)
        if lost:
            first.forge.fail("add_comment", ForgeUnreachable("reset"), late=True)
        first.asks()
        first.passes(begin)
        second.asks()
        first.passes(kill)
        first.restart()
        first.passes(late)
        first.asks()
        first.passes(50)
        for one in (first, second):
            assert not one.errors
            one.restart()
            if not one.desk.backlog.held(ITEM):
                one.asks()
        first.passes(100)
        last = {name: one.claims[-1][1] for name, one in (("1", first), ("2", second))}
        assert [False, True] == sorted(last.values())
        loser = first if not last["1"] else second
        assert "is claimed by " in loser.desk.backlog.held(ITEM)
        assert 1 == len(first.bodies())
        assert "An agent is working on this." in first.body()


def test_a_claim_is_asked_once_per_process(tmp_path: Path) -> None:
    """Later attempts of a claimed item do not call the forge."""
    here = machine(tmp_path)
    here.begins()
    before = len(here.forge.calls)
    here.begins()
    assert [(ITEM, True), (ITEM, True)] == here.claims
    assert before == len(here.forge.calls)


def test_nothing_is_written_if_another_was_first(tmp_path: Path) -> None:
    """The item is held, with the page of the claim."""
    first, second = two(tmp_path)
    first.begins()
    second.begins()
    assert [(ITEM, False)] == second.claims
    assert 1 == len(first.forge.writes())
    reason = second.desk.backlog.held(ITEM)
    assert "is claimed by one at https://github.com/owner/repo/issues/7#" in reason
    assert not second.desk.backlog.may_begin(ITEM)


def test_a_claim_that_somebody_removes_frees_the_item(tmp_path: Path) -> None:
    """The other machine may begin at its next look, and the first one is held then."""
    first, second = two(tmp_path)
    first.begins()
    second.begins()
    first.kill()
    first.forge.person("ada").deletes_comment(7, first.forge.comments_now(7)[0].id)
    second.passes(70)
    assert second.desk.backlog.may_begin(ITEM)
    second.begins()
    assert [(ITEM, False), (ITEM, True)] == second.claims
    first.begin()
    first.begins()
    assert (ITEM, False) == first.claims[-1]


def test_a_release_keeps_the_reason_of_the_source(tmp_path: Path) -> None:
    """An item that its source holds stays held."""
    first, second = two(tmp_path)
    first.begins()
    second.begins()
    second.desk.origins.change(ITEM, held="was edited by a stranger")
    first.kill()
    first.forge.person("ada").deletes_comment(7, first.forge.comments_now(7)[0].id)
    second.passes(70)
    assert "was edited by a stranger" == second.desk.backlog.held(ITEM)


def test_a_stranger_claims_nothing(tmp_path: Path) -> None:
    """Nor does a quotation of a marker by anybody."""
    here = machine(tmp_path)
    marker = f"<!-- cuggino:{'0' * 16} -->"
    here.forge.person("eve", trusted=False).comments(7, f"{marker}\nmine")
    here.forge.person("ada").comments(7, f"> {marker}\n\nWhat is this?")
    here.begins()
    assert [(ITEM, True)] == here.claims


def test_a_claim_waits_for_the_forge(tmp_path: Path) -> None:
    """Nothing begins unclaimed; the wait is an event."""
    here = machine(tmp_path)
    here.forge.outage("0s", "1h")
    here.asks()
    here.passes(3500)
    assert [] == here.claims
    assert "WatchForgeWaiting" in here.tags()
    here.passes(700)
    assert [(ITEM, True)] == here.claims
    assert 1 == len(here.bodies())


def test_an_issue_that_refuses_comments(tmp_path: Path) -> None:
    """Work goes on, reported once and without a comment."""
    here = machine(tmp_path)
    here.forge.fail("add_comment", ForgeRefused("locked", status=403), times=9)
    here.begins()
    here.passes(600)
    assert [(ITEM, True)] == here.claims
    assert 1 == here.tags().count("WatchReportFailed")
    assert [] == here.bodies()


@pytest.mark.parametrize("tenth", range(0, 30, 2))
def test_a_lost_claim_is_taken_back_after_a_kill(tmp_path: Path, tenth: int) -> None:
    """A machine that is killed while it loses leaves one claim in the end."""
    first, second = two(tmp_path)
    first.asks()
    second.passes(0.2)
    second.asks()
    second.passes(tenth / 10)
    second.restart()
    second.asks()
    second.passes(100)
    assert (ITEM, True) == first.claims[-1]
    assert (ITEM, False) == second.claims[-1]
    assert 1 == len(first.bodies())
