"""Texts cut to head and tail, with the length of the omitted part."""

from __future__ import annotations

from typing import Final, NamedTuple


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
