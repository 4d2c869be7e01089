"""When another agent takes over, which one, and until when; time is an argument."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Literal, TypeVar, assert_never

from cuggino.errors import AgentFailed, AgentNotFound, QuotaExceeded
from cuggino.events import AgentFellBack, Event

A = TypeVar("A", bound=Hashable)

FIRST_PAUSE = 900.0
"""Seconds that an agent is not asked when nobody said how long; doubled with each failure."""

LONGEST_PAUSE = 5 * 3600.0

_LONGEST_ROW = 6
"""Failures in a row after which the pause does not grow any more."""
_APART = 1.0
"""Seconds that may lie between a failure and the moment at which it was told."""

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
        self._met: set[A] = set()
        """Those of which it was seen here how a session ended."""

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
        self._met.add(agent)
        return hold

    def served(self, agent: A) -> None:
        """The agent has ended a session well."""
        self._holds.pop(agent, None)
        self._met.add(agent)

    def restore(self, agent: A, hold: Hold) -> None:
        """It failed so in an earlier process; what was seen here since then counts more.

        Of several such failures the one counts that holds longest.
        """
        before = self._holds.get(agent)
        if agent not in self._met and (before is None or before.until < hold.until):
            self._holds[agent] = hold

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

    def left_over(
        self, names: Mapping[A, str], failed: A, error: Exception, now: datetime
    ) -> Exception:
        """What ends a session when `failed` did so and none of `names` is free.

        It is the usage limit that is over first, if one of them has met one, else the error.
        """
        holds = {agent: hold for agent in names if (hold := self.held(agent, now)) is not None}
        limit = self.limit(tuple(holds), now)
        if limit is None:
            return error
        messages = {failed: str(error), **{agent: hold.message for agent, hold in holds.items()}}
        words = "; ".join(f"{name}: {messages[agent]}" for agent, name in names.items())
        left = QuotaExceeded(f"no agent is left ({words})", resets_at=limit.resets_at)
        left.__cause__ = error
        return left

    def _until(self, agent: A, now: datetime) -> datetime:
        """When the agent is asked, which is now unless something is against it."""
        hold = self.held(agent, now)
        return hold.until if hold is not None else now


def until_of(resets_at: datetime | None, now: datetime, failures: int = 1) -> datetime:
    """Until when an agent is not asked that said this; past times say nothing."""
    if resets_at is not None and resets_at > now:
        return resets_at
    return now + timedelta(seconds=_pause(failures))


def _pause(failures: int) -> float:
    return min(FIRST_PAUSE * 2.0 ** min(failures - 1, 32), LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class SetAside:
    """An agent that is not asked at present, by the names under which that was told."""

    role: str
    agent: str
    hold: Hold


def set_aside(told: Iterable[tuple[datetime, Event]], now: datetime) -> tuple[SetAside, ...]:
    """Who is not asked at `now` yet, by what was told and when; the latest failure comes last.

    A time that nobody knew is the pause that was told, which is over when it would have been. The
    last one of a row, behind which nobody took over, is not among them: nothing told of its time.
    """
    known: dict[tuple[str, str], SetAside] = {}
    for at, event in told:
        if isinstance(event, AgentFellBack):
            here = (event.role, event.from_agent)
            # Who takes over is not held, whatever was told of it before.
            known = {key: one for key, one in known.items() if key[1] != event.to_agent}
            known.pop(here, None)
            known[here] = SetAside(event.role, event.from_agent, _hold_of(event, at))
    return tuple(one for one in known.values() if one.hold.until > now)


def _hold_of(event: AgentFellBack, at: datetime) -> Hold:
    """The hold that was told; one for exactly such a pause is taken for one without a time."""
    until = event.until or until_of(None, at)
    seconds = (until - at).total_seconds()
    known = range(1, _LONGEST_ROW + 1)
    failures = next((n for n in known if abs(_pause(n) - seconds) <= _APART), None)
    is_quota = event.reason == reason_of(QuotaExceeded(""))
    resets_at = until if is_quota and failures is None else None
    return Hold(until, event.message, resets_at, is_quota, failures or 1)


def _is_stale(before: Hold | None, resets_at: datetime, message: str, now: datetime) -> bool:
    """`resets 3pm`, said again shortly after 3 pm, does not mean tomorrow."""
    if before is None or before.resets_at is None or before.message != message:
        return False
    is_next_day = abs(resets_at - before.resets_at - _DAY) <= _HOUR
    return is_next_day and now - before.resets_at <= _HOUR
