"""Falling back to another agent: when, to which one, and for how long."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, Literal, NamedTuple, TypeVar, assert_never

from cuggino.domain.schedule import Schedule
from cuggino.errors import AgentFailed, AgentNotFound, QuotaExceeded
from cuggino.events import AgentFellBack, Event

A = TypeVar("A", bound=Hashable)

_LENGTHS = Schedule.exponential("15m").capped("5h")
"""The cooldowns of an agent that did not report when it is available; it never ends."""
_LONGEST_ROW = 6
"""Failures in a row after which the cooldown no longer grows."""
_APART = 1.0
"""Seconds that may pass between a failure and its event."""

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)

Moment = Literal["at_once", "after_retries", "never"]


def when_to_fall_back(error: Exception) -> Moment:
    """Return when another agent may take over after this error.

    At once if the agent has no usage left, is missing or has no account: that will not change.
    After a transient failure when the retries are used up: an outage need not end a night's work
    while another agent is available. Never if another agent would fail in the same way (prompt too
    long, bad request), after a decision (interruption, budget, maximum turns), or without a guard.
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


def fallback_reason(error: Exception) -> str:
    """Return the `reason` of `AgentFellBack` for the error."""
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
class Cooldown:
    """The cooldown of an agent."""

    until: datetime
    message: str
    resets_at: datetime | None = None
    """When its usage limit is lifted, if reported."""
    is_quota: bool = False
    failures: int = 1
    """Failures in a row."""


class Roster(Generic[A]):
    """The available agents, and those on cooldown.

    A failed agent is on cooldown until its usage limit is lifted. If that time is unknown, or it
    failed for another reason, the cooldown is a quarter of an hour, doubled with each failure in a
    row, up to five hours.
    """

    def __init__(self) -> None:
        self._cooldowns: dict[A, Cooldown] = {}
        self._met: set[A] = set()
        """Agents whose sessions ended in this process."""

    def failed(self, agent: A, error: Exception, now: datetime) -> Cooldown:
        """Put a failed agent on cooldown, and return it."""
        before = self._cooldowns.get(agent)
        failures = before.failures + 1 if before is not None else 1
        is_quota = isinstance(error, QuotaExceeded)
        resets_at = error.resets_at if isinstance(error, QuotaExceeded) else None
        if resets_at is not None and _is_stale(before, resets_at, str(error), now):
            resets_at = None
        until = cooldown_end(resets_at, now, failures)
        if until != resets_at:
            resets_at = None
        cooldown = Cooldown(until, str(error), resets_at, is_quota, failures)
        self._cooldowns[agent] = cooldown
        self._met.add(agent)
        return cooldown

    def succeeded(self, agent: A) -> None:
        """End the cooldown of an agent whose session succeeded."""
        self._cooldowns.pop(agent, None)
        self._met.add(agent)

    def restore(self, agent: A, cooldown: Cooldown) -> None:
        """Restore a cooldown of an earlier process, unless the agent has worked in this one.

        Of several cooldowns, the longest applies.
        """
        before = self._cooldowns.get(agent)
        if agent not in self._met and (before is None or before.until < cooldown.until):
            self._cooldowns[agent] = cooldown

    def cooldown_of(self, agent: A, now: datetime) -> Cooldown | None:
        """Return the cooldown of the agent, or None if it is available."""
        cooldown = self._cooldowns.get(agent)
        return cooldown if cooldown is not None and cooldown.until > now else None

    def available(self, agents: Sequence[A], now: datetime) -> A | None:
        return next((agent for agent in agents if self.cooldown_of(agent, now) is None), None)

    def chosen(self, agents: Sequence[A], now: datetime) -> A:
        """Return the first available agent, or the one whose cooldown ends first.

        `agents` must not be empty.
        """
        return min(agents, key=lambda agent: self._until(agent, now))

    def limit(self, agents: Sequence[A], now: datetime) -> Cooldown | None:
        """Return the usage limit that is lifted first, or None if an agent is available."""
        if self.available(agents, now) is not None:
            return None
        limits = [self._cooldowns[agent] for agent in agents if self._cooldowns[agent].is_quota]
        return min(limits, key=lambda cooldown: cooldown.until, default=None)

    def final_error(
        self, names: Mapping[A, str], failed: A, error: Exception, now: datetime
    ) -> Exception:
        """Return the error that ends a session without an available agent.

        It is the usage limit that is lifted first, if there is one, else the `error` of `failed`.
        """
        cooldowns = {
            agent: cooldown
            for agent in names
            if (cooldown := self.cooldown_of(agent, now)) is not None
        }
        limit = self.limit(tuple(cooldowns), now)
        if limit is None:
            return error
        messages = {failed: str(error)} | {one: each.message for one, each in cooldowns.items()}
        words = "; ".join(f"{name}: {messages[agent]}" for agent, name in names.items())
        left = QuotaExceeded(f"no agent is available ({words})", resets_at=limit.resets_at)
        left.__cause__ = error
        return left

    def _until(self, agent: A, now: datetime) -> datetime:
        cooldown = self.cooldown_of(agent, now)
        return cooldown.until if cooldown is not None else now


def cooldown_end(resets_at: datetime | None, now: datetime, failures: int = 1) -> datetime:
    """Return the end of the cooldown: `resets_at` if it is in the future, else by the schedule."""
    if resets_at is not None and resets_at > now:
        return resets_at
    return now + timedelta(seconds=_pause(failures))


def _pause(failures: int) -> float:
    return _LENGTHS.delay(failures - 1) or 0.0


class NamedAgent(NamedTuple):
    """An agent and its model, as events name them; None is the agent's own choice."""

    name: str
    model: str | None = None


class Substitutes:
    """The agents that work in the place of those on cooldown, by the recorded events.

    A cooldown is the agent's in all roles: the next role begins with the fallback at once.
    """

    def __init__(self) -> None:
        self._of: dict[NamedAgent, tuple[NamedAgent, datetime | None]] = {}

    def add(self, event: AgentFellBack, usual: NamedAgent, at: datetime) -> None:
        """Note that an agent fell back; `usual` is the configured one of its role."""
        failed = usual if self.of(usual, at) == usual else NamedAgent(event.from_agent)
        other = NamedAgent(event.to_agent)
        # One that takes over is available, whatever earlier events report.
        self._of = {one: to for one, to in self._of.items() if one.name != other.name}
        self._of[failed] = other, event.until

    def of(self, agent: NamedAgent, at: datetime) -> NamedAgent:
        """Return the agent that works at this time in the place of this one."""
        for _ in range(len(self._of)):
            other, until = self._of.get(agent, (agent, at))
            if until is not None and until <= at:
                break
            agent = other
        return agent


@dataclass(frozen=True, slots=True)
class AgentCooldown:
    """An agent on cooldown, by the names in its event."""

    role: str
    agent: str
    cooldown: Cooldown


def recorded_cooldowns(
    entries: Iterable[tuple[datetime, Event]], now: datetime
) -> tuple[AgentCooldown, ...]:
    """Return the cooldowns at `now` that the recorded events imply; the latest failure comes last.

    An unknown time is taken from the recorded pause. The last agent of a row, with no fallback
    left, is not included: no event records its time.
    """
    known: dict[tuple[str, str], AgentCooldown] = {}
    for at, event in entries:
        if isinstance(event, AgentFellBack):
            here = (event.role, event.from_agent)
            # An agent that takes over is available, whatever earlier events report.
            known = {key: one for key, one in known.items() if key[1] != event.to_agent}
            known.pop(here, None)
            known[here] = AgentCooldown(event.role, event.from_agent, _recorded_cooldown(event, at))
    return tuple(one for one in known.values() if one.cooldown.until > now)


def _recorded_cooldown(event: AgentFellBack, at: datetime) -> Cooldown:
    """Return the recorded cooldown; one of a scheduled length counts as one without a time."""
    until = event.until or cooldown_end(None, at)
    seconds = (until - at).total_seconds()
    known = range(1, _LONGEST_ROW + 1)
    failures = next((n for n in known if abs(_pause(n) - seconds) <= _APART), None)
    is_quota = event.reason == fallback_reason(QuotaExceeded(""))
    resets_at = until if is_quota and failures is None else None
    return Cooldown(until, event.message, resets_at, is_quota, failures or 1)


def _is_stale(before: Cooldown | None, resets_at: datetime, message: str, now: datetime) -> bool:
    """Return whether `resets 3pm`, repeated shortly after 3 pm, is read as tomorrow by mistake."""
    if before is None or before.resets_at is None or before.message != message:
        return False
    is_next_day = abs(resets_at - before.resets_at - _DAY) <= _HOUR
    return is_next_day and now - before.resets_at <= _HOUR
