"""Deliverables runs that ended before they were done, and those that nobody can go on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.errors import AgentFailed, BudgetExceeded, QuotaExceeded, RunNotResumable
from cuggino.events import SessionEnded
from cuggino.storage import Workspace, find_run
from tests.loops.delivered import Turn
from tests.loops.delivered_runs import COST, Process, Turns, Undisturbed, end_of
from tests.loops.delivered_stories import STORIES, WHOLE, assert_resumed
from tests.loops.policed import limited


@pytest.fixture(params=STORIES)
def story(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Undisturbed:
    turns, options, reason, sessions = STORIES[request.param]
    story = Undisturbed(tmp_path, turns, monkeypatch, **options)
    assert (reason, sessions) == (story.story.ended.reason, story.story.ended.sessions)
    assert story.end.sessions == story.process.agent.begun
    assert [] == story.end.left
    return story


def _without(turns: Turns, role: str, number: int, instead: Turn) -> Turns:
    """The turns with another one in that place."""
    changed = list(turns[role])
    changed[number - 1] = instead
    return {**turns, role: changed}


@pytest.mark.parametrize(("role", "number"), [("coding", 2), ("verify", 2), ("initializer", 1)])
def test_after_the_usage_limit(
    role: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ended with it goes on with the session that met it."""
    story = Undisturbed(tmp_path, WHOLE, monkeypatch)
    limit = Turn((SessionEnded(outcome="quota"),), None, limited())
    process = Process(tmp_path / "limited", _without(WHOLE, role, number, limit))
    first = process.run()
    assert "quota_exceeded" == first.ended.reason
    assert isinstance(first.error, QuotaExceeded)
    assert "quota" == process.journal.state
    again = Process(process.folder, _without(WHOLE, role, number, limit))
    assert "quota_exceeded" == again.resume().ended.reason  # still
    last = Process(process.folder, WHOLE)
    assert_resumed(story, last, at=5000.0)


def test_after_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose money was spent goes on with more of it, and not without."""
    story = Undisturbed(tmp_path, WHOLE, monkeypatch)
    process = Process(tmp_path / "poor", WHOLE)
    first = process.run(budget=3 * COST)
    assert ("budget_exceeded", 4) == (first.ended.reason, first.ended.sessions)
    assert isinstance(first.error, BudgetExceeded)
    assert "budget" == process.journal.state
    again = Process(process.folder, WHOLE)
    assert ("budget_exceeded", 4) == (
        (seen := again.resume(budget=3 * COST)).ended.reason,
        seen.ended.sessions,
    )
    assert [] == again.agent.begun
    last = Process(process.folder, WHOLE)
    assert_resumed(story, last, at=5000.0, budget=100.0)


def test_after_what_every_session_would_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that failed for want of a login goes on after it."""
    story = Undisturbed(tmp_path, WHOLE, monkeypatch)
    denied = Turn((), None, AgentFailed("log in", reason="auth"))
    process = Process(tmp_path / "denied", _without(WHOLE, "coding", 3, denied))
    assert "failed" == process.run().ended.reason
    assert "failed" == process.journal.state
    assert_resumed(story, Process(process.folder, WHOLE))


def test_a_run_that_has_ended(story: Undisturbed) -> None:
    """It is refused, by the search and by the loop, and nothing is written or removed."""
    before, end = story.journal, story.end
    folder = story.process.workspace.journal
    with pytest.raises(RunNotResumable, match="has ended"):
        find_run(folder, before.run_id[:13], kind="deliver")
    with pytest.raises(RunNotResumable, match="no unfinished run"):
        find_run(folder, None, kind="deliver")
    again = Process(story.process.folder, story.turns)
    seen = again.resume().seen
    assert [("error", RunNotResumable)] == [(kind, type(value)) for _, kind, value in seen]
    assert [] == again.agent.begun
    assert (before, end) == (again.journal, end_of(again))
    again.assert_released()


def test_a_run_of_the_other_loop(tmp_path: Path) -> None:
    """Neither loop goes on with a run of the other, and says with what to go on."""
    Process(tmp_path, WHOLE).run(dispose_at=3.5)
    journal = Process(tmp_path, WHOLE).journal
    folder = Workspace(tmp_path).journal
    assert journal == find_run(folder, None, kind="deliver")
    assert journal == find_run(folder, journal.run_id[:20], kind="deliver")
    with pytest.raises(RunNotResumable, match="is a run of `cuggino deliver`") as refused:
        find_run(folder, journal.run_id)
    assert "cuggino deliver --resume" in (refused.value.hint or "")
    with pytest.raises(RunNotResumable, match="no unfinished run"):
        find_run(folder, None)


def test_a_run_that_went_on_elsewhere(tmp_path: Path) -> None:
    """A journal that has grown since it was read is refused: its sessions are done already."""
    Process(tmp_path, WHOLE).run(dispose_at=3.5)
    stale = Process(tmp_path, WHOLE)
    known = stale.journal
    Process(tmp_path, WHOLE).resume(dispose_at=1007.0)
    grown = stale.journal
    (_, kind, error) = stale.resume(known=known).seen[-1]
    assert ("error", RunNotResumable) == (kind, type(error))
    assert [] == stale.agent.begun
    assert grown == stale.journal


def test_what_a_resumed_run_keeps(tmp_path: Path) -> None:
    """Its course is the one it was started with; model, thinking and limits are the present."""
    Process(tmp_path, WHOLE).run(dispose_at=3.5, model="old", max_sessions=5, thinking=1024)
    process = Process(tmp_path, WHOLE)
    seen = process.resume(
        model="new", max_sessions=50, thinking=4096, verify=False, max_retries=0, workflow="sync"
    )
    assert ("max_iterations", 5) == (seen.ended.reason, seen.ended.sessions)
    assert {"new"} == {options.model for options in process.agent.spawned}
    assert {4096} == {options.thinking for options in process.agent.spawned}
    assert ["coding", "coding", "coding", "verify"] == [
        str(options.role) for options in process.agent.spawned
    ]
