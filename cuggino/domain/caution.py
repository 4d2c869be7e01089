"""The choice between several endings of a stage: the most cautious one counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cuggino.events import Event

MOST_CAUTIOUS_FIRST = (
    "SpecIssue",
    "RequestChanges",
    "Waiting",
    "Progress",
    "PlanComplete",
    "Done",
    "NoMoreWork",
    "Approved",
)
"""The tags of the terminal markers."""

T = TypeVar("T", bound=Event)


def most_cautious(endings: Sequence[T]) -> T:
    """Return the first of the endings that claim least; a custom one ranks as `PlanComplete`."""
    return min(endings, key=_boldness)


def _boldness(ending: Event) -> int:
    tags = MOST_CAUTIOUS_FIRST
    return tags.index(ending.tag if ending.tag in tags else "PlanComplete")
