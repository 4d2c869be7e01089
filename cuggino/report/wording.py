"""Numbers, times and outcomes as a person reads them."""

from __future__ import annotations

import math

from pydantic import JsonValue

from cuggino.events import Usage
from cuggino.report.model import RunReport

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}

LONGEST = 1e9
"""Seconds; nothing is told to last longer."""

_UNITS = ((3600.0, "m", "s"), (86400.0, "h", "m"), (math.inf, "d", "h"))
"""Up to which length which two units tell it."""


def duration(seconds: float) -> str:
    """`40 ms`, `2.4 s`, `42 s`, `1 m 30 s`, `2 h 5 m`, `3 d 4 h`, rounded; never below zero."""
    seconds = min(max(0.0, seconds), LONGEST)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    for limit, big, small in _UNITS:
        whole = round(seconds / _SECONDS[small])
        if whole * _SECONDS[small] < limit:
            parts = divmod(whole, _SECONDS[big] // _SECONDS[small])
            words = zip(parts, (big, small), strict=True)
            return " ".join(f"{count} {unit}" for count, unit in words if count)
    raise AssertionError("the last limit is infinite")


def money(usd: float | None) -> str:
    """US dollars: `$1,234.50`, with four digits below one dollar; a dash when nobody told them."""
    if usd is None:
        return "–"
    return f"${usd:,.4f}" if 0 < abs(usd) < 1 else f"${usd:,.2f}"


def number(value: int) -> str:
    """With separators of thousands."""
    return f"{value:,}"


def counted(value: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `2 files`."""
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


def standing(report: RunReport) -> str:
    """How many of its deliverables are done; empty when there are none, or none are known."""
    listed = report.delivery.listed if report.delivery is not None else None
    if listed is None or not listed.deliverables:
        return ""
    done, word = (listed.verified, "verified") if report.is_sync else (listed.passed, "passed")
    whole = counted(len(listed.deliverables), "deliverable")
    return f"{number(done)} of {whole} {word}"


def all_tokens(usage: Usage) -> int:
    """Every token of the usage, those of the cache included."""
    return (
        usage.input_tokens
        + usage.output_tokens
        + usage.cache_read_tokens
        + usage.cache_creation_tokens
    )


def first_line(text: str, limit: int = 120) -> str:
    """The first line that says something, cut to `limit` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f"{line[: limit - 1]}…" if len(line) > limit else line


def outcome(value: JsonValue) -> str:
    """What a stage came to in one line: an event by its tag and text, else the value itself."""
    if not isinstance(value, dict):
        return "" if value is None else first_line(str(value))
    tag = value.get("_tag")
    if not isinstance(tag, str):
        inner = value.get("time", value.get("value"))
        return "" if inner is None else first_line(str(inner))
    match value:
        case {"_tag": "DeliverSessionEnded", "outcome": str(ended), "message": str(said)}:
            return f"{ended.replace('_', ' ')}: {first_line(said)}".removesuffix(": ")
        case {"_tag": "DeliverablesListed", "deliverables": list(items)}:
            return counted(len(items), "deliverable")
        case _:
            pass
    if "exit_code" in value:
        return f"{tag}: exit code {value['exit_code']}"
    texts = (value.get(key) for key in ("commit_hash", "content", "message", "text"))
    said = first_line(next((text for text in texts if isinstance(text, str) and text), ""))
    return f"{tag}: {said}" if said else tag
