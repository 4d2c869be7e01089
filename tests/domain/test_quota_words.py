"""The vocabulary of usage limits, word by word."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

from cuggino.domain.quota import is_quota_text, parse_reset
from tests.vectors import each

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

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


@each(
    "text",
    [
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
    ],
)
def test_each_wording_of_a_limit_counts(text: str) -> None:
    """Each kind of limit, ending and code is recognized."""
    assert is_quota_text(text)


@each("kind", ["context", "token", "turn", "output", "prompt", "rate", "size", "length", "time"])
def test_a_limit_of_another_kind_does_not_count(kind: str) -> None:
    """A limit per request is not a usage limit, with any noun."""
    assert not is_quota_text(f"hit your {kind} limit")
    assert not is_quota_text(f"hit the maximum {kind} limit")


@each(
    "before",
    [
        *("if you", "when we", "whenever i", "before they", "once it", "unless your", "until the"),
        *("after a", "haven't", "hasn't", "hadn't", "not yet", "never ever", "nearly", "almost"),
        *("about to", "close to", "avoid", "may have", "might be", "could been", "would", "will"),
        *("if you have", "if you've", "when you've been"),
    ],
)
def test_each_condition_and_warning_is_none(before: str) -> None:
    """A condition or warning about a limit does not count."""
    assert not is_quota_text(f"{before} reached your limit")
    assert is_quota_text("reached your limit")


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


@each("cue", ["retry-after", "retry after seconds", "resets_in_seconds"])
def test_bare_seconds(cue: str) -> None:
    """A number without a unit is in seconds where the cue implies it."""
    assert NOW + timedelta(seconds=90) == parse_reset(f"{cue}: 90", now=NOW, zone=UTC)
