"""Numbers, times and outcomes in human-readable form."""

from __future__ import annotations

import json
import math
import re
from typing import Final

from pydantic import JsonValue

from cuggino.domain import cut_at_end
from cuggino.events import DeliverExit, EndState, Usage, shown_state
from cuggino.runs.state import Delivery
from cuggino.runs.words import counted

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}

UNKNOWN = "–"
"""In place of an unknown amount."""

LONGEST = 1e9
"""Seconds; the longest duration shown."""

_UNITS = ((3600.0, "m", "s"), (86400.0, "h", "m"), (math.inf, "d", "h"))
"""The two units of durations up to each length."""


def duration(seconds: float) -> str:
    """Return a rounded duration of two units: `2.4 s`, `42 s`, `1 m 30 s`, `2 h 5 m`, `3 d 4 h`."""
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


def number(value: int) -> str:
    """Return the number with thousands separators."""
    return f"{value:,}"


def standing(delivery: Delivery | None, *, is_sync: bool = False) -> str:
    """Return the number of done deliverables, or "" if there are none."""
    listed = delivery.listed if delivery is not None else None
    if listed is None or not listed.deliverables:
        return ""
    done, word = (listed.verified, "verified") if is_sync else (listed.passed, "passed")
    whole = counted(len(listed.deliverables), "deliverable")
    return f"{number(done)} of {whole} {word}"


_STATES: Final = {
    "approved": ("approved", "good"),
    "unchecked": ("approved, unchecked", "warning"),
    "all_passed": ("passed", "good"),
    "all_verified": ("verified", "good"),
    "all_blocked": ("all blocked", "warning"),
    "ended": ("ended", "neutral"),
    "spec_issue": ("spec issue", "warning"),
    "max_iterations": ("iterations used up", "warning"),
    "stalled": ("stalled", "bad"),
    "failed": ("failed", "bad"),
    "quota": ("usage limit", "warning"),
    "budget": ("budget spent", "warning"),
    "interrupted": ("interrupted", "warning"),
    "running": ("running", "neutral"),
    "killed": ("killed", "bad"),
}


def state_of(
    state: EndState | str, reason: DeliverExit | str | None = None, checked: bool | None = None
) -> tuple[str, str]:
    """Return the word for a state and its tone."""
    if reason == state == "max_iterations":  # of the deliver loop
        return "sessions used up", "warning"
    known = _STATES.get(shown_state(state, checked, reason))
    return known or (state.replace("_", " "), "neutral")


def to_json(value: object) -> str:
    """Return compact JSON that is valid UTF-8; a lone surrogate becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def said(value: JsonValue) -> str:
    """Return the text of a stage's outcome in one line, without the name of the event."""
    if not isinstance(value, dict):
        return "" if value is None else first_line(str(value))
    texts = (value.get(key) for key in ("content", "message", "text", "value"))
    return first_line(next((text for text in texts if isinstance(text, str) and text), ""))


def all_tokens(usage: Usage) -> int:
    """Return all tokens of the usage, including cache reads."""
    return (
        usage.input_tokens
        + usage.output_tokens
        + usage.cache_read_tokens
        + usage.cache_creation_tokens
    )


def first_line(text: str, limit: int = 120) -> str:
    """Return the first line that is not blank, cut to `limit` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return cut_at_end(line, limit)


def outcome(value: JsonValue) -> str:
    """Return the outcome of a stage in one line: an event by tag and text, else the value."""
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


_ADDRESS = re.compile(r"(?i)https?://[a-z0-9\[][^\s\x00-\x1f\x7f-\x9f\"'<>\\`]{0,2000}")


def web_address(text: str) -> str:
    """Return the text if it is an address that a page may link to, else ""."""
    return text if _ADDRESS.fullmatch(text) else ""
