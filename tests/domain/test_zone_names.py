"""Time zones by the names that people and programs write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cuggino.domain.zone_names import find_zone

ROME = ZoneInfo("Europe/Rome")
WINTER = datetime(2026, 1, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("Z", 0),
        ("Coordinated Universal Time", 0),
        ("utc+2", 2),
        ("GMT -03:30", -3.5),
        ("−5", -5),
        ("+0530", 5.5),
        ("UTC+23:59", 24 - 1 / 60),
        ("ACST", 9.5),
        ("HST", -10),
        ("Eastern Standard Time", -5),
        ("us mountain time", -7),
        ("PT", -8),
        ("ASIA/tokyo", 9),
        ("America/Argentina/Buenos_Aires", -3),
        ("your local time", 1),
        ("Time zone", 1),
        ("CEST", 1),
    ],
)
def test_a_zone_by_name(name: str, hours: float) -> None:
    """Each way to write a zone has the offset that it has in winter."""
    zone = find_zone(name, now=WINTER, local=ROME)
    assert zone is not None
    assert timedelta(hours=hours) == WINTER.astimezone(zone).utcoffset()


@pytest.mark.parametrize(
    "name",
    [
        "UTC+24",
        "UTC+99:00",
        "IST",
        "local bus",
        "Eastern Time Square",
        "",
        "Mars/Olympus",
        "../etc/passwd",
        "/etc/localtime",
        "ünknown",
    ],
)
def test_an_unknown_zone_is_none(name: str) -> None:
    """What is no zone, no one zone, or more than a day away, is none, and no error."""
    assert find_zone(name, now=WINTER, local=ROME) is None
