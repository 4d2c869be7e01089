"""Time stamps at the beginning of lines."""

from __future__ import annotations

import re

STAMP = re.compile(r"^(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d ", re.MULTILINE)


def unstamped(text: str) -> list[str]:
    """Return the lines without their time stamps."""
    return STAMP.sub("", text).splitlines()


def is_stamped(line: str) -> bool:
    """Return whether the line begins with a time stamp with the date."""
    match = STAMP.match(line)
    return match is not None and match.group(1) is not None
