"""Reports on issues: one comment per item, edited in place despite interruptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.errors import ForgeLimited, ForgeLoginMissing, ForgeRefused, ForgeUnreachable
from tests.forge.desks import ITEM, Machine, machine

CANDIDATE = ev.WatchCandidate(filename=ITEM, slot=1, commit="c1", base="b", attempt=1, item=ITEM)
LANDED = ev.WatchLanded(filename=ITEM, commit="c2", trunk_was="b", item=ITEM)
PARKED = ev.WatchItemParked(filename=ITEM, reason="it failed", item=ITEM)
SESSION = ev.SessionEnded(outcome="completed", cost_usd=0.25, item=ITEM)
ITERATION = ev.IterationStart(iteration=1, max_iterations=3, item=ITEM)


def states(here: Machine) -> list[str]:
    """Return the states that were reported."""
    return [event.state for _, event in here.seen if isinstance(event, ev.WatchIssueReported)]


def test_one_comment_is_edited(tmp_path: Path) -> None:
    """The claim is the comment; a burst of events becomes one edit, and counts are in it."""
    here = machine(tmp_path)
    here.begins()
    assert ["add_comment"] == [call.name for call in here.forge.writes()][:1]
    assert "**An agent is working on this.**" in here.body()
    here.emit(
        ITERATION,
        SESSION,
        SESSION,
        CANDIDATE,
        ev.WatchLanding(filename=ITEM, commit="c1", trunk="b", item=ITEM),
        LANDED,
        after=10,
    )
    assert "**Work on this has landed.**" in here.body()
    assert "Commit: c2" in here.body()
    assert "1 iteration, 2 agent sessions, $0.50. Written by cuggino" in here.body()
    here.emit(ev.WatchItemCompleted(filename=ITEM, item=ITEM), after=4000)
    assert 1 == len(here.forge.writes("add_comment"))
    assert ["working", "landed"] == states(here)
    assert here.origin().written


def test_an_estimated_cost(tmp_path: Path) -> None:
    """A cost with an estimate is marked in the comment."""
    here = machine(tmp_path)
    here.begins()
    estimate = SESSION.model_copy(update={"cost_estimated": True})
    here.emit(SESSION, estimate, SESSION, CANDIDATE, LANDED, after=10)
    assert "3 agent sessions, ~$0.75. Written by cuggino" in here.body()


def test_counts_are_updated_now_and_then(tmp_path: Path) -> None:
    """Iterations alone are written every five minutes."""
    here = machine(tmp_path)
    here.begins()
    before = len(here.forge.writes())
    for _ in range(20):
        here.emit(ITERATION, SESSION, after=30)
    assert 1 == len(here.forge.writes()) - before
    here.passes(300)
    assert 2 == len(here.forge.writes()) - before
    assert "20 iterations, 20 agent sessions, $5.00 so far." in here.body()


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (PARKED, "**Work on this was given up.**\n\n> it failed"),
        (
            ev.WatchItemRetry(
                filename=ITEM, message="no @disk", attempt=1, max_attempts=3, retry_in=60, item=ITEM
            ),
            "**Work on this is waiting.** It failed and will be retried (attempt 1 of 3):"
            "\n\n> no @ disk",
        ),
        (
            ev.WatchSentBack(filename=ITEM, reason="ci", returns=1, item=ITEM),
            "**An agent is working on this.** It was sent back: a job of its pull request failed.",
        ),
        (
            ev.WatchProposed(
                filename=ITEM,
                number=9,
                url="https://github.com/owner/repo/pull/9",
                branch="cuggino/github-00007",
                commit="c1",
                candidate="c0",
                item=ITEM,
            ),
            "Pull request: https://github.com/owner/repo/pull/9  \nBranch: `cuggino/github-00007`",
        ),
    ],
)
def test_states(tmp_path: Path, event: ev.Event, said: str) -> None:
    """Each state is described in plain words."""
    here = machine(tmp_path)
    here.begins()
    here.emit(event, after=5)
    assert said in here.body()


def test_items_of_a_watch_without_slots(tmp_path: Path) -> None:
    """Events that name no item belong to the one at work."""
    from cuggino.events import WatchProcessingItem

    here = machine(tmp_path)
    here.emit(WatchProcessingItem(filename=ITEM))
    here.emit(ITERATION.model_copy(update={"item": None}), after=0)
    here.emit(SESSION.model_copy(update={"item": None}), after=400)
    assert "1 iteration, 1 agent session, $0.25 so far." in here.body()


def test_items_without_an_issue_are_not_reported(tmp_path: Path) -> None:
    """A hand-written item has no comment, and may begin at once."""
    here = machine(tmp_path)
    here.begins("001-mine.md")
    assert [("001-mine.md", True)] == here.claims
    assert [] == here.forge.calls


def test_an_item_that_has_not_begun_is_not_reported(tmp_path: Path) -> None:
    """Its issue stays without a comment, also when it is removed."""
    here = machine(tmp_path)
    here.emit(PARKED, after=100)
    here.desk.backlog.remove(ITEM)
    here.restart()
    here.passes(200)
    assert [] == here.forge.writes()


def test_a_source_that_does_not_comment(tmp_path: Path) -> None:
    """Neither claim nor report is written."""
    here = machine(tmp_path, comment=False)
    here.begins()
    here.emit(LANDED, after=100)
    assert [(ITEM, True)] == here.claims
    assert [] == here.forge.calls


@pytest.mark.parametrize("tenth", range(0, 60, 2))
def test_killed_at_each_step(tmp_path: Path, tenth: int) -> None:
    """After a kill at any time, the next watch writes only the missing parts."""
    here = machine(
        tmp_path, latency=1, labels={"landed": "done", "working": "busy"}, close_issues=True
    )
    here.asks()
    here.passes(tenth / 10)
    here.restart()
    here.asks()
    here.passes(20)
    here.emit(LANDED)
    here.passes(tenth / 10)
    here.kill()
    here.desk.backlog.archive(ITEM, "approved", here.desk.backlog.digest(ITEM) or "")
    here.begin()
    here.passes(100)
    assert not here.errors
    assert 1 == len(here.forge.writes("add_comment"))
    assert "has landed" in here.body()
    assert ("agent", "done") == here.forge.issue_now(7).labels
    assert not here.forge.issue_now(7).is_open
    before = len(here.forge.writes())
    here.restart()
    here.passes(1000)
    assert before == len(here.forge.writes())


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("method", ["comments", "add_comment", "edit_comment", "change_labels"])
@pytest.mark.parametrize(
    "error", [ForgeLimited("slow"), ForgeUnreachable("502"), ForgeLoginMissing("who?")]
)
def test_a_failing_call_is_repeated(
    tmp_path: Path, late: bool, method: str, error: Exception
) -> None:
    """Limits, outages and logouts are waited for, with an event; a lost answer doubles nothing."""
    here = machine(tmp_path, labels={"landed": "done"})
    here.forge.fail(method, error, times=2, late=late)
    here.begins()
    here.passes(3000)
    here.emit(LANDED, after=3000)
    assert not here.errors
    assert 1 == len(here.bodies())
    assert "has landed" in here.body()
    assert here.forge.issue_now(7).labels == ("agent", "done")
    assert "WatchForgeWaiting" in here.tags()
    assert 1 == len({one.body for one in here.forge.comments_now(7)})


def test_an_hour_of_outage(tmp_path: Path) -> None:
    """The newest state is written once the forge is back, and only that."""
    here = machine(tmp_path)
    here.begins()
    here.forge.outage("1m", "61m")
    here.passes(60)
    here.emit(CANDIDATE, after=600)
    here.emit(ev.WatchSentBack(filename=ITEM, reason="check", returns=1, item=ITEM), after=1200)
    here.emit(PARKED, after=3600)
    assert ["working", "parked"] == states(here)
    assert "given up" in here.body()
    waits = [event.doing for _, event in here.seen if isinstance(event, ev.WatchForgeWaiting)]
    assert {"edit the comment on issue 7"} == set(waits)


def test_unapproved_work_does_not_wait_to_land(tmp_path: Path) -> None:
    """The comment says so only of approved work."""
    here = machine(tmp_path)
    here.begins()
    here.emit(CANDIDATE.model_copy(update={"approved": False}), after=10)
    assert "waiting to land" not in here.body()
    here.emit(CANDIDATE, after=100)
    assert "waiting to land" in here.body()


def test_a_removed_comment_is_written_anew_once(tmp_path: Path) -> None:
    """A person who removes it again is not contradicted."""
    here = machine(tmp_path)
    ada = here.forge.person("ada")
    here.begins()
    ada.deletes_comment(7, here.forge.comments_now(7)[0].id)
    here.emit(CANDIDATE, after=10)
    assert "waiting to land" in here.body()
    ada.deletes_comment(7, here.forge.comments_now(7)[0].id)
    here.emit(PARKED, after=10)
    here.restart()
    here.passes(1000)
    assert [] == here.bodies()
    assert 2 == len(here.forge.writes("add_comment"))
    assert not here.errors


@pytest.mark.parametrize("how", ["deletes", "transfers"])
def test_an_issue_that_is_gone_is_left_alone(tmp_path: Path, how: str) -> None:
    """A missing issue is reported once, even across restarts, and never tried again."""
    here = machine(tmp_path)
    here.begins()
    getattr(here.forge.person("ada"), how)(7)
    here.emit(CANDIDATE, after=10)
    here.emit(PARKED, after=1000)
    (failed,) = [event for _, event in here.seen if isinstance(event, ev.WatchReportFailed)]
    assert (ITEM, here.origin().url) == (failed.filename, failed.url)
    before = len(here.forge.calls)
    here.restart()
    here.emit(LANDED, after=1000)
    assert before == len(here.forge.calls)
    assert 1 == here.tags().count("WatchReportFailed")


def test_a_refusal_is_tried_again_by_the_next_watch(tmp_path: Path) -> None:
    """A locked issue silences this watch only."""
    here = machine(tmp_path)
    here.begins()
    here.forge.fail("edit_comment", ForgeRefused("locked", status=403), times=1)
    here.emit(CANDIDATE, after=1000)
    assert 1 == here.tags().count("WatchReportFailed")
    assert "waiting to land" not in here.body()
    here.restart()
    here.passes(10)
    assert "waiting to land" in here.body()


def test_labels_of_states(tmp_path: Path) -> None:
    """Exactly one of cuggino's labels is on the issue; all others stay."""
    here = machine(tmp_path, labels={"working": "busy", "parked": "stuck", "landed": "agent"})
    here.forge.person("ada").labels(7, "bug")
    here.begins()
    assert ("agent", "bug", "busy") == here.forge.issue_now(7).labels
    here.emit(PARKED, after=10)
    assert ("agent", "bug", "stuck") == here.forge.issue_now(7).labels
    writes = len(here.forge.writes("change_labels"))
    here.restart()
    here.passes(1000)
    assert writes == len(here.forge.writes("change_labels"))
    here.emit(LANDED, after=10)
    assert ("agent", "bug") == here.forge.issue_now(7).labels


def test_an_issue_is_closed_only_if_configured(tmp_path: Path) -> None:
    """It is closed once; one that a person reopens stays open."""
    here = machine(tmp_path / "a")
    here.begins()
    here.emit(LANDED, after=100)
    assert here.forge.issue_now(7).is_open
    other = machine(tmp_path / "b", close_issues=True)
    other.begins()
    other.emit(LANDED, after=100)
    assert not other.forge.issue_now(7).is_open
    other.forge.person("ada").reopens(7)
    other.restart()
    other.passes(1000)
    assert other.forge.issue_now(7).is_open


@pytest.mark.parametrize(
    ("how", "said"),
    [("removed", "removed from the backlog"), ("approved", "has landed"), ("parked", "given up")],
)
@pytest.mark.parametrize("is_down", [True, False])
def test_items_that_left_without_an_event(
    tmp_path: Path, how: str, said: str, is_down: bool
) -> None:
    """Items that leave the backlog without an event, even while no watch runs, are reported."""
    here = machine(tmp_path)
    here.begins()
    if is_down:
        here.kill()
    backlog = here.desk.backlog
    if how == "parked":
        backlog.park(ITEM, "no use")
    elif how == "removed":
        backlog.remove(ITEM)
    else:
        backlog.archive(ITEM, how, backlog.digest(ITEM) or "")
    if is_down:
        here.begin()
    here.passes(100)
    assert said in here.body()


def test_nothing_foreign_acts_and_no_secret_leaves(tmp_path: Path) -> None:
    """An agent's reason is stripped of mentions, references, markers, tokens and paths."""
    here = machine(tmp_path)
    here.begins()
    token = "ghp_" + "aB3" * 12
    reason = f"@ada Closes #8 <!-- cuggino:{'0' * 16} --> {token} {tmp_path}/a.py " + "x" * 99_999
    here.emit(PARKED.model_copy(update={"reason": reason}), after=10)
    body = here.body()
    for bad in ("@ada", "#8", token, str(tmp_path)):
        assert bad not in body
    assert 1 == body.count("<!--")
    assert len(body) < 65_536


def test_an_origin_that_cannot_be_read(tmp_path: Path) -> None:
    """It silences its item, and ends no watch."""
    here = machine(tmp_path)
    here.begins()
    here.desk.origins.file(ITEM).path.write_text("{")
    here.emit(PARKED, after=10)
    assert not here.errors
    assert 1 == here.tags().count("WatchReportFailed")


@pytest.mark.parametrize("tenth", range(0, 40, 2))
def test_an_item_that_leaves_after_its_claim_was_killed(tmp_path: Path, tenth: int) -> None:
    """No comment goes on saying that an agent works on it."""
    here = machine(tmp_path, latency=1)
    here.asks()
    here.passes(tenth / 10)
    here.kill()
    here.desk.backlog.remove(ITEM)
    here.begin()
    here.passes(100)
    assert all("removed from the backlog" in body for body in here.bodies())
    assert len(here.bodies()) == (tenth > 24)  # the comment is added after 2.5 seconds
