"""The summary of a deliverables run, from its journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino import events as ev
from cuggino.runs import Delivery, RunState
from cuggino.runs.digests import DIGESTED
from cuggino.storage.journal import (
    Journal,
    JournalFile,
    iter_entries,
    read_journal,
)
from tests.cli.recorded_deliveries import (
    DONE,
    TURNS,
    deliver,
    go_on,
    hanging,
    latest,
    path_of,
    turn,
)


def fold(journal: JournalFile) -> Delivery:
    return RunState.of(journal.entries).delivery


def test_sessions(tmp_path: Path) -> None:
    """Each session has its number, instruction, stage and end; the crash is a failure."""
    delivery = fold(deliver(tmp_path, verify=True))
    assert [
        (1, "initializer", "initializer", "completed", "Planned."),
        (2, "coding", "coding", "completed", "One <done>."),
        (3, "coding", "coding", "error", "it crashed\nin a loop"),
        (4, "coding", "coding", "completed", "All done."),
        (5, "verify", "verify", "completed", ""),
    ] == [
        (
            s.session,
            s.instruction,
            (s.stage or "").partition("#")[0],
            s.ended.outcome,
            s.ended.message,
        )
        for s in delivery.sessions
        if s.ended
    ]
    assert [0, 5, 10, 10, 15] == [s.at.timestamp() for s in delivery.sessions]
    assert [False, False, True, False, False] == [s.is_failure for s in delivery.sessions]
    assert 1 == delivery.failures
    assert delivery.ended is not None
    assert ("all_verified", 2) == (delivery.ended.reason, delivery.ended.verified)


def test_deliverables(tmp_path: Path) -> None:
    """Each deliverable has its status, and the time and session of its last change."""
    delivery = fold(deliver(tmp_path, verify=True))
    assert [
        ("DL-1", "passed", True, [(10, 2, "passed")]),
        ("DL-2", "passed", True, [(15, 4, "passed")]),
        ("DL-3", "blocked", False, [(15, 4, "blocked")]),
    ] == [
        (x.id, x.status, x.verified, [(c.at.timestamp(), c.session, c.status) for c in x.changes])
        for x in delivery.deliverables
    ]


def test_earlier_work_is_no_change(tmp_path: Path) -> None:
    """A run that finds everything done has no session and no change."""
    delivery = fold(deliver(tmp_path, turn(), start={"DL-1": "passed"}))
    (item,) = delivery.deliverables
    assert ("passed", ()) == (item.status, item.changes)
    assert () == delivery.sessions


def test_a_removed_deliverable_comes_last(tmp_path: Path) -> None:
    """A deliverable that a session removes from the list keeps its status."""
    dropped = turn(leaves={"DL-1": "passed (deprecated)", "DL-2": "passed"})
    start = {"DL-1": "pending", "DL-2": "pending"}
    delivery = fold(deliver(tmp_path, dropped, start=start))
    assert [("DL-2", True, "passed"), ("DL-1", False, "pending")] == [
        (x.id, x.is_wanted, x.status) for x in delivery.deliverables
    ]
    assert delivery.listed is not None
    assert ["DL-2"] == [x.id for x in delivery.listed.deliverables]


def test_a_session_of_two_processes_is_one(tmp_path: Path) -> None:
    """A resumed session has two attempts, and the end of the second one."""
    interrupted = deliver(tmp_path, TURNS[0], hanging(), seconds=7)
    delivery = fold(interrupted)
    assert ["completed", "interrupted"] == [s.ended.outcome for s in delivery.sessions if s.ended]
    assert delivery.ended is not None
    assert "interrupted" == delivery.ended.reason
    resumed = go_on(tmp_path, turn(leaves=DONE, words="All done."))
    delivery = fold(resumed)
    assert [(1, 1, "completed"), (2, 2, "completed")] == [
        (s.session, s.attempts, s.ended.outcome) for s in delivery.sessions if s.ended
    ]
    assert delivery.ended is not None
    assert "all_passed" == delivery.ended.reason
    totals = RunState.of(resumed.entries).totals
    assert (2, 0.5) == (totals.rounds, totals.cost_usd)
    assert 2 == delivery.ended.sessions


def test_a_resumed_run_has_not_ended(tmp_path: Path) -> None:
    """The end in an earlier process is discarded once another one resumes."""
    run = deliver(tmp_path, TURNS[0], hanging(), seconds=7)
    journal = Journal.open(path_of(tmp_path))
    journal.append(ev.RunContinued(), at=run.entries[-1].at)
    journal.close()
    assert fold(latest(tmp_path)).ended is None


@pytest.mark.parametrize("cut", range(0, 80, 4))
def test_a_journal_that_ends_anywhere(tmp_path: Path, cut: int) -> None:
    """A journal cut at any entry gives exactly the information up to there."""
    run = deliver(tmp_path)
    entries = run.entries[: cut + 1]
    delivery = RunState.of(entries).delivery
    begun = [e.event.session for e in entries if isinstance(e.event, ev.DeliverSessionStarted)]
    assert begun == [s.session for s in delivery.sessions]
    told = [e.event for e in entries if isinstance(e.event, ev.DeliverSessionEnded)]
    assert told == [s.ended for s in delivery.sessions if s.ended]
    listings = [e.event for e in entries if isinstance(e.event, ev.DeliverablesListed)]
    assert (listings[-1] if listings else None) == delivery.listed
    assert any(isinstance(e.event, ev.DeliverEnded) for e in entries) == (
        delivery.ended is not None
    )


def test_the_named_entries_are_enough(tmp_path: Path) -> None:
    """A journal filtered to these tags gives the same result, and so do the totals."""
    whole = deliver(tmp_path, *TURNS[:1], hanging(), seconds=7)
    whole = go_on(tmp_path, *TURNS[3:], verify=True)
    path = path_of(tmp_path)
    assert fold(whole) == RunState.of(iter_entries(path, only=DIGESTED)).delivery
    assert (
        RunState.of(whole.entries).totals
        == RunState.of(read_journal(path, only=DIGESTED).entries).totals
    )


def test_sessions_count_as_iterations_and_agents(tmp_path: Path) -> None:
    """A run of five sessions has five iterations, five agents and their cost."""
    totals = RunState.of(deliver(tmp_path, verify=True).entries).totals
    assert (5, 5, 0, 1.25) == (totals.rounds, totals.agents, totals.tasks, totals.cost_usd)
