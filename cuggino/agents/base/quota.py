"""Usage windows as programs report them, where any value may have any type."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cuggino.agents.base.wire import is_number
from cuggino.events import QuotaUsed

_MILLISECONDS = (100_000_000_000, 10_000_000_000_000)
"""Numbers between these count milliseconds: from 1973 to 2286."""


def quota_used(window: str, used: Any, resets_at: datetime | None) -> QuotaUsed | None:
    """Return the event for a share from 0 to 1, or None if `used` is no number."""
    if not window or not is_number(used):
        return None
    return QuotaUsed(window=window, used=min(1.0, max(0.0, used)), resets_at=resets_at)


def time_or_none(value: Any) -> datetime | None:
    """Return the time of seconds since the epoch or of an ISO text, or None for anything else.

    A large number counts milliseconds. A text without a time zone is in UTC.
    """
    first, last = _MILLISECONDS
    try:
        if is_number(value):
            return datetime.fromtimestamp(value / 1000 if first < value < last else value, UTC)
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
