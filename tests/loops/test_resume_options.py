"""With what a run goes on: the rest of its budget, its own course, the limits of now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.errors import BudgetExceeded
from cuggino.events import CheckCommandOutput, SessionEnded
from cuggino.storage import list_journals, run_totals
from tests.loops.resumable import Process, Undisturbed, resumed, values
from tests.loops.turns import COST, TWO_ROUNDS


def cause_of(error: Any) -> Any:
    return getattr(error, "cause", None) or error


class TestBudget:
    def test_what_was_spent_before_counts(self, tmp_path: Path) -> None:
        """A run that goes on has only that part of its budget which it has not spent yet."""
        process = Process(tmp_path, TWO_ROUNDS)
        process.run(dispose_at=3.5, budget=4 * COST)
        spent = run_totals(process.journal).cost_usd
        again = Process(tmp_path, TWO_ROUNDS)
        seen = again.resume(budget=4 * COST)
        assert 2 * COST == spent
        assert isinstance(cause_of(seen[-1][2]), BudgetExceeded)
        assert "budget" == again.journal.state
        assert 4 * COST == run_totals(again.journal).cost_usd
        assert 2 == sum(isinstance(event, SessionEnded) for event in values(seen))

    def test_a_larger_one_goes_on(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A run whose budget was spent is resumed with a larger one, and ends as undisturbed."""
        story = Undisturbed(tmp_path, TWO_ROUNDS, monkeypatch)
        process = Process(tmp_path / "poor", TWO_ROUNDS)
        process.run(budget=3 * COST)
        assert "budget" == process.journal.state
        again = Process(process.folder, TWO_ROUNDS)
        _, log = resumed(again, monkeypatch, budget=99.0)
        assert story.process.repository.commits == again.repository.commits
        assert story.log == log
        assert "approved" == again.journal.state

    def test_the_time_that_it_took_before_counts(self, tmp_path: Path) -> None:
        """The limit of a run's duration holds for all its processes, not for the time between."""
        process = Process(tmp_path, TWO_ROUNDS)
        process.run(dispose_at=3.5, max_duration=4.25)
        again = Process(tmp_path, TWO_ROUNDS)
        seen = again.resume(max_duration=4.25)
        assert isinstance(cause_of(seen[-1][2]), BudgetExceeded)
        assert 1000.75 == seen[-1][0]
        assert "budget" == again.journal.state
        assert ["Add one"] == again.repository.commits

    def test_a_commit_is_not_cut(self, tmp_path: Path) -> None:
        """When the time is up during a commit, it is the agent after it that does not begin."""
        process = Process(tmp_path, TWO_ROUNDS)
        process.run(dispose_at=3.5, max_duration=5.0)
        again = Process(tmp_path, TWO_ROUNDS)
        seen = again.resume(max_duration=5.0)  # the commit takes from 1001 to 1002
        assert isinstance(cause_of(seen[-1][2]), BudgetExceeded)
        assert 1002.0 == seen[-1][0]
        assert ["Add one", "Add two"] == again.repository.commits
        assert [("implementing", 2)] == again.agent.spawned


class TestOptions:
    def test_limits_and_model_are_those_of_now(self, tmp_path: Path) -> None:
        """A resumed run uses the model it is told now, and the course of its beginning."""
        Process(tmp_path, TWO_ROUNDS).run(dispose_at=3.5, review="by a person")
        again = Process(tmp_path, TWO_ROUNDS)
        seen = again.resume(
            model="new", commit=False, max_iterations=1, check_command=None, slow=True
        )
        assert {"new"} == {options.model for options in again.agent.told}
        assert ["Add one", "Add two", "Add three"] == again.repository.commits
        # Before the third implementing agent and both reviewers; the second one's was done before.
        assert 3 == sum(isinstance(event, CheckCommandOutput) for event in values(seen))
        assert [
            ("implementing", 2),
            ("reviewing", 1),
            ("planning", 2),
            ("implementing", 3),
            ("reviewing", 2),
        ] == again.agent.spawned
        assert "approved" == again.journal.state

    def test_a_journal_that_is_switched_off_later(self, tmp_path: Path) -> None:
        """A run that has a journal keeps it, though new runs would have none."""
        Process(tmp_path, TWO_ROUNDS).run(dispose_at=3.5)
        again = Process(tmp_path, TWO_ROUNDS)
        again.resume(journal=False)
        assert "approved" == again.journal.state
        assert ("planning", 1) not in again.agent.spawned

    def test_without_a_journal(self, tmp_path: Path) -> None:
        """With `journal` off no file is left, neither of a journal nor of a session."""
        process = Process(tmp_path, TWO_ROUNDS)
        process.run(journal=False)
        assert [] == list_journals(process.workspace.journal)
        assert not process.workspace.journal.exists()
        assert [] == list(process.workspace.wip.iterdir())
        process.assert_released()
