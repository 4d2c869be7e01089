"""Usage limits in words."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, strategies as st

from cuggino.domain.quota import is_quota_answer, is_quota_text, parse_reset, quota_pause
from tests.vectors import rows

ROME = ZoneInfo("Europe/Rome")
NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ROWS = [row for name in ("quota", "quota_extended") for row in rows(name) if "text" in row]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_follows_the_cases(row: dict[str, Any]) -> None:
    """Every case is recognised or not, and its reset found, as the case expects."""
    now, zone = at(row["now"]), ZoneInfo(row.get("local_zone", "UTC"))
    lifted = row.get("recommended_reset", row.get("expected_reset"))
    assert row.get("recommended_is_quota", row.get("is_quota")) == is_quota_text(row["text"])
    assert (at(lifted) if lifted else None) == parse_reset(row["text"], now=now, zone=zone)


class TestIsQuotaText:
    @pytest.mark.parametrize(
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
    def test_a_limit_that_is_met(self, text: str) -> None:
        """Each wording of a limit that is met counts."""
        assert is_quota_text(text)

    @pytest.mark.parametrize(
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
    def test_a_limit_that_is_not(self, text: str) -> None:
        """A warning, a condition, a limit of another kind and a bare reset do not count."""
        assert not is_quota_text(text)


@pytest.mark.parametrize(
    ("expected", "answer"),
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
    """An answer of 300 characters at most counts when a limit was met in its first 20."""
    assert expected == is_quota_answer(answer)


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
    """Whatever the text, the answer is none or a time in UTC, at most ten years ahead."""
    assert isinstance(is_quota_text(text), bool)
    found = parse_reset(text, now=now, zone=zone)
    if found is not None:
        assert timedelta() == found.utcoffset()
        assert found - now <= timedelta(days=3660)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "part",
    ["resets ", "resets 1", "resets in 1h ", "(", " ", "hit your ", "limit", "reached |", "try  "],
)
def test_a_hostile_text_takes_no_longer(part: str) -> None:
    """A megabyte of what almost matches is read in linear time, and says nothing."""
    text = "resets" + part * (1_000_000 // len(part))
    assert not is_quota_text(text)
    found = parse_reset(text, now=NOW, zone=ROME)
    assert found is None or found > NOW


class TestQuotaPause:
    def test_doubles_from_a_quarter_of_an_hour_to_five_hours(self) -> None:
        """The series is 15 min, doubled up to 5 h, and takes 24 hours in all."""
        pauses = [quota_pause(taken) for taken in range(10)]
        hours = [0.25, 0.5, 1, 2, 4, 5, 5, 5, 1.25]
        assert [*(hour * 3600 for hour in hours), None] == pauses
        assert 24 == sum(hours)

    def test_the_whole_time_is_the_end(self) -> None:
        """When the pauses have taken all of the time there is none of no length."""
        assert [10, 20, None] == [quota_pause(n, first=10, total=30) for n in range(3)]

    def test_stays_given_up(self) -> None:
        """After 24 hours there is no further pause, however many were taken."""
        assert quota_pause(10**9) is None
