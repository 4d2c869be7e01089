"""The number of slots that may be active, limited by the load that the agents' service can take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cuggino.errors import AgentFailed, LoopError
from cuggino.events import AgentRetry

_OVERLOAD = frozenset({"overloaded", "rate_limit"})
_ONE_BURST = timedelta(minutes=1)
"""All agents meet an overload at the same time; that is one reason to use fewer slots."""


@dataclass(frozen=True, slots=True)
class SlotLimit:
    """The number of a watch's slots that may be active; every method returns a new value.

    An overload halves it. Each item that succeeds without an overload raises it by one.
    """

    slots: int
    """All slots of the watch."""
    idle: int = 0
    """The slots that may not be at work for now."""
    halved: datetime | None = None
    """When the others were halved last."""
    met: frozenset[str] = frozenset()
    """The items at work that have met an overload."""

    @property
    def active(self) -> int:
        """The number of slots that may be active, at least one."""
        return self.slots - self.idle

    def overloaded(self, name: str, now: datetime) -> SlotLimit:
        """Halve the limit, at most once a minute, after an overload during the item."""
        met = self.met | {name}
        if self.halved is not None and now < self.halved + _ONE_BURST:
            return replace(self, met=met)
        return replace(self, idle=self.slots - max(1, self.active // 2), halved=now, met=met)

    def ended(self, name: str, *, succeeded: bool = True) -> SlotLimit:
        """Raise the limit by one after an item that succeeded without an overload."""
        met = self.met - {name}
        if name in self.met or not succeeded:
            return replace(self, met=met)
        return replace(self, idle=max(0, self.idle - 1), met=met)


def is_overload(what: object) -> bool:
    """Return whether an event or an error means that the agent's service is overloaded."""
    if isinstance(what, LoopError):
        what = what.cause
    return isinstance(what, AgentRetry | AgentFailed) and what.reason in _OVERLOAD
