"""Coding loops without progress, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, defer, just, operators as ops

from cuggino.events import ImprovementsKept, LoopStalled, NoProgress
from cuggino.gate import State
from cuggino.loops import LoopService
from cuggino.loops.coding.convergence import REPLAN
from cuggino.stages import act
from cuggino.testing import AgentRun
from tests.loops.coding_loop import CodingLoop, FakeWork, fails, says
from tests.loops.supervised_loop import SupervisedMarbles, course, events_of


@pytest.fixture
def t() -> SupervisedMarbles:
    return SupervisedMarbles()


REVIEW = """
# Review

1. `src/login.py`: the password is written to the log
2. `src/page.py`: the title is missing
"""
OTHER_WORDS = """
- the password is still written to the log (`src/login.py:12`)
- the title is missing in `src/page.py`
"""


def loop_of(folder: Path, t: SupervisedMarbles, states: str, **kwargs: Any) -> CodingLoop:
    """A loop whose project has these states, one a letter: at the start, then after each agent."""
    return CodingLoop(
        folder,
        **{
            "planning": [t.agent("(c|)") for _ in states],
            "implementing": [t.agent("(g|)") for _ in states],
            "fingerprints": states,
            **kwargs,
        },
    )


class TestProgress:
    def test_replan_once_then_stop(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Iterations without changes lead to a new plan, then to the end of the loop."""
        loop = loop_of(tmp_path, t, "ABBBBB")
        seen = t.record(loop.run(progress_patience=2))
        work = ["ImplementingStart", "Progress"]
        plan = ["IterationStart", "PlanningStart", "PlanComplete"]
        expected = [*plan, *work * 3, "NoProgress", *plan, *work * 2, "NoProgress", "LoopStalled"]
        assert expected == [tag for _, tag in course(seen)]
        steps = [event for _, event in events_of(seen, NoProgress)]
        assert [
            NoProgress(kind="unchanged", agents=2, action="replan"),
            NoProgress(kind="unchanged", agents=2, action="stop"),
        ] == steps
        assert [False, True] == [REPLAN in prompt for prompt in loop.prompts("planning")]
        message = "2 agents in a row changed nothing, also after a new plan"
        stalled = LoopStalled(iteration=2, reason="no_progress", message=message)
        assert [stalled] == [event for _, event in events_of(seen, LoopStalled)]
        loop.assert_released()

    def test_a_new_plan_that_helps(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """After a new plan with progress the loop continues to its approval."""
        loop = loop_of(
            tmp_path,
            t,
            "AAAB",
            implementing=[t.agent("(g|)"), t.agent("(g|)"), t.agent("(d|)")],
            reviewing=[t.agent("(y|)")],
        )
        seen = t.record(loop.run(progress_patience=2))
        assert ["replan"] == [event.action for _, event in events_of(seen, NoProgress)]
        assert "LoopApproved" == course(seen)[-1][1]

    def test_a_replanned_round_counts_as_a_round(
        self, tmp_path: Path, t: SupervisedMarbles
    ) -> None:
        """A replanned iteration counts as one."""
        loop = loop_of(tmp_path, t, "AAA")
        seen = t.record(loop.run(progress_patience=2, max_iterations=1))
        assert ["NoProgress", "LoopMaxIterations"] == [tag for _, tag in course(seen)[-2:]]

    def test_tasks_that_only_look(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Agents that change nothing, each with another report, are no standstill."""
        t.events |= {str(n): says("NOTE", f"verified part {n}") for n in range(6)}
        implementing = [*(t.agent(f"({n}g|)") for n in range(6)), t.agent("(d|)")]
        loop = loop_of(
            tmp_path, t, "A" * 7 + "B", implementing=implementing, reviewing=[t.agent("(y|)")]
        )
        seen = t.record(loop.run(progress_patience=5))
        assert [] == events_of(seen, NoProgress)
        assert "LoopApproved" == course(seen)[-1][1]

    def test_new_words_for_nothing(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """An agent that always finds new words for having done nothing is stopped."""
        t.events |= {str(n): says("NOTE", f"more to do: {n}") for n in range(9)}
        implementing = [t.agent(f"({n}g|)") for n in range(9)]
        loop = loop_of(tmp_path, t, "A" * 10, implementing=implementing)
        seen = t.record(loop.run(progress_patience=2))
        agents = [event.agents for _, event in events_of(seen, NoProgress)]
        assert ([2, 2], "LoopStalled") == (agents, course(seen)[-1][1])
        assert 7 == [tag for _, tag in course(seen)].count("ImplementingStart")

    def test_folders_without_files(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Agents with the same report that make empty folders are no standstill."""

        def makes(name: str) -> Observable[Any]:
            made = act(partial((tmp_path / name).mkdir))
            return made.pipe(ops.flat_map(lambda _: t.agent("(g|)")))

        implementing = [*map(makes, "wxyz"), t.agent("(d|)")]
        loop = loop_of(
            tmp_path, t, "AAAAAB", implementing=implementing, reviewing=[t.agent("(y|)")]
        )
        seen = t.record(loop.run(progress_patience=3))
        assert [] == events_of(seen, NoProgress)
        assert "LoopApproved" == course(seen)[-1][1]


def rounds(t: SupervisedMarbles, *reviews: str) -> dict[str, Any]:
    """Return reviewing sessions that each request changes with a review file."""
    back: list[Observable[Any] | AgentRun] = [
        AgentRun(t.agent("(r|)"), review=review) for review in reviews
    ]
    return {
        "planning": [t.agent("(c|)") for _ in reviews],
        "implementing": [t.agent("(d|)") for _ in reviews],
        "reviewing": back,
    }


class TestReviews:
    def test_the_same_findings_again_and_again(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Recurring findings are stored for a person, and the loop stops."""
        loop = CodingLoop(tmp_path, **rounds(t, REVIEW, OTHER_WORDS, REVIEW, REVIEW))
        seen = t.record(loop.run(review_patience=3))
        ((_, stalled),) = events_of(seen, LoopStalled)
        assert (3, "same_findings") == (stalled.iteration, stalled.reason)
        assert "3 reviews in a row found the same" == stalled.message
        assert 2 == len(stalled.filenames)
        files = [(loop.workspace.tbd / name).read_text() for name in stalled.filenames]
        assert sorted(stalled.filenames) == sorted(p.name for p in loop.workspace.tbd.iterdir())
        assert "the password is written to the log" in files[0]
        assert "the title is missing" in files[1]
        assert (0, "LoopStalled") == course(seen)[-1]
        loop.assert_released()

    def test_the_gate_has_no_findings(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """The output of the gate is never taken for a repeated finding."""
        loop = CodingLoop(
            tmp_path,
            planning=[t.agent("(c|)") for _ in range(4)],
            implementing=[t.agent("(d|)") for _ in range(4)],
            reviewing=[t.agent("(y|)") for _ in range(4)],
            commands={"check": [fails(1) for _ in range(8)]},
        )
        options = {"check_command": "check", "gate": "block", "review_patience": 2}
        seen = t.record(loop.run(max_iterations=2, **options))
        assert [] == events_of(seen, LoopStalled)
        assert 2 == [tag for _, tag in course(seen)].count("ApprovalBlocked")
        assert "LoopMaxIterations" == course(seen)[-1][1]

    @pytest.mark.parametrize("named", ["src/page.py", "page.py", "src/"])
    def test_work_on_the_file_is_progress(
        self, tmp_path: Path, named: str, t: SupervisedMarbles
    ) -> None:
        """The same finding is repeated only while the file that it names stays the same."""
        page = tmp_path / "src" / "page.py"
        page.parent.mkdir()
        texts = iter("1233345")

        def reviewed() -> AgentRun:
            page_of = defer(lambda _: just(page.write_text(next(texts))))
            work = page_of.pipe(ops.flat_map(lambda _: t.agent("(r|)")))
            return AgentRun(work, review=f"- `{named}`: the title is missing")

        loop = CodingLoop(
            tmp_path,
            planning=[t.agent("(c|)") for _ in range(7)],
            implementing=[t.agent("(d|)") for _ in range(7)],
            reviewing=[reviewed() for _ in range(7)],
        )
        seen = t.record(loop.run(review_patience=3, max_iterations=7))
        ((_, stalled),) = events_of(seen, LoopStalled)
        assert (5, "same_findings") == (stalled.iteration, stalled.reason)
        assert (f"`{named}`: the title is missing",) == stalled.findings

    def test_another_run_takes_the_findings(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Without `store_findings` the event alone has them."""
        loop = CodingLoop(tmp_path, **rounds(t, REVIEW, REVIEW))
        seen = t.record(loop.run(review_patience=2, store_findings=False))
        ((_, stalled),) = events_of(seen, LoopStalled)
        assert ((), 2) == (stalled.filenames, len(stalled.findings))
        assert [] == list(loop.workspace.tbd.iterdir())


IMPROVEMENTS = """
## Improvements

- `src/page.py`: the title could be shorter
"""


class ChangingWork(FakeWork):
    """The work of a project where these files have changed before each review but the first."""

    def __init__(self, *changes: list[str]) -> None:
        super().__init__()
        self._states = (f"{number}" for number in count())
        self._changes = iter(changes)

    def state(self, commit: str | None = None) -> Observable[State | None]:
        number = next(self._states)
        return just({"tree": f"t{number}", "head": f"h{number}", "ignored": {}, "listed": []})

    def changed(self, start: State) -> Observable[State]:
        return just({"changed": next(self._changes), "tree": "t"})


def with_changes(loop: CodingLoop, *changes: list[str]) -> CodingLoop:
    """Return the loop in a project with these changes between reviews."""
    work = ChangingWork(*changes)
    loop.service = LoopService(replace(loop.service.services, work=work))
    return loop


class TestImprovements:
    def test_they_alone_approve(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """A review that requests only improvements approves; they are stored for a person."""
        loop = CodingLoop(tmp_path, **rounds(t, IMPROVEMENTS))
        seen = t.record(loop.run())
        assert ["ImprovementsKept", "LoopApproved"] == [tag for _, tag in course(seen)[-2:]]
        ((_, kept),) = events_of(seen, ImprovementsKept)
        assert kept.approves
        assert ("`src/page.py`: the title could be shorter",) == kept.findings
        (text,) = [(loop.workspace.tbd / name).read_text() for name in kept.filenames]
        assert "no specification demands it" in text
        loop.assert_released()

    def test_the_check_decides_all_the_same(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """With `gate: block` a failed check voids that approval, too."""
        loop = CodingLoop(
            tmp_path, **rounds(t, IMPROVEMENTS), commands={"check": [fails(1), fails(1)]}
        )
        seen = t.record(loop.run(max_iterations=1, check_command="check", gate="block"))
        assert ["ApprovalBlocked", "LoopMaxIterations"] == [tag for _, tag in course(seen)[-2:]]

    def test_with_an_approval(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """Improvements beside an approval are stored, and contradict it in no way."""
        loop = CodingLoop(
            tmp_path,
            planning=[t.agent("(c|)")],
            implementing=[t.agent("(d|)")],
            reviewing=[AgentRun(t.agent("(y|)"), review=IMPROVEMENTS)],
        )
        seen = t.record(loop.run())
        assert 1 == len(events_of(seen, ImprovementsKept))
        assert "LoopApproved" == course(seen)[-1][1]

    def test_they_are_not_planned(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """The planner gets the whole review, and is told which findings are improvements."""
        loop = CodingLoop(tmp_path, **rounds(t, f"{REVIEW}{IMPROVEMENTS}", REVIEW))
        seen = t.record(loop.run(max_iterations=2))
        assert [False] == [event.approves for _, event in events_of(seen, ImprovementsKept)]
        _, second = loop.prompts("planning")
        assert "the password is written to the log" in second
        assert "plan nothing for it; it is kept for a person: src/page.py: the title" in second

    def test_the_reviewer_gets_the_ledger(self, tmp_path: Path, t: SupervisedMarbles) -> None:
        """From the second review on the reviewer gets the findings and what has changed."""
        fewer = "- `src/page.py`: the title is missing"
        loop = with_changes(
            CodingLoop(tmp_path, **rounds(t, REVIEW, fewer, fewer)), ["src/login.py"], []
        )
        t.record(loop.run(max_iterations=3))
        first, second, third = loop.prompts("reviewing")
        assert "reviewed before" not in first
        assert "these files have changed: `src/login.py`. See `git diff --text t0 t1`" in second
        assert "`git log h0..HEAD`" in second
        assert "- F1 (open) `src/login.py`: src/login.py: the password is written" in second
        assert "Since the latest review nothing has changed." in third
        assert "- F1 (settled)" in third
        assert "- F2 (open, 2 reviews in a row) `src/page.py`" in third

    def test_a_changed_specification_makes_new_ground(
        self, tmp_path: Path, t: SupervisedMarbles
    ) -> None:
        """After a change of the specifications any file may be wrong."""
        new = "- `src/other.py`: the name of the function is odd"
        loop = with_changes(CodingLoop(tmp_path, **rounds(t, REVIEW, new)), [".specs/a.md"])
        seen = t.record(loop.run(max_iterations=2))
        assert [] == events_of(seen, ImprovementsKept)
