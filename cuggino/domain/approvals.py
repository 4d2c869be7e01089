"""Approvals: what a person is asked to approve, and what an answer decides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from cuggino.domain.money import money
from cuggino.events import WaitingEnded

APPROVE, REJECT = "Approve", "Reject"
"""The first line of an answer, and the labels of buttons."""
_SPEND = "spend:"
_KIND = re.compile(rf"plan|landing|{_SPEND}\d+(?:\.\d+)?")
_YES = frozenset({"approve", "approved", "go", "ok", "yes"})
_NO = frozenset({"no", "reject", "rejected"})
_PLAN = "\n\n---\n\n"
"""Comes before the plan in the file of an approval."""


class Decision(NamedTuple):
    """A person's decision, or its absence."""

    outcome: Literal["approved", "rejected", "expired"]
    text: str = ""
    """The plan as it was approved, or the reasons for the rejection."""

    @property
    def answer(self) -> str:
        """Return the decision as the text of an answer."""
        word = APPROVE if self.outcome == "approved" else REJECT
        return f"{word}\n\n{self.text.strip()}".strip()

    @classmethod
    def of(cls, ended: WaitingEnded) -> Decision:
        """Return the decision with which a wait has ended; only an approval approves."""
        word, _, text = ended.answer.partition("\n")
        if word == APPROVE:
            return cls("approved", text.strip())
        if ended.outcome != "happened":
            return cls("expired", ended.answer)
        return cls("rejected", (text if word == REJECT else ended.answer).strip())

    @classmethod
    def in_words(cls, text: str) -> Decision:
        """Return the decision that a person wrote: any text but a plain yes or no is a reason."""
        word = text.strip().rstrip(".!").lower()
        if word in _YES:
            return cls("approved")
        return cls("rejected", "" if word in _NO else text.strip())


def check_approval(kind: str) -> str:
    """Return the kind of an approval.

    Raises:
        ValueError: it is unknown, or names no sum above 0.
    """
    if not _KIND.fullmatch(kind) or (kind.startswith(_SPEND) and not _sum_of(kind)):
        raise ValueError(
            f'{kind!r} is not an approval: write "plan", "landing" or a sum in US dollars such as '
            '"spend:20"'
        )
    return kind


def reached_sum(kinds: Iterable[str], spent: float) -> str:
    """Return the kind with the largest sum that is spent; "" without one."""
    sums = (kind for kind in kinds if kind.startswith(_SPEND) and _sum_of(kind) <= spent)
    return max(sums, key=_sum_of, default="")


def is_covered(kind: str, approved: Iterable[str]) -> bool:
    """Return whether one of the approved kinds has this sum or a larger one."""
    return any(one.startswith(_SPEND) and _sum_of(one) >= _sum_of(kind) for one in approved)


def approval_text(kind: str) -> str:
    """Return the subject of an approval, such as "the plan"."""
    if kind.startswith(_SPEND):
        return f"spending more than {money(_sum_of(kind))}"
    return {"plan": "the plan", "landing": "the work before it lands"}.get(kind, kind)


def approval_question(kind: str, about: str, text: str) -> str:
    """Return the text of the file of an approval: a title, what to do, and a plan or a summary."""
    of = f" ({about})" if about else ""
    separator = _PLAN if kind == "plan" else "\n\n"
    return f"# Approve {approval_text(kind)}?{of}\n\n{_ADVICE}{separator}{text.strip()}\n"


_ADVICE = '`cuggino approve` continues, `cuggino reject "why"` does not.'


def plan_in(question: str) -> str:
    """Return the plan in the text of an approval; "" if it is about something else."""
    return question.partition(_PLAN)[2].strip()


def _sum_of(kind: str) -> float:
    return float(kind.removeprefix(_SPEND))
