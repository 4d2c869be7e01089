"""The summary of a run of the deliverables loop."""

from __future__ import annotations

import pytest

from cuggino.events import (
    DeliverablesListed,
    DeliverableState,
    DeliverEnded,
    DeliverExit,
    DeliverStatus,
)
from cuggino.runs import Delivery, RunState
from cuggino_cli.screen.fragments import paint
from cuggino_cli.screen.summary import passed_text, summary_fragments
from tests.domain.tallies import tally
from tests.runs.test_state import after


def listed(*statuses: DeliverStatus) -> DeliverablesListed:
    return DeliverablesListed(
        deliverables=tuple(
            DeliverableState(id=str(n), description="x", status=status)
            for n, status in enumerate(statuses)
        )
    )


def lines(summary: RunState, *, journaled: bool = True) -> list[str]:
    fragments = summary_fragments(summary, duration_s=90, journaled=journaled)
    return paint(fragments, color=False).splitlines()[1:]


def test_rows() -> None:
    """Sessions and deliverables are counted, not iterations, tasks and commits."""
    summary = RunState(
        kind="deliver",
        tally=tally(rounds=2, agents=2),
        delivery=Delivery(listed=listed("passed")),
    )
    assert [
        "[Summary] Ended",
        "  Sessions   2",
        "  Passed     1/1 deliverables",
        "  Duration   1m 30s",
    ] == lines(summary)


@pytest.mark.parametrize(
    ("reason", "said", "step"),
    [
        ("all_passed", "Approved", "review the changes: git status, git diff"),
        ("all_blocked", "All deliverables blocked", "remove what blocks them"),
        ("max_iterations", "Max iterations reached", "give it more sessions"),
        ("stalled", "Stalled", "see what went wrong, refine SPEC.md"),
        ("interrupted", "Interrupted", "`cuggino deliver --resume` continues where it stopped"),
    ],
)
def test_next(reason: DeliverExit, said: str, step: str) -> None:
    """Each end has its next step."""
    first, *rest = lines(after(DeliverEnded(reason=reason)))
    assert f"[Summary] {said}" == first
    assert rest[-1].startswith(f"  Next       {step}")


def test_without_a_journal() -> None:
    """An unrecorded run can only start over."""
    summary = after(DeliverEnded(reason="interrupted"))
    assert lines(summary, journaled=False)[-1].startswith(
        "  Next       `cuggino deliver` starts over"
    )


def test_passed() -> None:
    """Passed and blocked deliverables are counted; before the first listing they are unknown."""
    assert "1/3 deliverables (1 blocked)" == passed_text(listed("passed", "blocked", "pending"))
    assert "0/0 deliverables" == passed_text(listed())
    assert "unknown" == passed_text(None)
