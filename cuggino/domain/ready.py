"""The order in which the items of a backlog may begin, by what each comes after."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

from cuggino.domain.clock import Due

_SHOWN = 5
"""Maximum number of items of a cycle that are named."""


@dataclass(frozen=True, slots=True)
class ReadyOrder:
    """The items of a backlog that may begin, and those that must wait."""

    ready: tuple[str, ...] = ()
    """The items that may begin now, in order."""
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The items that wait for others to land, each with these others."""
    held: Mapping[str, str] = field(default_factory=dict)
    """The items that need a person, each with the reason."""
    later: Mapping[str, Due] = field(default_factory=dict)
    """The items whose time has not come."""
    landed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The landed predecessors of each item."""

    @property
    def reasons(self) -> dict[str, str]:
        """The items that are held, by what needs a person or until a time, with the reason."""
        return {**self.held, **{name: f"until {due.text}" for name, due in self.later.items()}}


def ready_order(
    items: Mapping[str, Collection[str]],
    *,
    landed: Collection[str] = (),
    held: Mapping[str, str] = MappingProxyType({}),
    later: Mapping[str, Due] = MappingProxyType({}),
) -> ReadyOrder:
    """Return which items may begin: those whose predecessors have landed, in the order given.

    `items` are the names in the backlog, each with the names under its `after`. `landed` are the
    names of items that are done. `held` are the items that cannot land until a person acts, in the
    backlog or not, with the reason ("is parked", "has a spec issue"). They hold those after them,
    as do unknown names and cycles; other items are not affected. `later` are the items whose time
    has not come.

    A name may lack its suffix: `login` is `login.md`. An item in the backlog has not landed, even
    if one of the same name has.
    """
    done = {name for name in landed if name not in items and name not in held}
    known = _Names([*items, *held, *done])
    before: dict[str, tuple[str, ...]] = {}
    behind: dict[str, tuple[str, ...]] = {}
    reasons = {name: reason for name, reason in held.items() if name in items}
    for name, after in items.items():
        found = {wanted: known.find(wanted) for wanted in after}
        others = dict.fromkeys(one for some in found.values() for one in some)
        before[name] = tuple(one for one in others if one not in done)
        behind[name] = tuple(one for one in others if one in done)
        unknown = [wanted for wanted, some in found.items() if not some]
        if unknown:
            verb = "is" if len(unknown) == 1 else "are"
            named = " and ".join(unknown)
            reasons.setdefault(name, f"comes after {named}, which {verb} not in the backlog")
    reasons |= _cycles({name: at for name, at in before.items() if name not in reasons})
    reasons |= _held_by(before, {**held, **reasons})
    return ReadyOrder(
        ready=tuple(
            name for name in items if name not in reasons and name not in later and not before[name]
        ),
        waiting={name: at for name, at in before.items() if at and name not in reasons},
        held={name: reasons[name] for name in items if name in reasons},
        later={name: due for name, due in later.items() if name not in reasons},
        landed={name: at for name, at in behind.items() if at},
    )


class _Names:
    """The names that exist, to be found with and without their suffix."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = set(names)
        self._by_stem: dict[str, list[str]] = {}
        for name in sorted(self._names):
            stem, dot, _ = name.rpartition(".")
            if dot and stem:
                self._by_stem.setdefault(stem, []).append(name)

    def find(self, name: str) -> list[str]:
        """Return the item of this name, or else all items with this name and a suffix."""
        return [name] if name in self._names else self._by_stem.get(name, [])


def _cycles(before: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the items that come after themselves, each with its cycle.

    Of cycles that share an item, one is reported; the items of the others come after that one.
    """
    found: dict[str, str] = {}
    left = _unsorted(before)
    walked: set[str] = set()
    for start in left:
        path: dict[str, int] = {}
        name = start
        while name not in walked:
            walked.add(name)
            path[name] = len(path)
            name = next(one for one in before[name] if one in left)
        if name in path:  # the path has come back to itself
            cycle = list(path)[path[name] :]
            for place, one in enumerate(cycle):
                found[one] = f"comes after itself: {_shown([*cycle[place:], *cycle[:place], one])}"
    return found


def _unsorted(before: Mapping[str, tuple[str, ...]]) -> dict[str, None]:
    """Return the items that come after a cycle, or are part of one, in order."""
    sorter = TopologicalSorter(before)
    with suppress(CycleError):  # it still sorts what no cycle blocks
        sorter.prepare()
    left = dict.fromkeys(before)
    while ready := sorter.get_ready():
        for name in ready:
            left.pop(name, None)
        sorter.done(*ready)
    return left


def _held_by(before: Mapping[str, tuple[str, ...]], held: Mapping[str, str]) -> dict[str, str]:
    """Return the items that come after held ones, directly or not, with the reason."""
    following: dict[str, list[str]] = {}
    for name, predecessors in before.items():
        for one in predecessors:
            following.setdefault(one, []).append(name)
    found: dict[str, str] = {}
    latest = [(name, f", which {reason}") for name, reason in held.items()]
    while latest:
        upcoming: list[tuple[str, str]] = []
        for held_one, why in latest:
            for name in following.get(held_one, ()):
                if name not in found and name not in held:
                    found[name] = f"comes after {held_one}{why}"
                    upcoming.append((name, ", which is held"))
        latest = upcoming
    return found


def _shown(around: list[str]) -> str:
    shown = around if len(around) <= _SHOWN + 1 else [*around[:_SHOWN], "...", around[-1]]
    return " -> ".join(shown)
