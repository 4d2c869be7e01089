"""The deliverables and sessions of a run of the deliver loop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, get_args

from cuggino import events as ev
from cuggino.domain import added_cost

_INSTRUCTIONS = frozenset(get_args(ev.DeliverInstruction))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredSession:
    """A session of the loop; one that was cut off and repeated is one session."""

    session: int
    instruction: ev.DeliverInstruction
    model: str | None = None
    at: datetime
    """The time of its first start."""
    stage: str | None = None
    """Its stage, such as `coding#11`; None before its agent was started."""
    attempts: int = 0
    """The number of times it was started."""
    ended: ev.DeliverSessionEnded | None = None
    """The end of its last attempt, with the cost and time of all that ended; None while it runs, or
    if it was cut off."""
    before: ev.DeliverSessionEnded | None = None
    """The same of the attempts before, which ended with a wait or were interrupted."""

    def after(self, ended: ev.DeliverSessionEnded) -> DeliveredSession:
        """Return the session after an attempt has ended."""
        before = self.before
        if before is None:
            return replace(self, ended=ended)
        whole = {
            "cost_usd": added_cost(before.cost_usd, ended.cost_usd),
            "cost_estimated": before.cost_estimated or ended.cost_estimated,
            "duration": before.duration + ended.duration,
        }
        return replace(self, ended=ended.model_copy(update=whole))

    @property
    def is_failure(self) -> bool:
        """Return whether it failed and had to be followed by another one."""
        return self.ended is not None and self.ended.outcome in ("error", "execution_error")


class StatusChange(NamedTuple):
    """A change of a deliverable's status."""

    at: datetime
    session: int | None
    """The latest session; None before the first."""
    status: ev.DeliverStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverableCourse:
    """A deliverable with the changes of its status."""

    id: str
    description: str
    status: ev.DeliverStatus
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
    listed: ev.DeliverablesListed | None = None
    """The latest list."""
    ended: ev.DeliverEnded | None = None
    """The end of the latest process; None while it works, or if it was killed."""

    @property
    def failures(self) -> int:
        """Return the number of failed sessions."""
        return sum(session.is_failure for session in self.sessions)

    def add(self, event: ev.Event, at: datetime, stage: str | None) -> Delivery:
        """Return the deliverables and sessions after an event."""
        match event:
            case ev.DeliverSessionStarted(session=number, instruction=instruction, model=model):
                if any(one.session == number for one in self.sessions):
                    return self
                begun = DeliveredSession(
                    session=number, instruction=instruction, model=model, at=at
                )
                return replace(self, sessions=(*self.sessions, begun))
            case ev.StageStarted(name=name) if name in _INSTRUCTIONS and self.sessions:
                last = self.sessions[-1]
                again = replace(
                    last,
                    stage=stage,
                    attempts=last.attempts + 1,
                    ended=None,
                    before=last.ended or last.before,
                )
                return self._with(again)
            case ev.DeliverSessionEnded(session=number):
                known = next((one for one in self.sessions if one.session == number), None)
                return self if known is None else self._with(known.after(event))
            case ev.DeliverablesListed():
                return self._listed(event, at)
            case ev.RunContinued():
                return replace(self, ended=None)
            case ev.DeliverEnded():
                return replace(self, ended=event)
            case _:
                return self

    def _with(self, session: DeliveredSession) -> Delivery:
        number = session.session
        changed = (session if one.session == number else one for one in self.sessions)
        return replace(self, sessions=tuple(changed))

    def _listed(self, listed: ev.DeliverablesListed, at: datetime) -> Delivery:
        before = {course.id: course for course in self.deliverables}
        session = self.sessions[-1].session if self.sessions else None
        courses: list[DeliverableCourse] = []
        for item in listed.deliverables:
            known = before.pop(item.id, None)
            changes = known.changes if known is not None else ()
            if known is not None and known.status != item.status:
                changes = (*changes, StatusChange(at, session, item.status))
            courses.append(
                DeliverableCourse(
                    id=item.id,
                    description=item.description,
                    status=item.status,
                    verified=item.verified,
                    changes=changes,
                )
            )
        gone = (replace(course, is_wanted=False) for course in before.values())
        return replace(self, deliverables=(*courses, *gone), listed=listed)
