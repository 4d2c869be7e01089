"""Usage limits: their texts and resets, and what is known of usage windows."""

from __future__ import annotations

import string
import time
from datetime import UTC, date, datetime, timedelta
from itertools import product
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


LIMITS = (
    *("usage", "session", "weekly", "bi-weekly", "biweekly", "daily", "monthly", "hourly"),
    *("5-hour", "5 hr", "24hrs", "request", "Opus", "Sonnet", "Haiku", "Claude", "Claude AI"),
    *("Claude Code", "subscription", "plan", "message"),
)
ENDS = ("reached", "hit", "exceeded", "met", "exhausted", "has been reached", "was met", "is hit")
GAPS = (
    *("at", "on", "in", "of", "by", "after", "within", "about", "around", "approximately"),
    *("again", "back", "your", "the", "limit", "limits", "quota", "usage", "is", "will", "be"),
    *("time", "date", "this", "next", "coming", "daily", "every day", ":", "=", "~", "—"),
)


LIMITS_THAT_WERE_HIT = (
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
    *(f"{limit} limit reached" for limit in LIMITS),
    *(f"usage limit {end}" for end in ENDS),
    *(
        f"{met} {whose} {what}"
        for met, whose, what in product(
            ("hit", "reached", "exceeded", "exhausted", "used up"), ("your", "our"), ("limits",)
        )
    ),
    *(f"hit {whose} limit" for whose in ("your", "the", "my", "our", "a", "an", "its")),
    *(f"reached your {what}" for what in ("limit", "quota", "allowance", "capacity")),
    *(f"quota {end}" for end in ("reached", "exceeded", "exhausted", "used up")),
    *(f"quota {verb} exceeded" for verb in ("has been", "have been", "was", "is")),
    *(f"out of {what}usage" for what in ("", "extra ", "your ", "included ")),
    "out of quota",
    *("free usage exceeded", "free usage has been used up", "used up your free usage"),
    *("free limit reached", "free tier limit reached"),
    *("usage_limit_reached", "usage_limit_exceeded", "quota_exceeded"),
    *("insufficient_quota", "exceeded_quota"),
    *(f"sorry{mark} limit reached" for mark in ".:·∙•"),
)
"""Each wording, each kind of limit, and each ending and code."""
CONDITIONS = (
    *("if you", "when we", "whenever i", "before they", "once it", "unless your", "until the"),
    *("after a", "haven't", "hasn't", "hadn't", "not yet", "never ever", "nearly", "almost"),
    *("about to", "close to", "avoid", "may have", "might be", "could been", "would", "will"),
    *("if you have", "if you've", "when you've been"),
)
NO_LIMITS = (
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
    *(f"{before} reached your limit" for before in CONDITIONS),
    *(
        f"hit {what} {kind} limit"
        for what, kind in product(
            ("your", "the maximum"),
            ("context", "token", "turn", "output", "prompt", "rate", "size", "length", "time"),
        )
    ),
)
"""Warnings, conditions, limits of another kind (per request), and bare resets."""


@each(
    "expected, text",
    [*((True, text) for text in LIMITS_THAT_WERE_HIT), *((False, text) for text in NO_LIMITS)],
)
def test_a_text_about_a_limit(expected: bool, text: str) -> None:
    """Each wording of a usage limit that was hit counts, and nothing else."""
    assert expected == is_quota_text(text)


@each(
    "cue",
    [
        *("resets", "reset", "resetting", "resets at", "reset-on", "reset time", "reset_date"),
        *("try again", "trying again", "retry at", "retrying", "retry_delay", "retry in"),
        *("until", "available", "renews", "renewed", "refresh", "refreshes", "restored", "lifted"),
        *("regain", "regains", "regained access", "wait"),
    ],
)
def test_each_word_before_a_time_is_understood(cue: str) -> None:
    """A duration is found after each cue for the reset, with any preposition in between."""
    expected = NOW + timedelta(minutes=90)
    found = {gap: parse_reset(f"{cue} {gap} 90 minutes", now=NOW, zone=UTC) for gap in GAPS}
    assert dict.fromkeys(GAPS, expected) == found


def reset(text: str, now: datetime = NOW, zone: ZoneInfo = ROME) -> str | None:
    """Return the reset as `MM-DD HH:MM:SS` in UTC."""
    found = parse_reset(text, now=now, zone=zone)
    return f"{found:%m-%d %H:%M:%S}" if found else None


class TestParseReset:
    @each(
        "text, expected",
        [
            # hours
            ("resets 3pm", "11-21 14:00:00"),
            ("resets at 3 p.m.", "11-21 14:00:00"),
            ("will reset at 3\u202fPM.", "11-21 14:00:00"),
            ("reset 12:05am", "11-21 23:05:00"),
            ("resets 14:30", "11-21 13:30:00"),
            ("resets at 0:30", "11-21 23:30:00"),
            ("resets at 14:30:15", "11-21 13:30:15"),
            ("resets 18 (UTC)", "11-21 18:00:00"),
            ("resets at midnight UTC", "11-22 00:00:00"),
            ("resets at noon", "11-22 11:00:00"),
            ("try again at 3:05 PM.", "11-21 14:05:00"),
            ("resets soon. Try again at 3pm", "11-21 14:00:00"),
            # zones
            ("resets 3pm (Etc/Unknown)", "11-21 14:00:00"),
            ("resets 3pm (local time)", "11-21 14:00:00"),
            ("resets 3pm (america/new_york)", "11-21 20:00:00"),
            ("resets 3pm America/New_York", "11-21 20:00:00"),
            ("resets 10:20pm (America/Argentina/Buenos_Aires)", "11-22 01:20:00"),
            ("resets 3pm (PST)", "11-21 23:00:00"),
            ("resets 3pm PT", "11-21 23:00:00"),
            ("resets 3pm (Pacific Time)", "11-21 23:00:00"),
            ("resets 3pm (CEST)", "11-21 14:00:00"),
            ("resets 3pm (UTC+5:30)", "11-22 09:30:00"),
            ("resets 3pm UTC-8", "11-21 23:00:00"),
            ("resets 3pm [UTC]", "11-21 15:00:00"),
            ("(resets at 6:00 PM UTC)", "11-21 18:00:00"),
            ("resets 3pm (in 2 hours)", "11-21 14:00:00"),
            ("try again in 1500 milliseconds", "11-21 12:00:01"),
            ("try again in a minute", "11-21 12:01:00"),
            ("try again in 1.25 hours", "11-21 13:15:00"),
            ("resets June 3, 3pm (UTC)", "06-03 15:00:00"),
            ("resets at Noon", "11-22 11:00:00"),
            # days
            ("resets Nov 23, 4pm", "11-23 15:00:00"),
            ("resets Dec 9 at 10:30am", "12-09 09:30:00"),
            ("resets at 3pm on December 1st", "12-01 14:00:00"),
            ("try again at Nov 24th, 2026 5:31 PM.", "11-24 16:31:00"),
            ("Retry-After: Wed, 25 Nov 2026 07:28:00 GMT", "11-25 07:28:00"),
            ("resets Thursday, Nov 26 at 5pm (Europe/Paris)", "11-26 16:00:00"),
            ("Resets Thu 9:00 AM", "11-26 08:00:00"),
            ("resets on Saturday at 9am", "11-28 08:00:00"),
            ("resets on Saturday at 9pm", "11-21 20:00:00"),
            ("resets next Monday 9am (Asia/Tokyo)", "11-23 00:00:00"),
            ("resets tomorrow at 9am", "11-22 08:00:00"),
            ("resets 3pm tomorrow", "11-22 14:00:00"),
            ("resets Nov 25", "11-24 23:00:00"),
            ("resets every day at 3pm", "11-21 14:00:00"),
            ("resets 11/30/2026, 3:00 PM", "11-30 14:00:00"),
            ("resets 30/11/2026 15:00", "11-30 14:00:00"),
            # timestamps
            ("resets at 2026-11-21T18:00:00Z", "11-21 18:00:00"),
            ("resets at 2026-11-21T18:00:00.123+02:00", "11-21 16:00:00"),
            ("resets at 2026-11-21 18:00 (America/New_York)", "11-21 23:00:00"),
            ("usage limit reached|1795300000", "11-21 22:26:40"),
            ("usage limit reached|1795300000000", "11-21 22:26:40"),
            ('{"resets_at":1795300000}', "11-21 22:26:40"),
            ('{"resetsAt": 1795300000}', "11-21 22:26:40"),
            ("x-ratelimit-reset: 1795300000", "11-21 22:26:40"),
            ("You will regain access on 2026-12-01 at 00:00 UTC.", "12-01 00:00:00"),
            ("You regain access at 3pm", "11-21 14:00:00"),
            # spans
            ("in 2 hours 5 minutes", "11-21 14:05:00"),
            ("resets in 2h 10m", "11-21 14:10:00"),
            ("resets in 2 hr 13 min", "11-21 14:13:00"),
            ("resets in an hour", "11-21 13:00:00"),
            ("Try again in half an hour", "11-21 12:30:00"),
            ("resets in an hour and a half", "11-21 13:30:00"),
            ("resets in 2 and a half hours", "11-21 14:30:00"),
            ("resets in a couple of hours", "11-21 14:00:00"),
            ("try again in twelve hours", "11-22 00:00:00"),
            ("resets in 1h30", "11-21 13:30:00"),
            ("resets in P1DT2H", "11-22 14:00:00"),
            ("try again in 12m", "11-21 12:12:00"),
            ("try again in 4 days, 3 hours and 9 minutes.", "11-25 15:09:00"),
            ("Your quota will reset after 2h5m7s.", "11-21 14:05:07"),
            ("Retry-After: 120", "11-21 12:02:00"),
            ("retry after seconds: 90", "11-21 12:01:30"),
            ("resets_in_seconds: 90", "11-21 12:01:30"),
            ('{"retry_after": 30}', "11-21 12:00:30"),
            ('{"resets_in_seconds":75}', "11-21 12:01:15"),
            ('"retryDelay": "34s"', "11-21 12:00:34"),
        ],
    )
    def test_understands(self, text: str, expected: str) -> None:
        """Each wording gives its instant, as of noon UTC in Rome."""
        assert expected == reset(text)

    @each("day", [date(2026, 1, 4) + timedelta(days=31 * n) for n in range(12)])
    def test_each_month_and_day_of_the_week(self, day: date) -> None:
        """Their names, whole and short, mean the next such day."""
        now = datetime.combine(day - timedelta(days=3), datetime.min.time(), UTC)
        for words in ("%B %d", "%d %b", "%A", "%a"):
            text = f"resets {day:{words}} at 10:00 UTC"
            assert f"{day:%m-%d} 10:00:00" == reset(text, now), text

    @each(
        "text",
        [
            "",
            "resets",
            "resets in",
            "resets soon",
            "You will regain access soon",
            "Please try again later.",
            "resets 5",
            "resets 5 times",
            "resets 10/7/2027 at 3pm",
            "resets 0am",
            "resets 13pm",
            "resets 14:30pm",
            "resets 6:75pm",
            "resets 25:00",
            "resets 3pm (Mars/Phobos)",
            "resets 3pm (America)",
            "resets 3pm (../../etc/passwd)",
            "resets 3pm (IST)",
            "resets 3pm IST",
            "resets 3pm Mars/Phobos",
            "resets 3pm (UTC+99)",
            "resets 10/9 at 3pm",
            "resets Feb 30, 3pm",
            "resets Nov 21",
            "resets today",
            "resets Jan 1, 0000, 3pm",
            "resets 9999-12-31T23:59:59Z",
            "resets in 999999999 weeks",
            "resets 99999999999",
            "presets 3pm",
        ],
    )
    def test_an_unclear_time_is_none(self, text: str) -> None:
        """A text without a time, an impossible time or an unknown zone gives None."""
        assert reset(text) is None

    def test_a_leap_day_is_in_a_leap_year(self) -> None:
        """The 29th of February means the next one."""
        expected = datetime(2028, 2, 29, 15, tzinfo=UTC)
        assert expected == parse_reset("resets Feb 29, 3pm (UTC)", now=NOW, zone=ROME)

    def test_a_past_full_date_is_kept(self) -> None:
        """A date with its year, or an epoch, is not moved to tomorrow."""
        assert "11-20 14:00:00" == reset("resets Nov 20, 2026, 3pm")
        assert datetime(2025, 1, 1, tzinfo=UTC) == parse_reset(
            "usage limit reached|1735689600", now=NOW, zone=ROME
        )

    def test_a_time_without_a_zone_is_taken_as_utc(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`now` without a zone is UTC, like a scheduler's clock, on any machine."""
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Asia/Tokyo")
            time.tzset()
            elsewhere = reset("try again in 30 s", now=NOW.replace(tzinfo=None))
        time.tzset()
        assert "11-21 12:00:30" == elsewhere
        assert "11-21 14:00:00" == reset("resets 3pm", now=NOW.replace(tzinfo=None))


class TestClockChanges:
    @each(
        "zone, now, text, expected",
        [
            # Rome, 2024-03-31: 2:00 to 3:00 does not exist; the first instant after it is 1:00 UTC.
            (ROME, "2024-03-30T12:00Z", "resets 2:30am", "03-31 01:00:00"),
            (ROME, "2024-03-31T00:30Z", "resets 2:00am", "03-31 01:00:00"),
            (ROME, "2024-03-31T00:30Z", "resets 3:00am", "03-31 01:00:00"),
            (ROME, "2024-03-31T01:00Z", "resets 2:30am", "04-01 00:30:00"),
            (ROME, "2024-03-30T20:00Z", "resets 6am", "03-31 04:00:00"),
            # Rome, 2024-10-27: 2:00 to 3:00 comes twice, from 0:00 and from 1:00 UTC.
            (ROME, "2024-10-27T00:00Z", "resets 2:30am", "10-27 00:30:00"),
            (ROME, "2024-10-27T00:30Z", "resets 2:30am", "10-27 01:30:00"),
            (ROME, "2024-10-27T01:30Z", "resets 2:30am", "10-28 01:30:00"),
            (ROME, "2024-10-26T20:00Z", "resets 6am", "10-27 05:00:00"),
            (NEW_YORK, "2024-03-10T05:00Z", "resets 2:30am", "03-10 07:00:00"),
            (NEW_YORK, "2024-11-03T04:00Z", "resets 1:30am", "11-03 05:30:00"),
            (NEW_YORK, "2024-11-03T05:30Z", "resets 1:30am", "11-03 06:30:00"),
            (ROME, "2024-03-09T22:00Z", "resets Mar 10, 4am (America/New_York)", "03-10 08:00:00"),
            # `IST` is three zones, but in India it is the local one; the time may be in any.
            (ZoneInfo("Asia/Kolkata"), "2026-11-21T12:00Z", "resets 3pm (IST)", "11-22 09:30:00"),
            (ROME, "2026-11-21T07:00-05:00", "resets 3pm", "11-21 14:00:00"),
            (ROME, "2026-11-21T07:00-05:00", "retry-after: 30", "11-21 12:00:30"),
            # Samoa left out a whole day.
            (ZoneInfo("Pacific/Apia"), "2011-12-29T05:00Z", "resets Dec 30, 3pm", "12-30 10:00:00"),
        ],
    )
    def test_around_a_change(self, zone: ZoneInfo, now: str, text: str, expected: str) -> None:
        """A skipped time is the first after the gap, a repeated one the first not yet past."""
        assert expected == reset(text, now=at(now), zone=zone)

    @given(
        zone=st.sampled_from([ROME, NEW_YORK]),
        # Days around all four changes of 2024.
        day=st.sampled_from(
            [datetime(2024, m, d, tzinfo=UTC) for m, d in [(3, 9), (3, 30), (10, 26), (11, 2)]]
        ),
        second=st.integers(0, 3 * 86_400),
        hour=st.integers(0, 23),
        minute=st.integers(0, 59),
    )
    @example(
        zone=ROME, day=datetime(2024, 3, 30, tzinfo=UTC), second=1, hour=2, minute=30
    )  # skipped
    def test_the_next_such_time(
        self, zone: ZoneInfo, day: datetime, second: int, hour: int, minute: int
    ) -> None:
        """The reset is the first future instant with that clock time, or the end of its gap."""
        now = day + timedelta(seconds=second)
        found = parse_reset(f"resets {hour}:{minute:02}", now=now, zone=zone)
        assert found is not None
        assert timedelta() < found - now <= timedelta(hours=25)

        def shown(when: datetime) -> tuple[int, int]:
            local = when.astimezone(zone)
            return local.hour, local.minute

        before = shown(found - timedelta(seconds=1))
        assert shown(found) == (hour, minute) or before < (hour, minute) < shown(found)
        start = now.replace(second=0) + timedelta(minutes=1)
        minutes = int((found - start).total_seconds() // 60)
        between = (start + timedelta(minutes=n) for n in range(minutes))
        assert not any(shown(when) == (hour, minute) for when in between)
