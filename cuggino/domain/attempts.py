"""Failed attempts at backlog items, and the time of the next attempt."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cuggino.domain.schedule import Schedule
from cuggino.errors import (
    AgentFailed,
    AgentNotFound,
    ConfigError,
    CugginoError,
    GuardNotLive,
    ProcessError,
    QuotaExceeded,
    StorageError,
    WorkNotCommitted,
    cause_of,
)

_SIDE_BY_SIDE = re.compile(r"(?<=.)-attempt-\d+$")
MOST_ATTEMPTS = 8
"""The attempts that there may be at the same work, side by side."""
_LONGEST_RETRY = "1h"
_QUOTA_SCHEDULE = Schedule.exponential("15m").capped("5h")
"""The delays after usage limits with an unknown end; it never ends."""
_MAX_LIMITS = 20
"""Maximum consecutive usage limits, without a finished item, whose reported end is trusted."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

_LOOK_AGAIN = 900.0
"""Seconds between checks for a person's login."""


@dataclass(slots=True)
class Attempts:
    """The failures of the items of one watch."""

    max_attempts: int
    retry_seconds: float
    _failed: dict[str, int] = field(default_factory=dict)
    _due: dict[str, datetime] = field(default_factory=dict)
    _stalled: dict[str, str] = field(default_factory=dict)
    _edited: dict[str, int] = field(default_factory=dict)
    _limits: int = 0
    _quota_failures: int = 0
    _quota_until: datetime | None = None

    def succeeded(self, name: str) -> None:
        """Forget the failures of an item whose run has completed."""
        self._failed.pop(name, None)
        self._due.pop(name, None)
        self._limits, self._quota_failures, self._quota_until = 0, 0, None

    def failed(self, name: str, now: datetime) -> float | None:
        """Return the seconds until the next attempt, doubled each time, or None if none is left."""
        count = self._failed[name] = self._failed.get(name, 0) + 1
        retries = Schedule.exponential(self.retry_seconds).capped(_LONGEST_RETRY)
        pause = retries.times(self.max_attempts - 1).delay(count - 1)
        if pause is None:
            self.forget(name)
            return None
        self._due[name] = now + timedelta(seconds=pause)
        return pause

    def limited(self, now: datetime, resets_at: datetime | None) -> float:
        """Pause all items after a usage limit, without counting an attempt; return the seconds.

        The pause lasts until `resets_at`. It grows when that is unknown, or has been wrong 20 times
        in a row.
        """
        self._limits += 1
        least = 0.0
        if self._limits > _MAX_LIMITS:
            least = _QUOTA_SCHEDULE.delay(self._limits - _MAX_LIMITS - 1) or 0.0
        if resets_at is not None and resets_at > now:
            pause = max(least, (resets_at - now).total_seconds())
        else:
            pause = _QUOTA_SCHEDULE.delay(self._quota_failures) or 0.0
            self._quota_failures += 1
        self._quota_until = now + timedelta(seconds=pause)
        return pause

    def paused(self, now: datetime) -> float:
        """Return the seconds for which all items are paused already, 0 if they are not."""
        until = self._quota_until
        return max(0.0, (until - now).total_seconds()) if until is not None else 0.0

    def stalled(self, name: str, review: str) -> bool:
        """Record a stalled run; return whether to repeat it with the review: once per item."""
        is_first = name not in self._stalled
        self._stalled[name] = review
        return is_first

    def edited(self, name: str) -> bool:
        """Record a run during which the item was edited; return whether it was the last one."""
        count = self._edited[name] = self._edited.get(name, 0) + 1
        return count >= self.max_attempts

    def review(self, name: str) -> str | None:
        """Return the review of the stalled run of the item, if there was one."""
        return self._stalled.get(name)

    def restore(self, name: str, count: int, due: datetime) -> None:
        """Restore the count and due time of an earlier process."""
        self._failed[name], self._due[name] = count, due

    def wait(self, now: datetime) -> float:
        """Pause all items until the next check for a person's login; return the seconds."""
        self._quota_until = now + timedelta(seconds=_LOOK_AGAIN)
        return _LOOK_AGAIN

    def restore_limit(self) -> None:
        """Count a usage limit of an earlier process."""
        self._limits += 1

    def count(self, name: str) -> int:
        """Return how often the item has failed so far."""
        return self._failed.get(name, 0)

    def forget(self, name: str) -> None:
        """Forget an item that has left the backlog."""
        self._failed.pop(name, None)
        self._due.pop(name, None)
        self._stalled.pop(name, None)
        self._edited.pop(name, None)

    def due(self, names: Iterable[str], now: datetime) -> Iterator[str]:
        """Yield the items that are due, in the same order."""
        if self._quota_until is not None and self._quota_until > now:
            return
        for name in names:
            if (due := self._due.get(name)) is None or due <= now:
                yield name

    def next_due(self, names: list[str], now: datetime) -> float | None:
        """Return the seconds until the first paused item is due, or None if none is paused."""
        dues = [until for name in names if (until := self._until(name)) is not None and until > now]
        return (min(dues) - now).total_seconds() if dues else None

    def _until(self, name: str) -> datetime | None:
        dues = [due for due in (self._due.get(name), self._quota_until) if due is not None]
        return max(dues, default=None)


def needs_login(error: CugginoError) -> bool:
    """Return whether a person has to log in: the login is missing, expired or refused."""
    cause = cause_of(error)
    return isinstance(cause, AgentFailed) and cause.reason == "auth"


def is_full_disk(error: CugginoError) -> bool:
    """Return whether we, or a program, could not write a file because the disk is full."""
    match cause_of(error):
        case StorageError(__cause__=OSError(errno=number)):
            return number in _NO_ROOM
        case ProcessError(message=message):
            return any(os.strerror(number) in message for number in _NO_ROOM)
        case _:
            return False


def hits_every_item(error: CugginoError) -> bool:
    """Return whether the error would occur for every item, as its cause is not the item.

    The usage limit is reached, the login, the agent or a usable prompt is missing, the guard does
    not work, git cannot commit, or the disk is full.
    """
    cause = cause_of(error)
    if is_full_disk(error):
        return True
    if isinstance(cause, AgentFailed):
        return cause.reason in ("auth", "billing")
    return isinstance(
        cause, QuotaExceeded | AgentNotFound | GuardNotLive | ConfigError | WorkNotCommitted
    )


def attempted_item(name: str) -> str:
    """Return the item of which this is one of several attempts side by side; or the name itself."""
    return _SIDE_BY_SIDE.sub("", name)
