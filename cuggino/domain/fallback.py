"""When another agent takes over, which one, and until when; time is an argument."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Literal, TypeVar, assert_never

from cuggino.errors import AgentFailed, AgentNotFound, QuotaExceeded

A = TypeVar("A", bound=Hashable)

FIRST_PAUSE = 900.0
"""Seconds that an agent is not asked when nobody said how long; doubled with each failure."""

LONGEST_PAUSE = 5 * 3600.0

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)

Moment = Literal["at_once", "after_retries", "never"]


def when_to_fall_back(error: Exception) -> Moment:
    """When another agent may take over from one that failed so.

    At once from one that has no usage left, is not there, or has no account to work with: it stays
    so. From one that failed in a way that may pass, when its retries are used up: an outage that
    outlasts them is no end of a night's work while another agent is there. Never when another one
    would fail in the same way (a prompt that is too long, a bad request), when it was a decision
    (interrupted, a budget, the number of turns), or when there is no guard.
    """
    match error:
        case QuotaExceeded() | AgentNotFound():
            return "at_once"
        case AgentFailed(reason=reason):
            match reason:
                case "auth" | "billing":
                    return "at_once"
                case "connection" | "crash" | "overloaded" | "rate_limit" | "server" | "unknown":
                    return "after_retries"
                case "aborted" | "bad_request" | "max_turns" | "prompt_too_long":
                    return "never"
                case _ as never:
                    assert_never(never)
        case _:
            return "never"


def reason_of(error: Exception) -> str:
    """What `AgentFellBack` calls the failure."""
    match error:
        case QuotaExceeded():
            return "quota"
        case AgentNotFound():
            return "not_found"
        case AgentFailed(reason=reason):
            return reason
        case _:
            return type(error).__name__


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an agent is not asked at present."""

    until: datetime
    message: str
    resets_at: datetime | None = None
    """When its usage limit is lifted, if it said so."""
    is_quota: bool = False
    failures: int = 1
    """How often in a row."""


class Roster(Generic[A]):
    """Which agents are asked, and which are not until a later time.

    An agent that failed is not asked until its usage limit is lifted. When it did not say when, or
    failed for another reason, that is after a quarter of an hour, doubled with each failure in a
    row, up to five hours.
    """

    def __init__(self) -> None:
        self._holds: dict[A, Hold] = {}

    def hold(self, agent: A, error: Exception, now: datetime) -> Hold:
        """The agent failed so: do not ask it for a while; gives how long."""
        before = self._holds.get(agent)
        failures = before.failures + 1 if before is not None else 1
        is_quota = isinstance(error, QuotaExceeded)
        resets_at = error.resets_at if isinstance(error, QuotaExceeded) else None
        if resets_at is not None and _is_stale(before, resets_at, str(error), now):
            resets_at = None
        until = until_of(resets_at, now, failures)
        if until != resets_at:
            resets_at = None
        hold = Hold(until, str(error), resets_at, is_quota, failures)
        self._holds[agent] = hold
        return hold

    def served(self, agent: A) -> None:
        """The agent has ended a session well."""
        self._holds.pop(agent, None)

    def held(self, agent: A, now: datetime) -> Hold | None:
        """Why the agent is not asked now; None when it is."""
        hold = self._holds.get(agent)
        return hold if hold is not None and hold.until > now else None

    def free(self, agents: Sequence[A], now: datetime) -> A | None:
        """The first of them that is asked now."""
        return next((agent for agent in agents if self.held(agent, now) is None), None)

    def chosen(self, agents: Sequence[A], now: datetime) -> A:
        """The first that is asked now; else the one whose time comes first: it knows best itself.

        There is at least one.
        """
        return min(agents, key=lambda agent: self._until(agent, now))

    def limit(self, agents: Sequence[A], now: datetime) -> Hold | None:
        """That of those held for a usage limit which is over first; None when one is free."""
        if self.free(agents, now) is not None:
            return None
        held = [hold for agent in agents if (hold := self.held(agent, now)) is not None]
        limits = [hold for hold in held if hold.is_quota]
        return min(limits, key=lambda hold: hold.until, default=None)

    def _until(self, agent: A, now: datetime) -> datetime:
        """When the agent is asked, which is now unless something is against it."""
        hold = self.held(agent, now)
        return hold.until if hold is not None else now


def until_of(resets_at: datetime | None, now: datetime, failures: int = 1) -> datetime:
    """Until when an agent is not asked that said this; past times say nothing."""
    if resets_at is not None and resets_at > now:
        return resets_at
    pause = min(FIRST_PAUSE * 2.0 ** min(failures - 1, 32), LONGEST_PAUSE)
    return now + timedelta(seconds=pause)


def _is_stale(before: Hold | None, resets_at: datetime, message: str, now: datetime) -> bool:
    """`resets 3pm`, said again shortly after 3 pm, does not mean tomorrow."""
    if before is None or before.resets_at is None or before.message != message:
        return False
    is_next_day = abs(resets_at - before.resets_at - _DAY) <= _HOUR
    return is_next_day and now - before.resets_at <= _HOUR
