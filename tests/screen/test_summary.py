"""The summary at the end of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuggino.events import (
    HandsEnded,
    HandsStarted,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    RunOutcome,
    RunResult,
    SessionEnded,
    Usage,
    UsageUpdate,
    WatchFollowDelayed,
    WatchItemCompleted,
    WatchItemParked,
    WatchLanded,
    WatchSentBack,
)
from cuggino.runs import Question, RunState
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.summary import summary_fragments
from tests.domain.tallies import tally
from tests.runs.test_state import after

RESULTS: dict[RunOutcome, RunResult] = {
    "approved": LoopApproved(iteration=1),
    "spec_issue": LoopSpecIssue(iteration=1, content="unclear", filename="x.md"),
    "max_iterations": LoopMaxIterations(iteration=3, max_iterations=3),
}


def ended(outcome: RunOutcome | None) -> RunState:
    """Return a run with this result, or one that was ended from outside."""
    if outcome is None:
        return RunState()
    result = RESULTS.get(outcome)
    return after(result) if result is not None else RunState().ended(outcome)


def lines(summary: RunState, *, hint: str | None = None) -> list[str]:
    text = paint(summary_fragments(summary, duration_s=90, hint=hint), color=False)
    return [line.rstrip() for line in text.split("\n")]


def done(name: str) -> WatchItemCompleted:
    return WatchItemCompleted(filename=f"{name}.md")


def test_approved() -> None:
    """A full summary has outcome, counts, commits, cost, duration and the next step."""
    summary = RunState(
        result=RESULTS["approved"],
        tally=tally(
            rounds=2,
            tasks=3,
            agents=7,
            commits=(("a1b2c3d", "Add a"), ("b2c3d4e", "Add b")),
            cost_usd=1.25,
            cost_estimated=True,
        ),
        failed_commits=("git commit exited with code 1",),
        gate_changed=("check.sh", "tests/test_a.py"),
    )
    assert lines(summary) == [
        "",
        "[Summary] Approved",
        "  Iterations 2",
        "  Tasks      3",
        "  Agents     7",
        "  Commits    2",
        "             a1b2c3d Add a",
        "             b2c3d4e Add b",
        "             failed: git commit exited with code 1",
        "  Changed    check.sh (check, tests or specs)",
        "             tests/test_a.py (check, tests or specs)",
        "  Cost       ~$1.25",
        "  Duration   1m 30s",
        "  Next       review the commits: git log -p -2",
    ]


def test_unknown_cost_is_not_shown() -> None:
    """An unknown cost is left out; a cost of zero is not."""
    assert not any("Cost" in line for line in lines(RunState()))
    assert "  Cost       $0.00" in lines(RunState(tally=tally(cost_usd=0.0)))


def test_a_partial_cost() -> None:
    """The tokens of a session that was cut off may have no price."""
    known = SessionEnded(outcome="completed", cost_usd=1.0, usage=Usage(input_tokens=9))
    cut = UsageUpdate(usage=Usage(input_tokens=9))
    assert "  Cost       $1.00" in lines(after(known))
    assert "  Cost       at least $1.00" in lines(after(known, cut))


def test_items_of_a_watch() -> None:
    """Backlog items are shown if there are any."""
    assert "  Items      2" in lines(after(*map(done, "ab")))
    assert not any("Items" in line for line in lines(RunState()))


def test_landings_of_slots() -> None:
    """Landed items are listed, not the commits in slots; those sent back are counted."""
    commits = (("a1b2c3d", "In a slot"),)
    told = lines(
        after(
            WatchLanded(filename="001-export.md", commit="f00ba47a", trunk_was="e"),
            done("001-export"),
            start=RunState(kind="watch", tally=tally(rounds=1, commits=commits)),
        )
    )
    assert ["  Items      1", "  Landed     1", "             f00ba47 001-export"] == told[2:5]
    assert not any("a1b2c3d" in line or "Commits" in line for line in told)
    assert "  Landed     0, 1 sent back" in lines(
        after(
            WatchSentBack(filename="a.md", reason="check", returns=1), start=RunState(kind="watch")
        )
    )
    assert not any("Landed" in line for line in lines(after(*map(done, "ab"))))


def test_hands() -> None:
    """A run with hands lists its commits, and the tasks that were left undone."""
    told = lines(
        after(
            HandsStarted(iteration=1, hands=2, tasks=3),
            WatchLanded(filename="task-1.1", commit="f00ba47a", trunk_was="e"),
            HandsEnded(iteration=1, landed=("task-1.1",), undone={"task-1.2": "no", "b": "x"}),
        )
    )
    assert {"  Undone     task-1.2: no", "             b: x"} < set(told)
    assert not any("Landed" in line for line in told)


@pytest.mark.parametrize("has_landed", [True, False])
def test_attempts(has_landed: bool) -> None:
    """Of a run with several attempts, the commits of those that have lost are not listed."""
    landed = WatchLanded(filename="attempt-2", commit="d4e5f6a", trunk_was="c3d4e5f")
    delayed = WatchFollowDelayed(branch="main", commit="d4e5f6a", reason="a file is in the way")
    before = after(*[landed, delayed] * has_landed, LoopApproved(iteration=1))
    summary = replace(before, kind="run", slots=3, tally=tally(commits=(("a1b2c3d", "Lie"),)))
    shown = lines(summary)
    assert ("  Landed     1" in shown, "  Landed     0" in shown) == (has_landed, not has_landed)
    assert not [line for line in shown if "Lie" in line]
    review = "git log -p -m --first-parent -1 d4e5f6a; then: git merge refs/cuggino/trunk"
    assert (f"  Next       review what has landed: {review}" in shown) == has_landed


def test_what_waits_after_a_watch() -> None:
    """The last facts of a night are the questions and parked items that wait for a person."""
    end = "`cuggino status` lists what waits for you"
    asks = tuple(Question(filename=f"{name}.md", title=name) for name in "ab")
    both = after(
        WatchItemParked(filename="c.md", reason="hard"),
        start=RunState(kind="watch", questions=asks),
    )
    assert "  Parked     1" in lines(both)
    assert f"  Waiting    2 questions, 1 parked: {end}" in lines(both)
    asked = RunState(kind="watch", questions=asks[:1])
    assert f"  Waiting    1 question: {end}" in lines(asked)
    assert not any("Waiting" in line for line in lines(RunState(kind="watch")))


GO_ON = "             `cuggino run --resume` continues where it stopped"


@pytest.mark.parametrize(
    ("expected", "outcome", "hint"),
    [
        (["  Next       review the changes: git status, git diff"], "approved", None),
        (
            [
                "  Next       read .cuggino/spec-issues/x.md",
                "             answer it with `cuggino issues answer`, then run again",
            ],
            "spec_issue",
            None,
        ),
        (
            ["  Next       raise maxIterations, or refine the specs, then run again"],
            "max_iterations",
            None,
        ),
        (["  Next       see the error", f"{'':13}go on by this"], "failed", "go on by this"),
        (["  Next       see the error", GO_ON], "failed", None),
        (["  Next       " + GO_ON.strip()], "interrupted", None),
        (["  Next       go on by this"], "interrupted", "go on by this"),
        ([], None, None),
    ],
)
def test_next_step(expected: list[str], outcome: RunOutcome | None, hint: str | None) -> None:
    """Each outcome has a next step; a hint on resuming replaces the general advice."""
    shown = lines(ended(outcome), hint=hint)
    start = shown.index("  Duration   1m 30s") + 1
    assert expected == shown[start:]


@pytest.mark.parametrize(
    ("expected", "outcome"),
    [
        ("\x1b[1m\x1b[32m[Summary] Approved\x1b[0m", "approved"),
        ("\x1b[1m\x1b[31m[Summary] Stopped at a spec issue\x1b[0m", "spec_issue"),
        ("\x1b[1m\x1b[33m[Summary] Max iterations reached\x1b[0m", "max_iterations"),
        ("\x1b[1;31m[Summary] Failed\x1b[0m", "failed"),
        ("\x1b[33m[Summary] Interrupted\x1b[0m", "interrupted"),
        ("\x1b[1m[Summary] Ended\x1b[0m", None),
    ],
)
def test_outcome_has_its_color(expected: str, outcome: RunOutcome | None) -> None:
    """The outcome has the text and color of its events."""
    summary = ended(outcome)
    assert expected == paint(summary_fragments(summary, duration_s=0), color=True).split("\n")[1]
