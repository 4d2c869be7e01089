"""Time zones by the names that people and programs write."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from pathlib import Path
from types import MappingProxyType
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_LOCALTIME = Path("/etc/localtime")
_LOCAL = re.compile(r"etc/unknown|(?:your\s)?(?:local(?:\stime)?|time(?:\s?zone)?)")
_UTC = frozenset(("utc", "gmt", "z", "zulu", "utc time", "coordinated universal time"))
_OFFSET = re.compile(r"(?:utc|gmt)?\s?([+-])\s?(\d{1,2})(?::?([0-5]\d))?")
_IANA = re.compile(r"[a-z][a-z0-9_+-]{1,30}(?:/[a-z0-9_+-]{1,30}){0,2}", re.ASCII)
_REGION = re.compile(r"(?:us )?(eastern|central|mountain|pacific)(?: standard| daylight)? time")

_REGIONS = MappingProxyType(
    {
        "eastern": "America/New_York",
        "central": "America/Chicago",
        "mountain": "America/Denver",
        "pacific": "America/Los_Angeles",
        "et": "America/New_York",
        "ct": "America/Chicago",
        "mt": "America/Denver",
        "pt": "America/Los_Angeles",
    }
)
_HOURS = MappingProxyType(
    {
        "edt": -4,
        "cst": -6,
        "cdt": -5,
        "mdt": -6,
        "pst": -8,
        "pdt": -7,
        "akst": -9,
        "akdt": -8,
        "hst": -10,
        "ast": -4,
        "adt": -3,
        "brt": -3,
        "west": 1,
        "bst": 1,
        "cest": 2,
        "eest": 3,
        "msk": 3,
        "sgt": 8,
        "hkt": 8,
        "awst": 8,
        "jst": 9,
        "kst": 9,
        "acst": 9.5,
        "acdt": 10.5,
        "aest": 10,
        "aedt": 11,
        "nzst": 12,
        "nzdt": 13,
    }
)
"""Hours east of UTC. `IST` is missing: it is India's, Israel's and Ireland's."""


def find_zone(name: str, *, now: datetime, local: tzinfo) -> tzinfo | None:
    """Return the zone with that name, in any case, or None.

    Supported are IANA names, UTC, offsets (`UTC+2`, `-05:00`), common abbreviations and those of
    the `local` zone, and words for that zone itself.
    """
    key = " ".join(name.replace("−", "-").lower().split())
    if key in _UTC:
        return UTC
    if _LOCAL.fullmatch(key) or key in _abbreviations(local, now):
        return local
    if offset := _OFFSET.fullmatch(key):
        size = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-size if offset[1] == "-" else size) if size.days < 1 else None
    if key in _HOURS:
        return timezone(timedelta(hours=_HOURS[key]))
    region = _REGION.fullmatch(key)
    return _iana(_REGIONS.get(region[1] if region else key, name.strip()))


def local_zone(env: Mapping[str, str], *, localtime: Path = _LOCALTIME) -> tzinfo:
    """Return the time zone named by `TZ` in the environment, else that of the machine.

    `TZ` is a name such as `Europe/Rome` or a path, as in the C library; an unknown one means UTC.
    The result is a zone rather than the current offset, as a limit may be lifted after a change to
    summer time.
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


def _abbreviations(zone: tzinfo, now: datetime) -> set[str]:
    """Return the abbreviations of the zone in summer and in winter."""
    half_a_year = timedelta(days=182)
    return {
        name.lower()
        for when in (now, now - half_a_year)
        if (name := when.astimezone(zone).tzname())
    }


def _iana(name: str) -> tzinfo | None:
    if not _IANA.fullmatch(name.lower()):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        written = _written().get(name.lower())
        return ZoneInfo(written) if written else None


@cache
def _written() -> dict[str, str]:
    """Return the names of all zones by their lower-case form."""
    return {name.lower(): name for name in available_timezones()}


def _from_file(path: Path) -> tzinfo:
    try:
        with path.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError, struct.error):
        return UTC
