"""Deliverables: the units of work of a project, and how far they are (AUT-090 to AUT-095)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal, get_args

DeliverableStatus = Literal["pending", "passed", "blocked"]

STATUSES: tuple[DeliverableStatus, ...] = get_args(DeliverableStatus)
"""All there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliverable:
    """A unit of work with the criteria by which it is accepted."""

    id: str
    description: str
    acceptance_criteria: tuple[str, ...]
    status: DeliverableStatus = "pending"
    deprecated_at: str | None = None
    """The day (YYYY-MM-DD) since which it is no longer wanted; such a one counts nowhere."""
    fields: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    """The object as its file had it: keys that are unknown here, and the order of all."""

    @property
    def is_active(self) -> bool:
        """Whether it is still wanted."""
        return self.deprecated_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliverables:
    """All deliverables of a project in the order of their creation; a change gives a new value.

    The counts and the questions leave deprecated ones out.
    """

    created_at: str
    """The day (YYYY-MM-DD) of the first."""
    updated_at: str
    """The day (YYYY-MM-DD) of the latest change."""
    items: tuple[Deliverable, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    """The object as its file had it, as with a deliverable."""

    @classmethod
    def none_yet(cls, today: date) -> Deliverables:
        """Those of a project that has none."""
        return cls(created_at=today.isoformat(), updated_at=today.isoformat())

    @property
    def active(self) -> tuple[Deliverable, ...]:
        """Those that are still wanted."""
        return tuple(item for item in self.items if item.is_active)

    @property
    def total(self) -> int:
        """How many are still wanted."""
        return len(self.active)

    @property
    def count_passed(self) -> int:
        """How many are passed."""
        return self._count("passed")

    @property
    def count_blocked(self) -> int:
        """How many are blocked."""
        return self._count("blocked")

    @property
    def count_deprecated(self) -> int:
        """How many are no longer wanted."""
        return len(self.items) - self.total

    @property
    def has_pending(self) -> bool:
        """Whether there is something left to do."""
        return self._count("pending") > 0

    @property
    def all_achievable_passed(self) -> bool:
        """Whether all that are not blocked are passed, and there is such a one (AUT-051)."""
        return not self.has_pending and self.count_passed > 0

    @property
    def all_blocked(self) -> bool:
        """Whether all are blocked, and there is one (AUT-051)."""
        return 0 < self.total == self.count_blocked

    def get(self, deliverable_id: str) -> Deliverable | None:
        """The one with this id, deprecated or not."""
        return next((item for item in self.items if item.id == deliverable_id), None)

    def added(self, new: Iterable[Deliverable]) -> Deliverables:
        """With these at the end.

        Raises:
            ValueError: an id is there twice.
        """
        items = (*self.items, *new)
        if len({item.id for item in items}) < len(items):
            raise ValueError("an id is there twice")
        return replace(self, items=items)

    def with_status(
        self, deliverable_id: str, status: DeliverableStatus, *, strict: bool = False
    ) -> Deliverables:
        """With this status of that one.

        Raises:
            KeyError: there is no such deliverable.
            ValueError: the transition is not legal; only when `strict`.
        """
        item = self._existing(deliverable_id)
        if not is_legal(item.status, status, strict=strict):
            raise ValueError(f"{item.status} cannot become {status}")
        return self._with(replace(item, status=status))

    def deprecated(self, deliverable_id: str, today: date) -> Deliverables:
        """With that one no longer wanted, as of today; its status is kept.

        Raises:
            KeyError: there is no such deliverable.
            ValueError: it is deprecated already.
        """
        item = self._existing(deliverable_id)
        if not item.is_active:
            raise ValueError(f"deprecated since {item.deprecated_at}")
        return self._with(replace(item, deprecated_at=today.isoformat()))

    def updated(self, today: date) -> Deliverables:
        """With today as the day of the latest change."""
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
    """Which deliverables were looked at again since the specification was compared (AUT-270)."""

    all: tuple[str, ...]
    """The ids that are to be verified."""
    verified: frozenset[str] = frozenset()
    """Those of them that are."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to verify; true without any."""
        return self.verified.issuperset(self.all)

    def marked(self, deliverable_id: str) -> Verification:
        """With that one verified.

        Raises:
            KeyError: it is not among those to be verified.
        """
        if deliverable_id not in self.all:
            raise KeyError(deliverable_id)
        return replace(self, verified=self.verified | {deliverable_id})


def is_legal(before: DeliverableStatus, after: DeliverableStatus, *, strict: bool = False) -> bool:
    """Whether a deliverable may go from one status to the other (AUT-091).

    Everything may, as a call that is refused in the middle of its work costs an agent dearly. When
    `strict`, what is passed must be pending again before it is blocked.
    """
    return not strict or (before, after) != ("passed", "blocked")
