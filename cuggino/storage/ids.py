"""Ids of sessions, runs and moved files, in the order in which they were made."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

_last = 0


def new_id() -> str:
    """Return a UUID of version 7 (RFC 9562): the time to a quarter of a microsecond, then chance.

    Later ids of a process are greater, also when its clock is set back.
    """
    global _last
    _last = max(time.time_ns() * 4096 // 1_000_000, _last + 1)
    milliseconds, fraction = divmod(_last, 4096)
    chance = int.from_bytes(os.urandom(8), "big") >> 2
    value = milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | chance
    digits = f"{value:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def time_of(id: str) -> datetime | None:
    """Return the time in an id, or None if it is not a UUID of version 7."""
    with suppress(ValueError, OverflowError, OSError):
        found = UUID(id)
        if found.version == 7:
            return datetime.fromtimestamp((found.int >> 80) / 1000, UTC)
    return None
