"""Resumed runs: after a limit or an error, with which options, and those that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from cuggino import errors
from cuggino.events import AgentRetry, CheckCommandOutput, QuotaLifted, RunStarted, SessionEnded
from cuggino.loops import LoopRunOptions
from cuggino.loops.frame.resuming import resumed_options
from cuggino.runs import RunState
from cuggino.storage import Workspace, find_run, list_journals
from cuggino.testing import Story
from tests.loops.crashes import (
    CODING,
    DELIVER,
    LOOPS,
    PLAN_BUILD,
    SCENARIOS,
    SPEC_ISSUE,
    Uninterrupted,
    instead,
)
from tests.loops.durable_runs import COST, CodingProcess, Process, Turn
from tests.loops.supervised_loop import limited

Whole = Callable[[str], Uninterrupted]

LOGIN = errors.AgentFailed("log in", reason="auth")
NEVER = "0193b2c1-0000-7000-8000-000000000000"


def sampled(*quick: str, others: Iterable[str] = LOOPS) -> pytest.MarkDecorator:
    """Return the names of runs: these for the default suite, others for the second command."""
    rest = (
        pytest.param(name, marks=pytest.mark.real_agent) for name in others if name not in quick
    )
    return pytest.mark.parametrize("name", [*quick, *rest])


def cause(story: Story[Any]) -> Exception | None:
    """Return the error of a run without the phase that it happened in."""
    error = story.error
    return error.cause if isinstance(error, errors.LoopError) else error


def assert_refused(story: Story[Any], process: Process) -> errors.RunNotResumable:
    """Assert that the run was not resumed, and that nothing was started."""
    assert isinstance(story.error, errors.RunNotResumable)
    assert not isinstance(story.error, errors.StorageError)  # the disk is not to blame
    assert [] == process.agent.begun
    process.assert_released()
    return story.error


class TestAfterAnError:
    @pytest.mark.parametrize(
        ("name", "role", "number", "error"),
        [
            ("coding", "implementing", 2, limited()),
            ("deliver", "coding", 2, limited()),
            ("deliver", "verify", 2, LOGIN),
            ("plan_build", "plan", 1, limited()),
            ("plan_build", "build", 3, LOGIN),
        ],
    )
    def test_the_failed_session_is_repeated(
        self, name: str, role: str, number: int, error: Exception, whole: Whole, tmp_path: Path
    ) -> None:
        """A run that ended with a usage limit or a failed login resumes with that session."""
        run = whole(name)
        is_limit = isinstance(error, errors.QuotaExceeded)
        said = [SessionEnded(outcome="quota")] if is_limit else []
        turns = instead(run.scenario.turns, role, number, Turn(said, error=error))
        first = run.scenario.make(tmp_path, turns).run()
        again = run.scenario.make(tmp_path, turns)
        for story in (first, again.resume()):
            assert isinstance(cause(story), type(error)), story
            assert ("quota" if is_limit else "failed") == again.journal.state
        assert [("", role, number)] == again.agent.begun
        run.assert_resumes(run.scenario.process(tmp_path), at=5000.0)

    @pytest.mark.parametrize("name", ["coding", "plan_build"])
    def test_locks_of_a_killed_git(self, name: str, whole: Whole, tmp_path: Path) -> None:
        """Locks that were made since the run began are removed before it goes on."""
        run = whole(name)
        first = run.scenario.process(tmp_path)
        first.run(dispose_at=2.5)
        again = run.scenario.process(tmp_path)
        again.resume()
        assert [] == first.repository.freed
        assert [again.journal.first.at] == again.repository.freed

    @pytest.mark.parametrize(("name", "sessions"), [*zip(LOOPS, (4, 1, 4), strict=True)])
    def test_a_larger_budget(self, name: str, sessions: int, whole: Whole, tmp_path: Path) -> None:
        """A run whose budget is spent resumes with a larger one, but not with the same."""
        run = whole(name)
        first = run.scenario.process(tmp_path).run(budget=sessions * COST)
        assert isinstance(cause(first), errors.BudgetExceeded)
        again = run.scenario.process(tmp_path)
        assert "budget" == again.journal.state
        assert isinstance(cause(again.resume(budget=sessions * COST)), errors.BudgetExceeded)
        assert [] == again.agent.begun
        run.assert_resumes(run.scenario.process(tmp_path), at=5000.0, budget=100.0)

    def test_earlier_costs_count(self, tmp_path: Path) -> None:
        """A resumed run has only the part of its budget that it has not spent yet."""
        first = CODING.process(tmp_path)
        first.run(dispose_at=3.5, budget=4 * COST)
        assert 2 * COST == RunState.of(first.journal.entries).totals.cost_usd
        again = CODING.process(tmp_path)
        story = again.resume(budget=4 * COST)
        assert isinstance(cause(story), errors.BudgetExceeded)
        assert "budget" == again.journal.state
        assert 4 * COST == RunState.of(again.journal.entries).totals.cost_usd
        assert 2 == len(story.of(SessionEnded))

    def test_earlier_time_counts(self, tmp_path: Path) -> None:
        """The limit of a run's duration includes earlier processes, not the time between."""
        CODING.process(tmp_path).run(dispose_at=3.5, max_duration=4.25)
        again = CODING.process(tmp_path)
        story = again.resume(max_duration=4.25)
        assert isinstance(cause(story), errors.BudgetExceeded)
        assert 1000.75 == story.ended_at
        assert "budget" == again.journal.state
        assert ["Add one"] == again.repository.commits

    def test_a_commit_is_not_cut(self, tmp_path: Path) -> None:
        """A commit in progress when the time is up is finished; the next agent is not started."""
        CODING.process(tmp_path).run(dispose_at=3.5, max_duration=5.0)
        again = CODING.process(tmp_path)
        story = again.resume(max_duration=5.0)  # the commit takes from 1001 to 1002
        assert isinstance(cause(story), errors.BudgetExceeded)
        assert 1002.0 == story.ended_at
        assert ["Add one", "Add two"] == again.repository.commits
        assert [("", "implementing", 2)] == again.agent.begun


class TestOptions:
    def test_of_the_coding_loop(self, tmp_path: Path) -> None:
        """A resumed run keeps the course of its journal; the model is the current one."""
        CODING.process(tmp_path).run(dispose_at=3.5, review="by a person", model="old")
        again = CODING.process(tmp_path)
        story = again.resume(
            model="new", commit=False, max_iterations=1, check_command=None, slow=True
        )
        assert {"new"} == {options.model for options in again.agent.spawned}
        assert ["Add one", "Add two", "Add three"] == again.repository.commits
        # Before the third implementing agent and both reviewers; the second one's was done before.
        assert 3 == len(story.of(CheckCommandOutput))
        assert [
            ("", "implementing", 2),
            ("", "reviewing", 1),
            ("", "planning", 2),
            ("", "implementing", 3),
            ("", "reviewing", 2),
        ] == again.agent.begun
        assert "approved" == again.journal.state

    def test_of_the_deliverables_loop(self, tmp_path: Path) -> None:
        """A resumed run keeps workflow and limits; model and thinking are the current ones."""
        DELIVER.process(tmp_path).run(dispose_at=3.5, model="old", max_sessions=5, thinking=1024)
        again = DELIVER.process(tmp_path)
        ended = again.resume(
            model="new",
            max_sessions=50,
            thinking=4096,
            verify=False,
            max_retries=0,
            workflow="sync",
        ).last
        assert ("max_iterations", 5) == (ended.reason, ended.sessions)
        assert {"new"} == {options.model for options in again.agent.spawned}
        assert {4096} == {options.thinking for options in again.agent.spawned}
        roles = [options.role for options in again.agent.spawned]
        assert ["coding", "coding", "coding", "verify"] == roles

    def test_of_the_plan_build_loop(self, tmp_path: Path) -> None:
        """A resumed run keeps its phases and limits; the model is the current one."""
        PLAN_BUILD.process(tmp_path).run(dispose_at=0.5, model="old", max_sessions=3)
        again = PLAN_BUILD.process(tmp_path)
        ended = again.resume(
            model="new", max_sessions=50, start="build", max_retries=0, auto_commit=False
        ).last
        assert ("max_iterations", 3) == (ended.reason, ended.iterations)
        assert {"new"} == {options.model for options in again.agent.spawned}
        assert [("", "plan", 1), ("", "build", 1), ("", "build", 2)] == again.agent.begun

    @sampled("coding")
    def test_a_journal_switched_off_later(self, name: str, tmp_path: Path) -> None:
        """A run that has a journal keeps it, even if new runs would have none."""
        LOOPS[name].process(tmp_path).run(dispose_at=3.5)
        again = LOOPS[name].process(tmp_path)
        again.resume(journal=False)
        assert "approved" == again.journal.state
        assert LOOPS[name].make.roles[0] not in {role for _, role, n in again.agent.begun if n == 1}

    @pytest.mark.parametrize("name", LOOPS)
    def test_without_a_journal(self, name: str, tmp_path: Path) -> None:
        """A run without a journal leaves no file of one, nor of a session."""
        process = LOOPS[name].process(tmp_path)
        assert process.run(journal=False).completed
        assert not process.workspace.journal.exists()
        assert [] == list(process.workspace.wip.iterdir())
        process.assert_released()


class TestRefused:
    @sampled(*LOOPS, others=sorted(SCENARIOS.keys() - {"watch"}))
    def test_a_finished_run(self, name: str, whole: Whole, tmp_path: Path) -> None:
        """A run with a result is refused, by the search and by the loop; nothing changes."""
        run = whole(name)
        process = run.copy(tmp_path)
        before, folder, kind = process.journal, process.workspace.journal, run.scenario.kind
        assert kind != "watch"
        end = process.end()
        with pytest.raises(errors.RunNotResumable, match="has ended"):
            find_run(folder, before.run_id[:13], kind=kind)
        with pytest.raises(errors.RunNotResumable, match="no unfinished run"):
            find_run(folder, None, kind=kind)
        assert_refused(process.resume(), process)
        assert (before, end) == (process.journal, process.end())

    @sampled("deliver")
    def test_a_run_resumed_elsewhere(self, name: str, tmp_path: Path) -> None:
        """A journal that has grown since it was read is refused."""
        LOOPS[name].process(tmp_path).run(dispose_at=3.5)
        stale = LOOPS[name].process(tmp_path)
        known = stale.journal
        LOOPS[name].process(tmp_path).resume(dispose_at=1007.0)
        grown = stale.journal
        error = assert_refused(stale.resume(known=known), stale)
        assert "another process" in error.message
        assert grown == stale.journal

    @sampled("plan_build")
    def test_a_journal_of_other_stages(self, name: str, tmp_path: Path) -> None:
        """A journal whose stages have other names is refused with the two names."""
        role = LOOPS[name].make.roles[0]
        LOOPS[name].process(tmp_path).run(dispose_at=3.5)
        process = LOOPS[name].process(tmp_path)
        (path,) = list_journals(process.workspace.journal)
        text = path.read_text()
        assert 1 == text.count(f'"name":"{role}"')
        path.write_text(text.replace(f'"name":"{role}"', '"name":"dreaming"'))
        error = assert_refused(process.resume(), process)
        assert "dreaming" in error.message
        assert role in error.message

    def test_a_run_of_another_loop(self, tmp_path: Path) -> None:
        """The coding loop refuses a deliverables run, and its hint is the right command."""
        process = DELIVER.process(tmp_path)
        process.run(dispose_at=3.5)
        journal, folder = process.journal, process.workspace.journal
        assert journal == find_run(folder, None, kind="deliver")
        assert journal == find_run(folder, journal.run_id[:20], kind="deliver")
        with pytest.raises(
            errors.RunNotResumable, match="is a run of `cuggino deliver`"
        ) as refused:
            find_run(folder, journal.run_id)
        assert "cuggino deliver --resume" in (refused.value.hint or "")
        with pytest.raises(errors.RunNotResumable, match="no unfinished run"):
            find_run(folder, None)

    def test_options_of_another_version(self, tmp_path: Path) -> None:
        """Options that this version does not understand are refused by name."""
        started = RunStarted(
            run_id="1", kind="run", command="cuggino run", focus="x", options={"gate": "sometimes"}
        )
        current = LoopRunOptions(cwd=tmp_path, focus="x")
        with pytest.raises(
            errors.RunNotResumable, match="the options of run 1 cannot be used"
        ) as caught:
            resumed_options(current, started)
        assert "gate" in caught.value.message
        assert caught.value.hint


def test_files_of_finished_runs_are_removed(tmp_path: Path) -> None:
    """The next run removes files of runs that cannot be resumed; others stay."""
    workspace = Workspace(tmp_path)
    CODING.process(tmp_path).run()
    done = list_journals(workspace.journal)[0].stem
    CODING.process(tmp_path).run(dispose_at=3.5)
    unfinished = list_journals(workspace.journal)[0].stem
    assert done != unfinished
    for name in (f"{done}.md", f"{done}.review.md", f"{NEVER}.md", "notes.md"):
        (workspace.wip / name).touch()
    (workspace.journal / f"{NEVER}.jsonl").touch()
    assert CodingProcess(tmp_path, SPEC_ISSUE).run().completed
    left = {path.name.partition(".")[0] for path in workspace.wip.iterdir()}
    assert {unfinished, "notes"} == left
    assert not (workspace.journal / f"{NEVER}.jsonl").exists()
    assert 3 == len(list_journals(workspace.journal))


class TestWhatAStageHasUsedUp:
    """A killed process leaves its retries and waits counted, or a restart would renew them."""

    def test_retries(self, tmp_path: Path) -> None:
        """The stage continues with the retries that are left; whoever resumes later has all."""
        failure = Turn([], error=errors.AgentFailed("it crashed", reason="crash"))
        turns = instead(CODING.turns, "implementing", 1, failure)

        def attempts(story: Story[Any]) -> list[int]:
            return [event.attempt for event in story.of(AgentRetry)]

        def process() -> Process:
            return CODING.make(tmp_path, turns)

        options: dict[str, Any] = {"max_retries": 3, "retry_pause": 100.0}
        killed = process().run(dispose_at=200.0, **options)
        assert [1, 2] == attempts(killed)
        assert [3] == attempts(process().resume(at=1000.0, dispose_at=1050.0, **options))
        failed = process().resume(at=2000.0, **options)
        assert ([], errors.AgentFailed) == (attempts(failed), type(cause(failed)))
        assert [1, 2, 3] == attempts(process().resume(at=3000.0, **options))

    def test_waits_for_usage_limits(self, tmp_path: Path) -> None:
        """The stage has the waits that are left, by their number and by their time."""
        turns = instead(CODING.turns, "implementing", 1, Turn([], error=limited()))

        def process() -> Process:
            return CODING.make(tmp_path, turns)

        options: dict[str, Any] = {"wait_for_quota": True, "quota_margin": 0.0}
        killed = process().run(dispose_at=3000.0, **options)  # waits of 15, 30 and 60 minutes
        assert [900, 1800] == [event.waited for event in killed.of(QuotaLifted)]
        again = process().resume(at=9000.0, dispose_at=9000.0 + 950, **options, max_quota_waits=3)
        assert [900] == [event.waited for event in again.of(QuotaLifted)]
        assert isinstance(cause(again), errors.QuotaExceeded)
        later = process().resume(at=20_000.0, dispose_at=21_000.0, **options, max_quota_waits=3)
        assert [900] == [event.waited for event in later.of(QuotaLifted)]
        assert later.error is None
        short = process().resume(at=30_000.0, **options, max_quota_wait=1500.0)
        assert [] == short.of(QuotaLifted)
        assert isinstance(cause(short), errors.QuotaExceeded)
