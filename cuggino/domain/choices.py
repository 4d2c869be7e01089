"""The options that a question offers: its last list, if that is short."""

from __future__ import annotations

import re
from itertools import groupby

MOST = 6
"""Options; a longer list is no choice."""
_LONGEST = 80
_ITEM = re.compile(r"(?:[-*+]|\d{1,2}[.)])\s+(?P<text>\S.*)")
_MARKS = re.compile(r"[`*_]{1,2}(?P<text>[^`*_]+)[`*_]{1,2}")


def options_of(text: str) -> tuple[str, ...]:
    """Return the items of the last list in the text of a question; empty if it offers no choice."""
    lines = [_ITEM.fullmatch(line.rstrip()) for line in text.splitlines() if line.strip()]
    lists = [list(group) for is_item, group in groupby(lines, bool) if is_item]
    if not lists:
        return ()
    options = tuple(dict.fromkeys(_plain(found["text"]) for found in lists[-1] if found))
    is_choice = 2 <= len(options) <= MOST and max(map(len, options)) <= _LONGEST
    return options if is_choice else ()


def without_options(text: str) -> str:
    """Return the text of a question without its last list, for a view that shows the options."""
    lines = [line.rstrip() for line in text.splitlines()]
    end = max((n for n, line in enumerate(lines) if _ITEM.fullmatch(line)), default=-1)
    start = end
    while start > 0 and (not lines[start - 1] or _ITEM.fullmatch(lines[start - 1])):
        start -= 1
    return "\n".join(lines[:start] + lines[end + 1 :]).strip()


def _plain(text: str) -> str:
    return _MARKS.sub(r"\g<text>", text).strip().rstrip(".;,")
