"""The local time zone: named in the environment or by the machine, with summer time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import TZPATH

import pytest

from cuggino.agents.zone import local_zone

WINTER, SUMMER = datetime(2026, 1, 1), datetime(2026, 7, 1)
FOLDERS = [Path(folder) for folder in TZPATH if (Path(folder) / "Europe/Rome").exists()]


def hours(env: Mapping[str, str], localtime: Path = Path("/missing")) -> tuple[float, float]:
    """The offsets of the zone in winter and in summer."""
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
    """`TZ` names the zone, with its summer time; what names none is UTC."""
    assert expected == hours({"TZ": name})


def test_the_zone_of_the_machine(tmp_path: Path) -> None:
    """Without `TZ` the zone is that of the machine's file, with its summer time."""
    if not FOLDERS:
        pytest.skip("no files of time zones")
    link = tmp_path / "localtime"
    link.symlink_to(FOLDERS[0] / "Europe/Rome")
    assert (1, 2) == hours({}, link)
    assert (-5, -4) == hours({"TZ": str(FOLDERS[0] / "America/New_York")}, link)


@pytest.mark.parametrize("content", [b"", b"no zone at all, only text", b"TZif2" + bytes(10)])
def test_a_file_that_is_no_zone(tmp_path: Path, content: bytes) -> None:
    """A file that cannot be read as a zone is as good as none."""
    file = tmp_path / "localtime"
    file.write_bytes(content)
    assert (0, 0) == hours({}, file)
