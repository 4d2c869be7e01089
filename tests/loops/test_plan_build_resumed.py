"""Plan/build runs that ended before they were done, and those whose journal fails."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import (
    AgentFailed,
    BudgetExceeded,
    ConfigError,
    QuotaExceeded,
    RunNotResumable,
    StorageError,
)
from cuggino.events import (
    PlanBuildEnded,
    SessionEnded,
)
from cuggino.storage import (
    list_journals,
)
from cuggino.testing import no_leaks
from tests.loops.built import Turn
from tests.loops.built_ends import Undisturbed
from tests.loops.built_runs import COST, WHOLE, Process, Turns, works
from tests.loops.policed import limited
from tests.loops.test_journal_full import Disk

SHORT: Turns = {
    "plan": [works(J1="open")],
    "build": [works(ok="1", done=True, J1="done")],
}


def test_a_run_that_went_on_elsewhere(tmp_path: Path) -> None:
    """A journal that has grown since it was read is refused: its sessions are done already."""
    Process(tmp_path).run(dispose_at=3.5)
    stale = Process(tmp_path)
    known = stale.journal
    Process(tmp_path).resume(dispose_at=1007.0)
    grown = stale.journal
    (_, kind, error) = stale.resume(known=known).seen[-1]
    assert ("error", RunNotResumable) == (kind, type(error))
    assert grown == stale.journal


def _instead(phase: str, number: int, turn: Turn) -> Turns:
    changed = list(WHOLE[phase])
    changed[number - 1] = turn
    return {**WHOLE, phase: changed}


@pytest.mark.parametrize(("phase", "number"), [("plan", 1), ("build", 3)])
@pytest.mark.parametrize(
    ("error", "reason"),
    [(limited(), "quota_exceeded"), (AgentFailed("log in", reason="auth"), "failed")],
)
def test_after_what_every_session_would_meet(
    phase: str,
    number: int,
    error: Exception,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that ended with it goes on with the session that met it."""
    story = Undisturbed(tmp_path, monkeypatch, keep=False)
    said = (SessionEnded(outcome="quota"),) if isinstance(error, QuotaExceeded) else ()
    turns = _instead(phase, number, Turn({}, said, error))
    process = Process(tmp_path / "limited", turns)
    assert reason == process.run().ended.reason
    again = Process(process.folder, turns)
    assert reason == again.resume().ended.reason  # still
    story.assert_resumed(Process(process.folder), at=5000.0)


@pytest.mark.parametrize("sessions", [1, 2, 4, 7, 10])
def test_after_a_budget(sessions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose money was spent anywhere goes on with more of it, and not without."""
    story = Undisturbed(tmp_path, monkeypatch, keep=False)
    process = Process(tmp_path / "poor")
    budget = sessions * COST
    first = process.run(budget=budget)
    if budget > story.story.ended.cost_usd:
        assert "complete" == first.ended.reason
        return
    assert isinstance(first.error, BudgetExceeded) or budget == story.story.ended.cost_usd
    if first.error is not None:
        assert "budget_exceeded" == Process(process.folder).resume(budget=budget).ended.reason
        story.assert_resumed(Process(process.folder), at=5000.0, budget=100.0)


def test_after_a_protected_branch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was refused goes on when the branch is another, or when that is allowed."""
    ways: list[dict[str, Any]] = [{}, {"allow_main": True}]
    for n, given in enumerate(ways):
        folder = tmp_path / str(n)
        story = Undisturbed(folder, monkeypatch, keep=False)
        process = Process(folder / "cut")
        head = process.folder / ".git" / "HEAD"
        head.parent.mkdir()
        head.write_text("ref: refs/heads/main\n")
        assert isinstance(process.run().error, ConfigError)
        assert isinstance(Process(process.folder).resume().error, ConfigError)
        if not given:
            head.write_text("ref: refs/heads/bread\n")
        seen = Process(process.folder).resume(at=5000.0, **given)
        assert story.story.ended.reason == seen.ended.reason
        assert story.story.ended.iterations == seen.ended.iterations


def test_what_a_resumed_run_keeps(tmp_path: Path) -> None:
    """Its course is the one it was started with; models and limits are the present."""
    Process(tmp_path).run(dispose_at=0.5, model="old", max_sessions=3)
    process = Process(tmp_path)
    seen = process.resume(
        model="new", max_sessions=50, start="build", max_retries=0, auto_commit=False
    )
    assert ("max_iterations", 3) == (seen.ended.reason, seen.ended.iterations)
    assert {"new"} == {options.model for options in process.agent.spawned}
    assert [("plan", 1), ("build", 1), ("build", 2)] == process.agent.begun


@pytest.mark.parametrize(("taken", "once"), [(0.0, False), (0.5, True)])
def test_the_journal_cannot_be_written(
    taken: float, once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every append it is one error, behind which nothing runs; the run can go on after it."""
    story = Undisturbed(tmp_path, monkeypatch, SHORT, keep=False)
    with no_leaks():
        for nth in count(1):
            process = Process(tmp_path / f"full-{nth}", SHORT)
            disk = Disk(nth, taken=taken, once=once)
            with disk.used(monkeypatch):
                seen = process.run()
            if not disk.has_failed:
                break
            assert isinstance(seen.error, StorageError)
            assert "write journal" == seen.error.operation
            assert ["next"] * (len(seen.seen) - 1) + ["error"] == [k for _, k, _ in seen.seen]
            begun = list(process.agent.begun)
            process.t.scheduler.advance_to(2e6)
            assert begun == process.agent.begun  # a long time after it
            process.assert_released()
            assert (nth == 1) == ([] == list_journals(process.workspace.journal))
            assert bool(seen.of(PlanBuildEnded)) == (nth == len(story.journal.entries))
            story.assert_resumed(Process(process.folder, SHORT))
    assert len(story.journal.entries) + 1 == nth
