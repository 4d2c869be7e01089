"""What a run of the deliverables loop has come to so far, as a fold over its journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, get_args

from cuggino.events import (
    DeliverablesListed,
    DeliverEnded,
    DeliverInstruction,
    DeliverSessionEnded,
    DeliverSessionStarted,
    DeliverStatus,
    RunContinued,
    StageStarted,
)
from cuggino.storage.journal_reader import Entry

DELIVERED = frozenset(
    kind.__name__
    for kind in (
        DeliverablesListed,
        DeliverEnded,
        DeliverSessionEnded,
        DeliverSessionStarted,
        RunContinued,
        StageStarted,
    )
)
"""The tags of what `fold_delivery` depends on: enough of a journal to read (`only`) to have it."""

_INSTRUCTIONS = frozenset(get_args(DeliverInstruction))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredSession:
    """A session of the loop; one that was cut off and done again is one session."""

    session: int
    instruction: DeliverInstruction
    model: str | None = None
    at: datetime
    """When it began, for the first time."""
    stage: str | None = None
    """The stage that it is, such as `coding#11`; None before its agent was started."""
    attempts: int = 0
    """How many processes have begun it."""
    ended: DeliverSessionEnded | None = None
    """How its last attempt ended; None while it works, or when it was cut off."""

    @property
    def is_failure(self) -> bool:
        """Whether it has failed, so that another one had to follow."""
        return self.ended is not None and self.ended.outcome in ("error", "execution_error")


class StatusChange(NamedTuple):
    """The status of a deliverable, from then on."""

    at: datetime
    session: int | None
    """The latest session until then, None before the first."""
    status: DeliverStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverableCourse:
    """A deliverable as it stands, and how it came to that."""

    id: str
    description: str
    status: DeliverStatus
    verified: bool = False
    is_wanted: bool = True
    """False for one that is in the list no longer."""
    changes: tuple[StatusChange, ...] = ()
    """In order; none when it has the status with which it was first seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What the loop has come to."""

    sessions: tuple[DeliveredSession, ...] = ()
    deliverables: tuple[DeliverableCourse, ...] = ()
    """Those that are wanted in their order, then those that no longer are."""
    listed: DeliverablesListed | None = None
    """The deliverables as last seen."""
    ended: DeliverEnded | None = None
    """How the latest process ended the loop; None while it works, or when it was killed."""

    @property
    def failures(self) -> int:
        """How many sessions have failed."""
        return sum(session.is_failure for session in self.sessions)


def fold_delivery(entries: Iterable[Entry]) -> Delivery:
    """What the run came to, all its processes together."""
    fold = _Fold()
    for entry in entries:
        fold.add(entry)
    return fold.result()


class _Fold:
    def __init__(self) -> None:
        self._sessions: dict[int, DeliveredSession] = {}
        self._present: int | None = None
        self._courses: dict[str, DeliverableCourse] = {}
        self._listed: DeliverablesListed | None = None
        self._ended: DeliverEnded | None = None

    def add(self, entry: Entry) -> None:
        match entry.event:
            case DeliverSessionStarted(session=number, instruction=instruction, model=model):
                self._present = number
                begun = DeliveredSession(
                    session=number, instruction=instruction, model=model, at=entry.at
                )
                self._sessions.setdefault(number, begun)
            case StageStarted(name=name) if name in _INSTRUCTIONS:
                self._begin(entry.stage)
            case DeliverSessionEnded(session=number) as ended if number in self._sessions:
                self._sessions[number] = replace(self._sessions[number], ended=ended)
            case DeliverablesListed() as listed:
                self._list(listed, entry.at)
            case RunContinued():
                self._ended = None
            case DeliverEnded() as ended_all:
                self._ended = ended_all
            case _:
                pass

    def _begin(self, stage: str | None) -> None:
        if self._present is not None:
            known = self._sessions[self._present]
            self._sessions[self._present] = replace(
                known, stage=stage, attempts=known.attempts + 1, ended=None
            )

    def _list(self, listed: DeliverablesListed, at: datetime) -> None:
        self._listed = listed
        courses: dict[str, DeliverableCourse] = {}
        for item in listed.deliverables:
            before = self._courses.pop(item.id, None)
            changes = before.changes if before is not None else ()
            if before is not None and before.status != item.status:
                changes = (*changes, StatusChange(at, self._present, item.status))
            courses[item.id] = DeliverableCourse(
                id=item.id,
                description=item.description,
                status=item.status,
                verified=item.verified,
                changes=changes,
            )
        gone = {name: replace(old, is_wanted=False) for name, old in self._courses.items()}
        self._courses = {**courses, **gone}

    def result(self) -> Delivery:
        return Delivery(
            sessions=tuple(self._sessions.values()),
            deliverables=tuple(self._courses.values()),
            listed=self._listed,
            ended=self._ended,
        )
