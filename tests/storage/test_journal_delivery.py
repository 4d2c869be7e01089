"""What a run of the deliverables loop came to, by the journal that it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.events import (
    DeliverablesListed,
    DeliverEnded,
    DeliverSessionEnded,
    DeliverSessionStarted,
    RunContinued,
)
from cuggino.storage.journal import (
    COUNTED,
    Journal,
    JournalFile,
    iter_entries,
    read_journal,
    run_totals,
)
from cuggino.storage.journal_delivery import DELIVERED, Delivery, fold_delivery
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
    return fold_delivery(journal.entries)


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
    """Each deliverable has its status, and when and in which session it came to it."""
    delivery = fold(deliver(tmp_path, verify=True))
    assert [
        ("DL-1", "passed", True, [(10, 2, "passed")]),
        ("DL-2", "passed", True, [(15, 4, "passed")]),
        ("DL-3", "blocked", False, [(15, 4, "blocked")]),
    ] == [
        (x.id, x.status, x.verified, [(c.at.timestamp(), c.session, c.status) for c in x.changes])
        for x in delivery.deliverables
    ]


def test_what_was_done_before_the_run_has_no_change(tmp_path: Path) -> None:
    """A run that finds all done has no session and no change."""
    delivery = fold(deliver(tmp_path, turn(), start={"DL-1": "passed"}))
    (item,) = delivery.deliverables
    assert ("passed", ()) == (item.status, item.changes)
    assert () == delivery.sessions


def test_a_deliverable_that_is_wanted_no_longer_comes_last(tmp_path: Path) -> None:
    """One that a session takes from the list is kept with what it was."""
    dropped = turn(leaves={"DL-1": "passed (deprecated)", "DL-2": "passed"})
    start = {"DL-1": "pending", "DL-2": "pending"}
    delivery = fold(deliver(tmp_path, dropped, start=start))
    assert [("DL-2", True, "passed"), ("DL-1", False, "pending")] == [
        (x.id, x.is_wanted, x.status) for x in delivery.deliverables
    ]
    assert delivery.listed is not None
    assert ["DL-2"] == [x.id for x in delivery.listed.deliverables]


def test_a_session_that_two_processes_worked_on_is_one(tmp_path: Path) -> None:
    """Interrupted and gone on with, it has two attempts, and the end of the second one."""
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
    totals = run_totals(resumed)
    assert (2, 0.5) == (totals.rounds, totals.cost_usd)
    assert 2 == delivery.ended.sessions


def test_a_run_that_goes_on_has_not_ended(tmp_path: Path) -> None:
    """What an earlier process said of the end counts no more once another one goes on."""
    run = deliver(tmp_path, TURNS[0], hanging(), seconds=7)
    journal = Journal.open(path_of(tmp_path))
    journal.append(RunContinued(), at=run.entries[-1].at)
    journal.close()
    assert fold(latest(tmp_path)).ended is None


@pytest.mark.parametrize("cut", range(0, 80, 4))
def test_a_journal_that_ends_anywhere(tmp_path: Path, cut: int) -> None:
    """Whatever a killed process has left is told, and nothing else."""
    run = deliver(tmp_path)
    entries = run.entries[: cut + 1]
    delivery = fold_delivery(entries)
    begun = [e.event.session for e in entries if isinstance(e.event, DeliverSessionStarted)]
    assert begun == [s.session for s in delivery.sessions]
    told = [e.event for e in entries if isinstance(e.event, DeliverSessionEnded)]
    assert told == [s.ended for s in delivery.sessions if s.ended]
    listings = [e.event for e in entries if isinstance(e.event, DeliverablesListed)]
    assert (listings[-1] if listings else None) == delivery.listed
    assert any(isinstance(e.event, DeliverEnded) for e in entries) == (delivery.ended is not None)


def test_the_named_entries_are_enough(tmp_path: Path) -> None:
    """A journal read for these tags alone gives the same, and so do the totals for theirs."""
    whole = deliver(tmp_path, *TURNS[:1], hanging(), seconds=7)
    whole = go_on(tmp_path, *TURNS[3:], verify=True)
    path = path_of(tmp_path)
    assert fold(whole) == fold_delivery(iter_entries(path, only=DELIVERED))
    assert run_totals(whole) == run_totals(read_journal(path, only=COUNTED))


def test_sessions_count_as_rounds_and_agents(tmp_path: Path) -> None:
    """The totals of a run of five sessions are five rounds, five agents and their cost."""
    totals = run_totals(deliver(tmp_path, verify=True))
    assert (5, 5, 0, 1.25) == (totals.rounds, totals.agents, totals.tasks, totals.cost_usd)
