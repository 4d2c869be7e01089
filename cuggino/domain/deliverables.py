"""Deliverables: the units of work of a project, with their status (AUT-090 to AUT-095)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal, get_args

DeliverableStatus = Literal["pending", "passed", "blocked"]

DELIVERABLE_STATUSES: tuple[DeliverableStatus, ...] = get_args(DeliverableStatus)
"""All statuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliverable:
    """A unit of work with its acceptance criteria."""

    id: str
    description: str
    acceptance_criteria: tuple[str, ...]
    status: DeliverableStatus = "pending"
    deprecated_at: str | None = None
    """The day (YYYY-MM-DD) on which it was deprecated; it is excluded from all counts."""
    fields: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    """The object as in the file, with unknown keys and in the original order."""

    @property
    def is_active(self) -> bool:
        """Return whether it is not deprecated."""
        return self.deprecated_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliverables:
    """All deliverables of a project in order of creation; each change returns a new value.

    Counts and conditions exclude deprecated ones.
    """

    created_at: str
    """The day (YYYY-MM-DD) of the first deliverable."""
    updated_at: str
    """The day (YYYY-MM-DD) of the latest change."""
    items: tuple[Deliverable, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    """The object as in the file."""

    @classmethod
    def none_yet(cls, today: date) -> Deliverables:
        """Return the deliverables of a project without any."""
        return cls(created_at=today.isoformat(), updated_at=today.isoformat())

    @property
    def active(self) -> tuple[Deliverable, ...]:
        return tuple(item for item in self.items if item.is_active)

    @property
    def total(self) -> int:
        return len(self.active)

    @property
    def count_passed(self) -> int:
        return self._count("passed")

    @property
    def count_blocked(self) -> int:
        return self._count("blocked")

    @property
    def count_deprecated(self) -> int:
        return len(self.items) - self.total

    @property
    def has_pending(self) -> bool:
        return self._count("pending") > 0

    @property
    def all_achievable_passed(self) -> bool:
        """Return whether all that are not blocked are passed, and at least one is."""
        return not self.has_pending and self.count_passed > 0

    @property
    def all_blocked(self) -> bool:
        """Return whether all are blocked, and at least one is."""
        return 0 < self.total == self.count_blocked

    def get(self, deliverable_id: str) -> Deliverable | None:
        """Return the one with this id, deprecated or not, or None."""
        return next((item for item in self.items if item.id == deliverable_id), None)

    def added(self, new: Iterable[Deliverable]) -> Deliverables:
        """Return the deliverables with these at the end.

        Raises:
            ValueError: a duplicate id.
        """
        items = (*self.items, *new)
        if len({item.id for item in items}) < len(items):
            raise ValueError("duplicate id")
        return replace(self, items=items)

    def with_status(
        self, deliverable_id: str, status: DeliverableStatus, *, strict: bool = False
    ) -> Deliverables:
        """Return the deliverables with this status for that one.

        Raises:
            KeyError: the deliverable does not exist.
            ValueError: the transition is illegal; only if `strict`.
        """
        item = self._existing(deliverable_id)
        if not is_legal(item.status, status, strict=strict):
            raise ValueError(f"{item.status} cannot become {status}")
        return self._with(replace(item, status=status))

    def deprecated(self, deliverable_id: str, today: date) -> Deliverables:
        """Return the deliverables with that one deprecated as of today; its status is kept.

        Raises:
            KeyError: the deliverable does not exist.
            ValueError: it is already deprecated.
        """
        item = self._existing(deliverable_id)
        if not item.is_active:
            raise ValueError(f"deprecated since {item.deprecated_at}")
        return self._with(replace(item, deprecated_at=today.isoformat()))

    def updated(self, today: date) -> Deliverables:
        """Return the deliverables with today as the day of the latest change."""
        return replace(self, updated_at=today.isoformat())

    def _count(self, status: DeliverableStatus) -> int:
        return sum(item.status == status for item in self.active)

    def _existing(self, deliverable_id: str) -> Deliverable:
        item = self.get(deliverable_id)
        if item is None:
            raise KeyError(deliverable_id)
        return item

    def _with(self, changed: Deliverable) -> Deliverables:
        items = tuple(changed if item.id == changed.id else item for item in self.items)
        return replace(self, items=items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The deliverables to verify after comparing them with the specification."""

    all: tuple[str, ...]
    """The ids to verify."""
    verified: frozenset[str] = frozenset()
    """The ids already verified."""

    @property
    def is_complete(self) -> bool:
        """Return whether nothing is left to verify."""
        return self.verified.issuperset(self.all)

    def marked(self, deliverable_id: str) -> Verification:
        """Return the verification with that id verified.

        Raises:
            KeyError: it is not among the ids to verify.
        """
        if deliverable_id not in self.all:
            raise KeyError(deliverable_id)
        return replace(self, verified=self.verified | {deliverable_id})


def is_legal(before: DeliverableStatus, after: DeliverableStatus, *, strict: bool = False) -> bool:
    """Return whether a deliverable may change from one status to the other (AUT-091).

    By default every change is legal, because a refused call in the middle of its work costs an
    agent dearly. If `strict`, a passed deliverable must become pending before it is blocked.
    """
    return not strict or (before, after) != ("passed", "blocked")
