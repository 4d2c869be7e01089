"""Seconds as a person reads them."""

from __future__ import annotations


def format_duration(seconds: float) -> str:
    """`12s`, `1m 30s`, `2h 5m`: whole seconds, rounded down; a negative time counts as its size."""
    whole = int(abs(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest}s"
    return f"{minutes // 60}h {minutes % 60}m"


def format_pause(seconds: float) -> str:
    """As `format_duration`, but a time below ten seconds to its tenth: `1.5s`, `2s`."""
    tenths = round(abs(seconds), 1)
    return f"{tenths:g}s" if tenths <= 10 else format_duration(seconds)


def full_duration(seconds: float) -> str:
    """`45s`, `2h 44m`, `1h 30s`: whole seconds, rounded down, parts that are zero left out.

    So the deliverables loop tells times (AUT-250); none below zero.
    """
    minutes, second = divmod(max(int(seconds), 0), 60)
    hour, minute = divmod(minutes, 60)
    parts = [f"{n}{unit}" for n, unit in ((hour, "h"), (minute, "m"), (second, "s")) if n]
    return " ".join(parts) or "0s"
