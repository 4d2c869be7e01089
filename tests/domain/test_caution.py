"""The choice among several endings of a stage."""

from __future__ import annotations

from itertools import permutations

from cuggino import events as ev
from cuggino.domain import most_cautious


def test_the_ending_that_claims_least() -> None:
    """In any order it is the first of this list."""
    kinds = (
        ev.SpecIssue,
        ev.RequestChanges,
        ev.Progress,
        ev.PlanComplete,
        ev.Done,
        ev.NoMoreWork,
        ev.Approved,
    )
    endings = [kind(content="") for kind in kinds]
    for few in permutations(endings, 2):
        assert most_cautious(few) is min(few, key=endings.index)


def test_an_ending_of_another_kind_is_like_a_plan() -> None:
    """Of equals the first one counts."""
    own, plan = ev.Note(content=""), ev.PlanComplete(content="")
    for few in ([own, plan], [plan, own]):
        assert most_cautious(few) is few[0]
    assert most_cautious([ev.Done(content=""), own]) is own
    progress = ev.Progress(content="")
    assert most_cautious([own, progress]) is progress
