"""Time zone names as people and programs write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cuggino.domain.zone_names import find_zone
from tests.vectors import each

ROME = ZoneInfo("Europe/Rome")
WINTER = datetime(2026, 1, 15, 12, tzinfo=UTC)


@each(
    "name, hours",
    [
        ("Z", 0),
        ("Coordinated Universal Time", 0),
        ("UTC time", 0),
        ("zulu", 0),
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
        ("local", 1),
        ("your time", 1),
        ("CEST", 1),
    ],
)
def test_a_zone_by_name(name: str, hours: float) -> None:
    """Each notation of a zone has its winter offset."""
    zone = find_zone(name, now=WINTER, local=ROME)
    assert zone is not None
    assert timedelta(hours=hours) == WINTER.astimezone(zone).utcoffset()


@each(
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
    """An unknown or ambiguous zone, or an offset above a day, is None and no error."""
    assert find_zone(name, now=WINTER, local=ROME) is None


@each(
    "names, place",
    [
        ("EST EDT", "America/New_York"),
        ("CST CDT", "America/Chicago"),
        ("MST MDT", "America/Denver"),
        ("PST PDT", "America/Los_Angeles"),
        ("AKST AKDT", "America/Anchorage"),
        ("HST", "Pacific/Honolulu"),
        ("AST ADT", "America/Halifax"),
        ("BRT", "America/Sao_Paulo"),
        ("WET WEST", "Europe/Lisbon"),
        ("GMT BST", "Europe/London"),
        ("CET CEST", "Europe/Rome"),
        ("EET EEST", "Europe/Athens"),
        ("MSK", "Europe/Moscow"),
        ("SGT", "Asia/Singapore"),
        ("HKT", "Asia/Hong_Kong"),
        ("AWST", "Australia/Perth"),
        ("JST", "Asia/Tokyo"),
        ("KST", "Asia/Seoul"),
        ("ACST ACDT", "Australia/Adelaide"),
        ("AEST AEDT", "Australia/Sydney"),
        ("NZST NZDT", "Pacific/Auckland"),
    ],
)
def test_abbreviations_are_those_of_their_places(names: str, place: str) -> None:
    """An abbreviation has the offset of its place while the place uses it."""
    summer = WINTER + timedelta(days=182)
    offsets = {when.astimezone(ZoneInfo(place)).utcoffset() for when in (WINTER, summer)}
    found = [find_zone(name, now=WINTER, local=UTC) for name in names.split()]
    assert sorted(map(str, offsets)) == sorted(
        str(zone and zone.utcoffset(WINTER)) for zone in found
    )
