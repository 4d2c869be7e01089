"""The state of a run of the deliver loop, as a fold over its journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import NamedTuple, get_args

from pydantic import JsonValue, TypeAdapter

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
from cuggino.storage.journal.reader import Entry

_INSTRUCTIONS = frozenset(get_args(DeliverInstruction))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredSession:
    """A session of the loop; one that was cut off and repeated is one session."""

    session: int
    instruction: DeliverInstruction
    model: str | None = None
    at: datetime
    """The time of its first start."""
    stage: str | None = None
    """Its stage, such as `coding#11`; None before its agent was started."""
    attempts: int = 0
    """The number of times it was started."""
    ended: DeliverSessionEnded | None = None
    """The end of its last attempt; None while it runs, or if it was cut off."""

    @property
    def is_failure(self) -> bool:
        """Return whether it failed and had to be followed by another one."""
        return self.ended is not None and self.ended.outcome in ("error", "execution_error")


class StatusChange(NamedTuple):
    """A change of a deliverable's status."""

    at: datetime
    session: int | None
    """The latest session; None before the first."""
    status: DeliverStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverableCourse:
    """A deliverable with the changes of its status."""

    id: str
    description: str
    status: DeliverStatus
    verified: bool = False
    is_wanted: bool = True
    """False if it was removed from the list."""
    changes: tuple[StatusChange, ...] = ()
    """In order; empty if its status never changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The deliverables and sessions of a run."""

    sessions: tuple[DeliveredSession, ...] = ()
    deliverables: tuple[DeliverableCourse, ...] = ()
    """The listed ones in order, then those no longer listed."""
    listed: DeliverablesListed | None = None
    """The latest list."""
    ended: DeliverEnded | None = None
    """The end of the latest process; None while it works, or if it was killed."""

    @property
    def failures(self) -> int:
        """Return the number of failed sessions."""
        return sum(session.is_failure for session in self.sessions)


def fold_delivery(entries: Iterable[Entry]) -> Delivery:
    """Return the state of the run over all its processes."""
    fold = DeliveryFold()
    for entry in entries:
        fold.add(entry)
    return fold.result()


class DeliveryFold:
    """The state of the run by the entries added so far."""

    def __init__(self) -> None:
        self._sessions: dict[int, DeliveredSession] = {}
        self._present: int | None = None
        self._courses: dict[str, DeliverableCourse] = {}
        self._listed: DeliverablesListed | None = None
        self._ended: DeliverEnded | None = None

    def add(self, entry: Entry) -> None:
        """Count an entry."""
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

    def encoded(self) -> JsonValue:
        """Return the state as JSON."""
        return encode_delivery(self.result())

    def result(self) -> Delivery:
        """Return the state."""
        return Delivery(
            sessions=tuple(self._sessions.values()),
            deliverables=tuple(self._courses.values()),
            listed=self._listed,
            ended=self._ended,
        )


@cache
def _adapter() -> TypeAdapter[Delivery]:
    return TypeAdapter(Delivery)


def encode_delivery(delivery: Delivery) -> JsonValue:
    """Return the state of a run as JSON."""
    encoded: JsonValue = _adapter().dump_python(delivery, mode="json")
    return encoded


def decode_delivery(raw: JsonValue) -> Delivery:
    """Return the state of a run from what `encode_delivery` returned."""
    return _adapter().validate_python(raw)
