"""A message while it is being written: what can be told of it already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import NamedTuple

from cuggino.events import Event, MessageDelta
from cuggino.operators.marker_pairs import MarkerPair, OpenMarkers


class Piece(NamedTuple):
    """A piece of a message: the content of the marker `tag`, or text when it has none."""

    tag: str
    text: str


class Draft:
    """One part of a message, from its first delta on, behind `held` text of the parts before it.

    Args:
        message_id: of the message.
        names: the tags that it may hold.
        events: gives the events of a piece that is complete.
        waits: whether a marker has to wait for the end of the part, and all behind it.
        held: what earlier parts of the message have left undecided.
        shown: how many characters of that were shown already.
    """

    def __init__(
        self,
        message_id: str,
        names: Collection[str],
        events: Callable[[Piece], list[Event]],
        waits: Callable[[Piece], bool],
        *,
        held: str,
        shown: int,
    ) -> None:
        self.message_id = message_id
        self.early: Counter[Piece] = Counter()
        """The pieces that were told before the part was complete."""
        self._markers = OpenMarkers(names)
        self._events, self._waits = events, waits
        self._kept: list[str] = []
        """The text from `_start` on: the piece that is being written."""
        self._start = self._length = 0
        self._unseen: list[str] = []
        """The text from `_seen` on, which was not looked at for what can be shown."""
        self._seen = 0
        self._stop: int | None = None
        """Where the marker begins that waits for the end."""
        self._shown = 0
        """How many characters of the present piece were shown."""
        self._space: list[str] = []
        """White space behind them, which is shown when more text follows."""
        self._held = held
        if held:
            self._add(held)
            self._see(shown, held[:shown])
            self._unseen = [held[shown:]]

    def write(self, text: str) -> list[Event]:
        """What can be told with this text: each piece behind its last delta."""
        held, self._held = self._held, ""
        self._add(text)
        pairs = self._markers.feed(held + text)
        told = self._tell(pairs) if pairs and self._stop is None else []
        until = self._markers.plain_until if self._stop is None else self._stop
        if until > self._seen:
            unseen, count = "".join(self._unseen), until - self._seen
            self._unseen = [unseen[count:]]
            told += self._see(until, unseen[:count])
        return told

    def wrote(self, text: str) -> bool:
        """Whether this is the text that was written, with what was held before it."""
        return len(text) == self._length and text.endswith("".join(self._kept))

    def finish(self, piece: Piece) -> list[Event]:
        """What is left to be shown of the first piece that was not told, if it was shown at all."""
        left = piece.text[self._shown :] if self._shown and not piece.tag else ""
        return [MessageDelta(text=left, message_id=self.message_id)] if left else []

    @property
    def seen(self) -> int:
        """How far the text was shown, white space at the end included."""
        return self._seen

    def _add(self, text: str) -> None:
        self._kept.append(text)
        self._unseen.append(text)
        self._length += len(text)

    def _tell(self, pairs: list[MarkerPair]) -> list[Event]:
        told: list[Event] = []
        text, base = "".join(self._kept), self._start
        for pair in pairs:
            content = text[pair.content_start - base : pair.content_end - base]
            marker = Piece(pair.tag, content.strip())
            if self._waits(marker):
                self._stop = pair.start
                break
            told += self._see(pair.start, text[self._seen - base : pair.start - base])
            for piece in (Piece("", text[self._start - base : pair.start - base].strip()), marker):
                if piece.tag or piece.text:
                    self.early[piece] += 1
                    told += self._events(piece)
            self._start = self._seen = pair.end
            self._shown, self._space = 0, []
        self._kept = [text[self._start - base :]]
        self._unseen = [text[self._seen - base :]]
        return told

    def _see(self, until: int, text: str) -> list[Event]:
        """Shows the text up to there, trimmed as the piece will be."""
        self._seen = until
        words = text.rstrip()
        if not words:
            if self._shown:
                self._space.append(text)
            return []
        shown = "".join(self._space) + words if self._shown else words.lstrip()
        self._space = [text[len(words) :]]
        self._shown += len(shown)
        return [MessageDelta(text=shown, message_id=self.message_id)]
