"""Which of several endings of a stage counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cuggino.events import Event

MOST_CAUTIOUS_FIRST = (
    "SpecIssue",
    "RequestChanges",
    "Progress",
    "PlanComplete",
    "Done",
    "NoMoreWork",
    "Approved",
)
"""The tags of the terminal markers."""

T = TypeVar("T", bound=Event)


def most_cautious(endings: Sequence[T]) -> T:
    """Return the ending that claims least, the first of equals; an own one is like a plan."""
    return min(endings, key=_boldness)


def _boldness(ending: Event) -> int:
    tags = MOST_CAUTIOUS_FIRST
    return tags.index(ending.tag if ending.tag in tags else "PlanComplete")
