"""A growing text as pieces: the markers, and the text between them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from cuggino.operators.markers.quoting import Tag
from cuggino.operators.markers.tags import Chain, FreeTags, LineTags, joined, unrolled


class Piece(NamedTuple):
    """A piece of a message, trimmed: the content of the marker `tag`, or text when it has none."""

    tag: str
    text: str


class Found(NamedTuple):
    """A marker, all the text since the one before, and where the marker ends."""

    before: str
    piece: Piece
    end: int

    def pieces(self) -> list[Piece]:
        """Return the text, if there is any, and the marker."""
        text = self.before.strip()
        return [Piece("", text), self.piece] if text else [self.piece]


class _Pair(NamedTuple):
    """A matching opening and closing tag, as offsets into the text."""

    start: int
    content_start: int
    content_end: int
    end: int
    tag: str


class _Pairs(NamedTuple):
    """The tags so far, matched. Of pairs that overlap, the one that begins first counts."""

    end: int
    """End of the last returned pair."""
    opened: Mapping[str, Tag] = MappingProxyType({})
    first_open: float = math.inf
    """Start of the first tag that may still begin a pair."""
    waiting: Chain[_Pair] = None
    """Pairs that count unless that one encloses them, in order."""
    closed: int | None = None
    """End of the last closing tag of a pair."""

    def feed(self, tags: Iterable[Tag]) -> tuple[_Pairs, list[_Pair]]:
        """Return the state after the next tags, and the pairs that no further tag can change."""
        opened, waiting, closed = {**self.opened}, self.waiting, self.closed
        for tag in tags:
            if not tag.closes:
                if tag.after in (None, closed):
                    opened[tag.name] = tag
            elif opening := opened.pop(tag.name, None):
                closed = tag.end
                before = waiting
                while before is not None and before[1].start > opening.start:
                    before = before[0]
                if opening.start >= (before[1].end if before is not None else self.end):
                    pair = _Pair(opening.start, opening.end, tag.start, tag.end, tag.name)
                    waiting = (before, pair)
        first_open = _first_open(opened, self.end)
        if waiting is None or (first_open == self.first_open and self.waiting is not None):
            return _Pairs(self.end, opened, first_open, waiting, closed), []
        end, decided = self.end, list[_Pair]()
        still: Chain[_Pair] = None
        for pair in unrolled(waiting):
            if still is None and pair.start < first_open:
                decided.append(pair)
                end = pair.end
                first_open = _first_open(opened, end)
            else:
                still = (still, pair)
        return _Pairs(end, opened, first_open, still, closed), decided

    def finish(self) -> tuple[list[_Pair], float]:
        """Return the rest of the pairs of a text that has ended, and the first tag in none."""
        pairs = unrolled(self.waiting)
        starts = (
            tag.start
            for tag in self.opened.values()
            if tag.start >= self.end and not any(p.start < tag.start < p.end for p in pairs)
        )
        return pairs, min(starts, default=math.inf)


def _first_open(opened: Mapping[str, Tag], end: int) -> float:
    return min((tag.start for tag in opened.values() if tag.start >= end), default=math.inf)


def _found(text: str, start: int, pairs: Iterable[_Pair]) -> Iterator[Found]:
    """Yield the markers in the text, which begins at the offset."""
    at = start
    for pair in pairs:
        content = text[pair.content_start - start : pair.content_end - start]
        before = text[at - start : pair.start - start]
        yield Found(before, Piece(pair.tag, content.strip()), pair.end)
        at = pair.end


def _chained(tags: Iterable[Tag], start: int) -> tuple[Chain[Tag], float]:
    """Return the ordered tags from the offset on as a chain, and the first start."""
    chain: Chain[Tag] = None
    first = math.inf
    for tag in tags:
        if tag.start >= start:
            chain, first = (chain, tag), min(first, tag.start)
    return chain, first


_HALF_TAG = re.compile(r"</?[A-Z_]{0,64}$")


class Reading(NamedTuple):
    """The state of reading a message, part by part.

    A marker is found as soon as no further text can change it. It waits while an earlier tag of
    another name is open (its closing tag would make the marker content), and while its tags could
    still be in code. The work is linear in the length of the text, however it is split.
    """

    free: FreeTags
    lines: LineTags
    held: str = ""
    """The undecided end of the complete parts, which `free` reads with the next part."""
    start: int = 0
    """The end of the last marker that was found, or the start of `held`."""
    end: int = 0
    """The end of the text so far."""
    text: Chain[str] = None
    """The text from `start` on."""
    plain_until: float = 0
    """The offset before which everything outside the markers found is certainly text."""
    line_tags: Chain[Tag] = None
    """The tags that `lines` has found."""
    waiting: Chain[Tag] = None
    """The tags that another one may precede."""
    first: float = math.inf
    """The start of the first of them."""
    pairs: _Pairs = _Pairs(0)

    def feed(self, piece: str) -> tuple[Reading, list[Found]]:
        """Return the reading after a piece of a part, and the markers that it decides."""
        end = self.end + len(piece)
        free, tags = self.free.feed(self.held + piece, self.end - len(self.held))
        lines, line_tags, sure = self.lines, self.line_tags, free.sure(end)
        if lines.names:
            lines, found = lines.feed(piece)
            sure = min(sure, lines.sure(end))
            tags += found
            for tag in found:
                line_tags = (line_tags, tag)
        waiting, first, pairs = self.waiting, self.first, self.pairs
        for tag in tags:
            waiting, first = (waiting, tag), min(first, tag.start)
        start, text, markers = self.start, (self.text, piece), []
        if first < sure:
            ordered = sorted(unrolled(waiting))
            waiting, first = _chained(ordered, sure)
            pairs, decided = pairs.feed(tag for tag in ordered if tag.start < sure)
            if decided:
                whole = joined(text)
                markers = [*_found(whole, start, decided)]
                text = (None, whole[decided[-1].end - start :])
                start = decided[-1].end
        until = min(sure, pairs.first_open)
        return (
            Reading(free, lines, "", start, end, text, until, line_tags, waiting, first, pairs),
            markers,
        )

    def finish(self, *, is_last: bool) -> tuple[list[Piece], Reading]:
        """Return the other pieces of a part that has ended, and the reading of the next part.

        The text from the first unclosed tag, unclosed fence or incomplete tag at the very end is
        undecided, unless it is the last part.
        """
        if self.held:  # of a part without any text
            return self.read_part("", is_last=is_last)
        return self._end("", *self.free.finish(self.end), *self.lines.finish(), is_last=is_last)

    def read_part(self, text: str, *, is_last: bool) -> tuple[list[Piece], Reading]:
        """Return the pieces of a whole part, and the reading of the next one."""
        free = self.free.read(self.held + text, self.start)
        lines, line_tags = self.lines, list[Tag]()
        if lines.names:
            lines, line_tags = lines.feed(text)
            lines, rest = lines.finish()
            line_tags += rest
        return self._end(text, *free, lines, line_tags, is_last=is_last)

    def end_message(self) -> list[Piece]:
        """Return the pieces of what the last part has left undecided."""
        if not self.held:
            return []
        free = self.free.read(self.held, self.start)
        return self._end("", *free, self.lines, [], is_last=True)[0]

    def _end(
        self,
        piece: str,
        tags: Sequence[Tag],
        fence: FreeTags | None,
        lines: LineTags,
        line_tags: Sequence[Tag],
        *,
        is_last: bool,
    ) -> tuple[list[Piece], Reading]:
        text = joined(self.text) + piece
        start, end = self.start, self.start + len(text)
        decided: list[_Pair] = []
        unclosed: float = math.inf
        if tags or line_tags or self.waiting or self.pairs.opened:
            tags = sorted([*unrolled(self.waiting), *tags, *line_tags])
            pairs, decided = self.pairs.feed(tags)
            more, unclosed = pairs.finish()
            decided += more
        if not is_last:
            half = _HALF_TAG.search(text, max(0, len(text) - 70)) if "<" in text[-70:] else None
            end = int(min(start + half.start() if half else end, unclosed))
        pieces: list[Piece] = []
        for marker in _found(text, start, [pair for pair in decided if pair.start < end]):
            pieces += marker.pieces()
            start = marker.end
        # A marker may begin a line in what is a fence to the tags that count anywhere.
        is_inside = fence is not None and fence.opened < start
        if fence is not None and not is_last:
            end = min(end, max(start, fence.opened))
        if rest := text[start - self.start : end - self.start].strip():
            pieces.append(Piece("", rest))
        held = text[end - self.start :]
        known = _chained([*unrolled(self.line_tags), *line_tags], end)
        free = FreeTags(self.free.names)
        if is_inside and fence is not None:
            free = free._replace(tail=None, fence=fence.fence, opened=end - 1)
        return pieces, Reading(
            free,
            lines,
            held,
            end,
            end + len(held),
            (None, held),
            end,
            known[0],
            *known,
            _Pairs(end),
        )
