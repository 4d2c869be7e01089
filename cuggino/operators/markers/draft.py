"""The parts of an unfinished message that can already be emitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from cuggino.events import Event, MessageDelta
from cuggino.operators.markers.pairs import MarkerPair, OpenMarkers


class Piece(NamedTuple):
    """A piece of a message: the content of the marker `tag`, or text when it has none."""

    tag: str
    text: str


class Draft:
    """One part of a message, from its first delta on, after the `held` text of earlier parts.

    Args:
        message_id: the id of the message.
        markers: finds the markers in it.
        events: returns the events of a complete piece.
        waits: returns whether a marker, and all after it, must wait for the end of the part.
        held: the undecided text of earlier parts.
        shown: the number of its characters that were emitted already.
    """

    def __init__(
        self,
        message_id: str,
        markers: OpenMarkers,
        events: Callable[[Piece], list[Event]],
        waits: Callable[[Piece], bool],
        *,
        held: str,
        shown: int,
    ) -> None:
        self.message_id = message_id
        self.early: Counter[Piece] = Counter()
        """The pieces emitted before the part was complete."""
        self._markers = markers
        self._events, self._waits = events, waits
        self._kept: list[str] = []
        """The text from `_start` on: the piece that is being written."""
        self._start = self._length = 0
        self._unseen: list[str] = []
        """The text from `_seen` on, not yet examined."""
        self._seen = 0
        self._stop: int | None = None
        """Start of the marker that waits for the end."""
        self._shown = 0
        """Number of characters of the current piece that were emitted."""
        self._space: list[str] = []
        """White space after them, emitted when more text follows."""
        self._held = held
        if held:
            self._add(held)
            self._see(shown, held[:shown])
            self._unseen = [held[shown:]]

    def write(self, text: str) -> list[Event]:
        """Add text; return what can be emitted now, each piece after its last delta."""
        held, self._held = self._held, ""
        self._add(text)
        pairs = self._markers.feed(held + text)
        ready = self._complete(pairs) if pairs and self._stop is None else []
        until = self._markers.plain_until if self._stop is None else self._stop
        if until > self._seen:
            unseen, count = "".join(self._unseen), until - self._seen
            self._unseen = [unseen[count:]]
            ready += self._see(until, unseen[:count])
        return ready

    def wrote(self, text: str) -> bool:
        """Return whether this is the text that was written, held text included."""
        return len(text) == self._length and text.endswith("".join(self._kept))

    def finish(self, piece: Piece) -> list[Event]:
        """Return the rest of the first incomplete piece, if part of it was emitted."""
        left = piece.text[self._shown :] if self._shown and not piece.tag else ""
        return [MessageDelta(text=left, message_id=self.message_id)] if left else []

    @property
    def seen(self) -> int:
        """The end of the emitted text, trailing white space included."""
        return self._seen

    def _add(self, text: str) -> None:
        self._kept.append(text)
        self._unseen.append(text)
        self._length += len(text)

    def _complete(self, pairs: list[MarkerPair]) -> list[Event]:
        ready: list[Event] = []
        text, base = "".join(self._kept), self._start
        for pair in pairs:
            content = text[pair.content_start - base : pair.content_end - base]
            marker = Piece(pair.tag, content.strip())
            if self._waits(marker):
                self._stop = pair.start
                break
            ready += self._see(pair.start, text[self._seen - base : pair.start - base])
            for piece in (Piece("", text[self._start - base : pair.start - base].strip()), marker):
                if piece.tag or piece.text:
                    self.early[piece] += 1
                    ready += self._events(piece)
            self._start = self._seen = pair.end
            self._shown, self._space = 0, []
        self._kept = [text[self._start - base :]]
        self._unseen = [text[self._seen - base :]]
        return ready

    def _see(self, until: int, text: str) -> list[Event]:
        """Return the text up to there as a delta, trimmed as the piece will be."""
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
