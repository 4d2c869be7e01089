"""The time zone in which a program on this machine tells times, with its changes over the year."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

_LOCALTIME = Path("/etc/localtime")


def local_zone(env: Mapping[str, str], *, localtime: Path = _LOCALTIME) -> tzinfo:
    """The zone that `TZ` names in this environment, else that of the machine.

    `TZ` is a name such as `Europe/Rome` or a path, as the C library reads it. What names no zone
    is UTC, as it is there. A zone, and not the offset of the present moment: a limit may be lifted
    on the other side of a change to summer time.
    """
    named = env.get("TZ")
    if named is None:
        return _from_file(localtime)
    named = named.removeprefix(":")
    if named.startswith("/"):
        return _from_file(Path(named))
    try:
        return ZoneInfo(named)
    except (OSError, ValueError, LookupError):
        return UTC


def _from_file(path: Path) -> tzinfo:
    try:
        with path.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, struct.error):
        return UTC
