"""How often a backlog item has failed, and when it may be tried again."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cuggino.errors import (
    AgentFailed,
    AgentNotFound,
    ConfigError,
    CugginoError,
    GuardNotLive,
    LoopError,
    QuotaExceeded,
)

LONGEST_PAUSE = 3600.0
"""Seconds between two attempts, at most."""

QUOTA_PAUSE = 900.0
"""Seconds before it is tried again after a usage limit that does not say when it is lifted."""

LONGEST_QUOTA_PAUSE = 5 * 3600.0


@dataclass(slots=True)
class Attempts:
    """The failures of the items of one watch; time is an argument."""

    max_attempts: int
    retry_seconds: float
    _failed: dict[str, int] = field(default_factory=dict)
    _due: dict[str, datetime] = field(default_factory=dict)
    _quota_failures: int = 0
    _quota_until: datetime | None = None

    def succeeded(self, name: str) -> None:
        """The item's run came to an end of its own."""
        self._failed.pop(name, None)
        self._due.pop(name, None)
        self._quota_failures, self._quota_until = 0, None

    def failed(self, name: str, now: datetime) -> float | None:
        """The seconds until the next attempt, doubled with each; None when none is left."""
        count = self._failed[name] = self._failed.get(name, 0) + 1
        if count >= self.max_attempts:
            self.forget(name)
            return None
        pause = min(self.retry_seconds * 2.0 ** (count - 1), LONGEST_PAUSE)
        self._due[name] = now + timedelta(seconds=pause)
        return pause

    def limited(self, now: datetime, resets_at: datetime | None) -> float:
        """A usage limit was met: nothing is tried for the seconds given; no attempt is counted."""
        if resets_at is not None and resets_at > now:
            pause = (resets_at - now).total_seconds()
        else:
            pause = min(QUOTA_PAUSE * 2.0**self._quota_failures, LONGEST_QUOTA_PAUSE)
            self._quota_failures += 1
        self._quota_until = now + timedelta(seconds=pause)
        return pause

    def restore(self, name: str, count: int, due: datetime) -> None:
        """What an earlier process had counted."""
        self._failed[name], self._due[name] = count, due

    def count(self, name: str) -> int:
        """How often the item has failed so far."""
        return self._failed.get(name, 0)

    def forget(self, name: str) -> None:
        """The item has left the backlog."""
        self._failed.pop(name, None)
        self._due.pop(name, None)

    def ready(self, names: list[str], now: datetime) -> list[str]:
        """Those of the items that need not wait, in the same order."""
        if self._quota_until is not None and self._quota_until > now:
            return []
        return [name for name in names if (due := self._due.get(name)) is None or due <= now]

    def next_due(self, names: list[str], now: datetime) -> float | None:
        """Seconds until the first of the paused items may be tried; None without one."""
        dues = [until for name in names if (until := self._until(name)) is not None and until > now]
        return (min(dues) - now).total_seconds() if dues else None

    def _until(self, name: str) -> datetime | None:
        dues = [due for due in (self._due.get(name), self._quota_until) if due is not None]
        return max(dues, default=None)


def hits_every_item(error: CugginoError) -> bool:
    """Whether the item is not to blame: no usage left, no login, no agent, no usable prompt."""
    cause = error.cause if isinstance(error, LoopError) else error
    if isinstance(cause, AgentFailed):
        return cause.reason in ("auth", "billing")
    return isinstance(cause, QuotaExceeded | AgentNotFound | GuardNotLive | ConfigError)
