"""Titles of backlog items, by their text."""

from __future__ import annotations

from cuggino._lazy import pattern
from cuggino.domain.front_matter import split_front_matter

_HEADING = pattern(r"(?m)^ {0,3}#{1,6}[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_LONGEST = 120


def title_of(text: str) -> str:
    """Return the first heading of a Markdown text, or its first line with any text; "" if blank.

    It has no line break and at most 120 characters.
    """
    _, body = split_front_matter(text)
    heading = _HEADING.search(body)
    found = heading[1] if heading else next((x for x in body.splitlines() if x.strip()), "")
    title = " ".join(found.split())
    return title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"
