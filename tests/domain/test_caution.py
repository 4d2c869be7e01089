"""The choice among several endings of a stage."""

from __future__ import annotations

from itertools import permutations

from cuggino.domain import most_cautious
from cuggino.events import (
    Approved,
    Done,
    NoMoreWork,
    Note,
    PlanComplete,
    Progress,
    RequestChanges,
    SpecIssue,
)


def test_the_ending_that_claims_least() -> None:
    """In any order it is the first of this list."""
    kinds = (SpecIssue, RequestChanges, Progress, PlanComplete, Done, NoMoreWork, Approved)
    endings = [kind(content="") for kind in kinds]
    for few in permutations(endings, 2):
        assert most_cautious(few) is min(few, key=endings.index)


def test_an_ending_of_another_kind_is_like_a_plan() -> None:
    """Of equals the first one counts."""
    own, plan = Note(content=""), PlanComplete(content="")
    for few in ([own, plan], [plan, own]):
        assert most_cautious(few) is few[0]
    assert most_cautious([Done(content=""), own]) is own
    progress = Progress(content="")
    assert most_cautious([own, progress]) is progress
