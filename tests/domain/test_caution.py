"""Which of several endings of a stage counts."""

from __future__ import annotations

from itertools import permutations

from cuggino.domain import most_cautious
from cuggino.events import (
    Approved,
    Done,
    NoMoreWork,
    PlanComplete,
    Progress,
    RequestChanges,
    SpecIssue,
)


class Shipped(Done):
    """An ending of a project's own."""


def test_the_ending_that_claims_least() -> None:
    """In any order it is the first of this list."""
    kinds = (SpecIssue, RequestChanges, Progress, PlanComplete, Done, NoMoreWork, Approved)
    endings = [kind(content="") for kind in kinds]
    for few in permutations(endings, 2):
        assert most_cautious(few) is min(few, key=endings.index)


def test_an_own_ending_is_like_a_plan() -> None:
    """Of equals the first one counts."""
    own, plan = Shipped(content=""), PlanComplete(content="")
    for few in ([own, plan], [plan, own]):
        assert most_cautious(few) is few[0]
    assert most_cautious([Done(content=""), own]) is own
    progress = Progress(content="")
    assert most_cautious([own, progress]) is progress
