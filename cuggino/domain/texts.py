"""Texts for people: without terminal sequences, shortened; sizes and durations in words."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    # Titles, links and other strings: ended by BEL or ST, else before JSON or a line end.
    r"\x1b[\]PX^_](?:(?!\{\s*\")[^\x07\x1b\x9c\n])*(?:\x07|\x1b\\|\x9c)?"
    # The same with controls of 8 bits, which stray in texts that were decoded wrongly.
    r"|[\x90\x98\x9d-\x9f][^\x07\x1b\x9c\n]{0,999}(?:\x07|\x1b\\|\x9c)"
    # Colors, the cursor, modes. No sequence that programs print ends with a brace.
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-z|}~]?"
    r"|\x1b[ -/]*[0-Z\\`-z|}~]?"
)
_INTRODUCER = re.compile("[\x1b\x90\x98\x9b\x9d-\x9f]")
_UNITS = ("B", "kB", "MB", "GB")
_STEP = 1000
_WITH_TENTHS = 2


def without_escapes(text: str) -> str:
    """Return the text without terminal sequences; one that was cut off ends before a `{`."""
    return _ESCAPES.sub("", text) if _INTRODUCER.search(text) else text


def size_text(size: float) -> str:
    """Return a number of bytes for people, such as `12 kB` or `1.5 MB`."""
    step = 0
    while round(size) >= _STEP and step < len(_UNITS) - 1:
        size, step = size / _STEP, step + 1
    return f"{size:.1f} {_UNITS[step]}" if step >= _WITH_TENTHS else f"{size:.0f} {_UNITS[step]}"


def duration_text(seconds: float) -> str:
    """Return a duration for a sentence, such as `90 s`, `15 min` or `2 h`."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def cut_at_end(text: str, most: int) -> str:
    """Return the text; if it has more than `most` characters, its beginning and an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def cut_in_middle(text: str, most: int) -> str:
    """Return the text; if it has more than `most` characters, its beginning and its end."""
    if len(text) <= most:
        return text
    begin, end = text[: most - most // 2], text[len(text) - most // 2 :]
    size = len(text[len(begin) : len(text) - len(end)].encode("utf-8", "replace"))
    return f"{begin}\n[... {size_text(size)} left out ...]\n{end}"
