"""Text that an agent's program tells piece by piece, as text that can be written."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


class Pieces:
    """Texts that come in pieces, several at a time by their keys.

    A surrogate pair that was cut in two is joined; half of one becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._half: dict[str | None, str] = {}

    def add(self, key: str | None, piece: str) -> str:
        """What of the text is whole with this piece and was not given."""
        text = self._half.pop(key, "") + piece
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half[key] = text[:-1], text[-1]
        if _SURROGATE.search(text):
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def end(self, key: str | None) -> str:
        """What is left of the text, which is over."""
        return "\ufffd" if self._half.pop(key, "") else ""
