"""Durations, times and amounts as text."""

from __future__ import annotations

from datetime import datetime

from cuggino.events import Usage

_LONGEST = 1e9
"""Seconds; the longest duration shown, as an endless one has no whole number."""


def format_duration(seconds: float) -> str:
    """Return `12s`, `1m 30s` or `2h 5m`: rounded down, the sign ignored."""
    whole = int(min(abs(seconds), _LONGEST))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest}s"
    return f"{minutes // 60}h {minutes % 60}m"


def format_pause(seconds: float) -> str:
    """Return `1.5s` or `2s` below ten seconds, else as `format_duration`."""
    tenths = round(abs(seconds), 1)
    return f"{tenths:g}s" if tenths <= 10 else format_duration(seconds)


def full_duration(seconds: float) -> str:
    """Return `45s`, `2h 44m` or `1h 30s`: rounded down, without zero parts (AUT-250)."""
    minutes, second = divmod(int(min(max(seconds, 0), _LONGEST)), 60)
    hour, minute = divmod(minutes, 60)
    parts = [f"{n}{unit}" for n, unit in ((hour, "h"), (minute, "m"), (second, "s")) if n]
    return " ".join(parts) or "0s"


def countdown(seconds: float) -> str:
    """Return `2h 5m left`."""
    return f"{format_duration(seconds)} left"


def format_time(at: datetime) -> str:
    """Return `2026-01-02 03:04 UTC`."""
    return f"{at:%Y-%m-%d %H:%M %Z}".rstrip()


def format_tokens(usage: Usage) -> str:
    """Return `12.3k tokens`: input, output and cache writes."""
    total = usage.input_tokens + usage.output_tokens + usage.cache_creation_tokens
    return f"{short_number(total)} tokens"


def short_number(value: int) -> str:
    """Return `940`, `12.3k`, `1.25M`."""
    if value < 1000:
        return f"{value}"
    return f"{value / 1000:.1f}k" if value < 1_000_000 else f"{value / 1_000_000:.2f}M"
