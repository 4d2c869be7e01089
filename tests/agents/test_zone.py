"""The local time zone, from the environment or the machine, with daylight saving time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import TZPATH

import pytest

from cuggino.domain import local_zone

WINTER, SUMMER = datetime(2026, 1, 1), datetime(2026, 7, 1)
FOLDERS = [Path(folder) for folder in TZPATH if (Path(folder) / "Europe/Rome").exists()]


def hours(env: Mapping[str, str], localtime: Path = Path("/missing")) -> tuple[float, float]:
    """Return the zone's offsets in winter and in summer."""
    zone = local_zone(env, localtime=localtime)
    offsets = [day.replace(tzinfo=zone).utcoffset() or timedelta() for day in (WINTER, SUMMER)]
    winter, summer = (offset.total_seconds() / 3600 for offset in offsets)
    return winter, summer


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Europe/Rome", (1, 2)),
        (":America/New_York", (-5, -4)),
        ("Asia/Kolkata", (5.5, 5.5)),
        ("UTC", (0, 0)),
        ("", (0, 0)),
        ("Nowhere/Land", (0, 0)),
        ("Europe", (0, 0)),
        ("../etc/passwd", (0, 0)),
        ("\udc80", (0, 0)),
        ("/missing", (0, 0)),
        ("/dev/null", (0, 0)),
    ],
)
def test_the_zone_of_the_environment(name: str, expected: tuple[float, float]) -> None:
    """`TZ` selects the zone, with daylight saving time; an unknown name means UTC."""
    assert expected == hours({"TZ": name})


def test_the_zone_of_the_machine(tmp_path: Path) -> None:
    """Without `TZ` the machine's file selects the zone, with daylight saving time."""
    if not FOLDERS:
        pytest.skip("no files of time zones")
    link = tmp_path / "localtime"
    link.symlink_to(FOLDERS[0] / "Europe/Rome")
    assert (1, 2) == hours({}, link)
    assert (-5, -4) == hours({"TZ": str(FOLDERS[0] / "America/New_York")}, link)


@pytest.mark.parametrize("content", [b"", b"no zone at all, only text", b"TZif2" + bytes(10)])
def test_an_invalid_zone_file(tmp_path: Path, content: bytes) -> None:
    """An invalid file is treated as missing."""
    file = tmp_path / "localtime"
    file.write_bytes(content)
    assert (0, 0) == hours({}, file)
