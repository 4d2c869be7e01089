"""What an answer to an approval decides, and the kinds of approvals."""

from __future__ import annotations

import pytest

from cuggino.domain import (
    Decision,
    approval_question,
    approval_text,
    check_approval,
    is_covered,
    plan_in,
    reached_sum,
)
from cuggino.events import PersonAnswers, WaitingEnded
from cuggino.events.waiting import WaitOutcome


@pytest.mark.parametrize(
    ("words", "decision"),
    [
        ("Approve", Decision("approved")),
        (" ok! ", Decision("approved")),
        ("Reject", Decision("rejected")),
        ("ok, but smaller", Decision("rejected", "ok, but smaller")),
        ("Approve\nonly the first", Decision("rejected", "Approve\nonly the first")),
    ],
)
def test_words(words: str, decision: Decision) -> None:
    """Only a plain yes approves; everything else is a reason."""
    assert decision == Decision.in_words(words)


@pytest.mark.parametrize(
    ("outcome", "answer", "decision"),
    [
        ("happened", "Approve", Decision("approved")),
        ("happened", "Approve\n\n# Plan", Decision("approved", "# Plan")),
        ("happened", "Reject\n\nNo.", Decision("rejected", "No.")),
        ("happened", "it was resolved", Decision("rejected", "it was resolved")),
        (
            "happened",
            "Approved by the plan itself",
            Decision("rejected", "Approved by the plan itself"),
        ),
        ("deadline", "Approve", Decision("approved")),
        ("deadline", "", Decision("expired")),
        ("failed", "no such folder", Decision("expired", "no such folder")),
    ],
)
def test_ends(outcome: WaitOutcome, answer: str, decision: Decision) -> None:
    """A wait ends with a decision; what is neither approval nor rejection approves nothing."""
    until = PersonAnswers(question="?", approves="plan")
    ended = WaitingEnded(until=until, outcome=outcome, answer=answer, waited=1.0)
    assert decision == Decision.of(ended)
    if outcome == "happened" and answer.startswith(("Approve\n", "Reject")):
        assert answer == decision.answer


@pytest.mark.parametrize("kind", ["", "plans", "spend", "spend:x", "spend:0", "spend:-1"])
def test_unknown_kinds(kind: str) -> None:
    """An unknown kind is an error that names the known ones."""
    with pytest.raises(ValueError, match='write "plan", "landing" or a sum'):
        check_approval(kind)


def test_sums() -> None:
    """The largest sum that is spent is asked for, and its approval covers smaller ones."""
    kinds = ["plan", "spend:5", "spend:20", "spend:50"]
    assert ["", "spend:5", "spend:20"] == [reached_sum(kinds, usd) for usd in (4.9, 5.0, 49.0)]
    assert is_covered("spend:5", {"spend:20"})
    assert not is_covered("spend:50", {"spend:20", "plan"})
    assert "spending more than $20.00" == approval_text("spend:20")


def test_the_file_of_a_plan() -> None:
    """The plan is found again, with rules of its own."""
    plan = "# Plan\n\n---\n\n- [ ] one"
    assert plan == plan_in(approval_question("plan", "001.md", plan))
    assert "" == plan_in(approval_question("spend:5", "", "Spent."))
