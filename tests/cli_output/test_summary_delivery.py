"""The summary of a run of the deliverables loop."""

from __future__ import annotations

import pytest

from cuggino.domain.run_summary import RunOutcome, RunSummary
from cuggino.events import DeliverablesListed, DeliverableState, DeliverStatus
from cuggino_cli.output.summary import passed_text, summary_fragments
from cuggino_cli.output.theme import paint


def listed(*statuses: DeliverStatus) -> DeliverablesListed:
    return DeliverablesListed(
        deliverables=tuple(
            DeliverableState(id=str(n), description="x", status=status)
            for n, status in enumerate(statuses)
        )
    )


def lines(summary: RunSummary, *, journaled: bool = True) -> list[str]:
    fragments = summary_fragments(summary, duration_s=90, journaled=journaled)
    return paint(fragments, color=False).splitlines()[1:]


def test_rows() -> None:
    """It counts sessions and deliverables, not rounds, tasks and commits."""
    summary = RunSummary(rounds=2, agents=2, in_delivery=True, deliverables=listed("passed"))
    assert [
        "[Summary] Ended",
        "  Sessions 2",
        "  Passed   1/1 deliverables",
        "  Duration 1m 30s",
    ] == lines(summary)


@pytest.mark.parametrize(
    ("outcome", "said", "step"),
    [
        ("approved", "Approved", "review the changes: git status, git diff"),
        ("blocked", "All deliverables blocked", "see what blocks them"),
        ("max_iterations", "Max iterations reached", "give it more sessions"),
        ("stalled", "Stalled", "see what went wrong, refine SPEC.md"),
        ("interrupted", "Interrupted", "`cuggino deliver --resume` goes on where it stopped"),
    ],
)
def test_next(outcome: RunOutcome, said: str, step: str) -> None:
    """Each end has its next step."""
    first, *rest = lines(RunSummary(outcome=outcome, in_delivery=True))
    assert f"[Summary] {said}" == first
    assert rest[-1].startswith(f"  Next     {step}")


def test_without_a_journal() -> None:
    """What was not written down begins anew."""
    summary = RunSummary(outcome="interrupted", in_delivery=True)
    assert lines(summary, journaled=False)[-1].startswith(
        "  Next     `cuggino deliver` begins anew"
    )


def test_passed() -> None:
    """How many are passed, how many blocked; before anybody saw them it is unknown."""
    assert "1/3 deliverables (1 blocked)" == passed_text(listed("passed", "blocked", "pending"))
    assert "0/0 deliverables" == passed_text(listed())
    assert "unknown" == passed_text(None)
