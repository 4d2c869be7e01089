"""Detection of usage limits in text."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, strategies as st

from cuggino.domain.quota import QUOTA_SCHEDULE, is_limit_answer, is_quota_text, parse_reset
from tests.vectors import each, rows

ROME = ZoneInfo("Europe/Rome")
NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ROWS = [row for name in ("quota", "quota_extended") for row in rows(name) if "text" in row]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@each("row", ROWS)
def test_follows_the_cases(row: dict[str, Any]) -> None:
    """Every case is recognized, and its reset parsed, as expected."""
    now, zone = at(row["now"]), ZoneInfo(row.get("local_zone", "UTC"))
    lifted = row.get("recommended_reset", row.get("expected_reset"))
    assert row.get("recommended_is_quota", row.get("is_quota")) == is_quota_text(row["text"])
    assert (at(lifted) if lifted else None) == parse_reset(row["text"], now=now, zone=zone)


class TestIsQuotaText:
    @each(
        "text",
        [
            "You have hit your limit",
            "You\u2019ve\nhit  your limit",
            "You've hit your 5-hour limit · resets 4:24am (UTC)",
            "You've hit your Opus weekly limit",
            "You've hit your org's monthly usage limit",
            "You've reached your weekly limit.",
            "You have reached your specified API usage limits. You will regain access on",
            "You have exceeded your Copilot usage limits",
            "You exceeded your current quota, please check your plan",
            "You have exhausted your capacity on this model",
            "5-hour limit reached ∙ resets 3pm",
            "Opus weekly limit reached",
            "Claude AI usage limit has been reached",
            "Limit reached · resets 3pm",
            "You're out of extra usage - resets 9pm",
            "Quota exceeded for quota metric 'Requests'",
            '{"error": {"type": "usage_limit_reached"}}',
            "Not logged in. You've hit your limit",
            "claude could not finish, you've hit your limit",
            "\x1b[31mYou've hit your \x1b[1mlimit\x1b[0m",
        ],
    )
    def test_a_limit_that_was_hit(self, text: str) -> None:
        """Each wording of a limit that was hit counts."""
        assert is_quota_text(text)

    @each(
        "text",
        [
            "resets 3pm",
            "Rate limit reached",
            "You've hit your rate limit",
            "API Error: Request rejected (429) · This request would exceed your account's rate "
            "limit. Please try again later.",
            "Number of requests has exceeded your per-minute rate limit",
            "Server is temporarily limiting requests (not your usage limit) · Rate limited",
            "API Error: 429 Too many requests, retry after 5s",
            "Context limit reached",
            "You've hit the context window limit",
            "You've reached the turn limit",
            "Approaching your weekly limit",
            "If you hit your limit, wait",
            "You haven't hit your limit",
            "You haven\u2019t hit your limit",
            "You haven`t hit your limit",
            "You will hit your limit soon",
            "The usage limit was not reached",
        ],
    )
    def test_not_a_limit_that_was_hit(self, text: str) -> None:
        """A warning, a condition, another kind of limit and a bare reset do not count."""
        assert not is_quota_text(text)


@each(
    "expected, answer",
    [
        (True, "You've hit your limit · resets 3pm"),
        (True, "Claude AI usage limit reached"),
        (True, "quota exceeded" + "." * 286),
        (False, "quota exceeded" + "." * 287),
        (True, "." * 19 + " quota exceeded"),
        (False, "." * 20 + " quota exceeded"),
        (False, "If you hit your limit, wait"),
        (False, "All tests pass"),
    ],
)
def test_a_short_answer_that_begins_with_a_limit(expected: bool, answer: str) -> None:
    """An answer of up to 300 characters counts if its first 20 report a limit."""
    assert expected == is_limit_answer(answer)


_WORDS = st.sampled_from(
    (
        *("resets", "reset at", "try again in", "retry-after", "until", "limit reached", "and"),
        *("3pm", "13:61", "12am", "2 hours", "5m", "1795300000", "99999999999999", "31", "an"),
        *("Nov", "Feb 29", "2026", "2026-13-40", "tomorrow", "Mon", "(UTC)", "(Europe/Rome)"),
        *("(Etc/Nowhere)", "UTC+25", "[", "(", ")", "·", ",", "0", "-", "|", "T", "Z", "hit your"),
    )
)


@given(
    text=st.lists(_WORDS | st.text(max_size=5), max_size=12).map(" ".join)
    | st.text(alphabet=string.printable, max_size=200),
    now=st.datetimes(datetime(1971, 1, 1), datetime(2150, 1, 1), timezones=st.just(UTC)),
    zone=st.sampled_from([ROME, NEW_YORK, ZoneInfo("Asia/Kathmandu"), UTC]),
)
@example(text="resets ٣pm", now=NOW, zone=ROME)
@example(text="resets ²pm", now=NOW, zone=ROME)
def test_never_fails(text: str, now: datetime, zone: ZoneInfo) -> None:
    """Any text gives None or a UTC time at most ten years ahead."""
    assert isinstance(is_quota_text(text), bool)
    found = parse_reset(text, now=now, zone=zone)
    if found is not None:
        assert timedelta() == found.utcoffset()
        assert found - now <= timedelta(days=3660)


@pytest.mark.timeout(20)
@each(
    "part",
    ["resets ", "resets 1", "resets in 1h ", "(", " ", "hit your ", "limit", "reached |", "try  "],
)
def test_a_hostile_text_takes_linear_time(part: str) -> None:
    """A megabyte of near matches is read in linear time, without a match."""
    text = "resets" + part * (1_000_000 // len(part))
    assert not is_quota_text(text)
    found = parse_reset(text, now=NOW, zone=ROME)
    assert found is None or found > NOW


def test_waits_for_an_unknown_end_add_up_to_a_day() -> None:
    """The waits double from 15 minutes to 5 hours and add up to 24 hours."""
    hours = [0.25, 0.5, 1, 2, 4, 5, 5, 5, 1.25]
    assert [hour * 3600 for hour in hours] == list(QUOTA_SCHEDULE.delays())
    assert 24 == sum(hours)
    assert QUOTA_SCHEDULE.delay(10**9) is None
