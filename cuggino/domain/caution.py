"""Which of several endings of a stage counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cuggino.events import (
    Approved,
    Done,
    Event,
    NoMoreWork,
    PlanComplete,
    Progress,
    RequestChanges,
    SpecIssue,
)

MOST_CAUTIOUS_FIRST: tuple[type[Event], ...] = (
    SpecIssue,
    RequestChanges,
    Progress,
    PlanComplete,
    Done,
    NoMoreWork,
    Approved,
)

T = TypeVar("T", bound=Event)


def most_cautious(endings: Sequence[T]) -> T:
    """Return the ending that claims least, the first of equals; an own one is like a plan."""
    return min(endings, key=_boldness)


def _boldness(ending: Event) -> int:
    kinds = MOST_CAUTIOUS_FIRST
    return kinds.index(type(ending) if type(ending) in kinds else PlanComplete)
