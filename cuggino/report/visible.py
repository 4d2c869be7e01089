"""Untrusted text made safe to display, and cut with the length of the omitted part."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ACTIVE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}\ud800-\udfff]")


def visible(text: str) -> str:
    """Replace invisible and control characters with visible ones.

    Controls except newline and tab become their pictures (ESC is `␛`), directional marks and C1
    controls are spelled out, lone surrogates become U+FFFD.
    """
    return _ACTIVE.sub(_picture, text.replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{{{code:x}}}"


class Cut(NamedTuple):
    """A text, or the head and tail of a longer one."""

    head: str = ""
    left_out: int = 0
    """Characters between head and tail."""
    tail: str = ""

    def __bool__(self) -> bool:
        return bool(self.head)

    @property
    def size(self) -> int:
        """Return the number of characters that are kept."""
        return len(self.head) + len(self.tail)

    def fit(self, limit: int) -> Cut:
        """Return the text with at most `limit` characters."""
        if self.size <= limit:
            return self
        back = limit // 4
        front = limit - back
        end = (self.head + self.tail)[-back:] if back else ""
        return Cut(self.head[:front], self.size + self.left_out - front - len(end), end)


NOTHING: Final = Cut()


def cut(text: str, limit: int) -> Cut:
    """Return the text, or of a longer one three quarters of `limit` as head, and a tail."""
    return Cut(text).fit(limit)
