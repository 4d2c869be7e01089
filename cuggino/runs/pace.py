"""The pace of a project: the durations of its items and its check in the latest journals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from cuggino.errors import StorageError
from cuggino.events import CheckCommandOutput, CheckCommandStarted
from cuggino.runs.digests import digest_of
from cuggino.storage import Workspace
from cuggino.storage.journal import iter_entries, list_journals

_LATEST = 30
"""Journals that are read, the latest first."""

_FEWEST = 3
"""Items and checks below which the pace is unknown."""

_FINISHED = frozenset({"approved", "max_iterations"})
_CHECKS = frozenset({"CheckCommandStarted", "CheckCommandOutput"})


@dataclass(frozen=True, slots=True)
class Pace:
    """The median durations of an item and a check, in seconds."""

    item: float
    check: float

    @property
    def useful_slots(self) -> int:
        """The most slots that a watch can use without waiting for the checks of landings."""
        return max(1, int(self.item / max(self.check, 0.001)))


def read_pace(folder: Path) -> Pace | None:
    """Return the pace by the project's latest journals; None if they have too little data."""
    items: list[float] = []
    checks: list[float] = []
    with suppress(StorageError):
        for path in list_journals(Workspace(folder).journal)[:_LATEST]:
            with suppress(StorageError):
                run = digest_of(path)
                if run.started.item is not None and run.state in _FINISHED:
                    items.append(run.totals.duration)
                checks += _checks(path)
    if min(len(items), len(checks)) < _FEWEST:
        return None
    return Pace(item=median(items), check=median(checks))


def _checks(path: Path) -> Iterator[float]:
    """Yield the duration of each check; checks of several items may overlap."""
    begun: dict[str | None, datetime] = {}
    for entry in iter_entries(path, only=_CHECKS):
        event = entry.event
        if isinstance(event, CheckCommandStarted):
            begun[event.item] = entry.at
        elif isinstance(event, CheckCommandOutput) and (at := begun.pop(event.item, None)):
            yield (entry.at - at).total_seconds()
