"""Matching tags, in a complete text and in one that is still being written."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from cuggino.operators.markers.line_tags import LineTags
from cuggino.operators.markers.open_tags import OpenTags, Tag, tag_pattern


class MarkerPair(NamedTuple):
    """A matching opening and closing tag, as offsets into the text."""

    start: int
    content_start: int
    content_end: int
    end: int
    tag: str


def find_markers(
    text: str, names: Collection[str], line_tags: Sequence[Tag] = ()
) -> tuple[list[MarkerPair], int]:
    """Return the outermost tag pairs of a whole text in order, and the start of the undecided text.

    `line_tags` are more tags of the text, in order, with other names. Undecided is the text from
    the first unclosed tag, unclosed code fence or incomplete tag at the very end; without any of
    these it starts at the text's length.
    """
    half = _HALF_TAG.search(text, max(0, len(text) - 70))
    undecided = half.start() if half else len(text)
    tags: Iterable[Tag] = line_tags
    if "```" in text or "~~~" in text or re.search(tag_pattern(names), text):
        reader = OpenTags(names)
        read = reader.feed(text)
        rest, fence = reader.finish()
        undecided = undecided if fence is None else min(undecided, fence)
        tags = heapq.merge(read + rest, line_tags)
    matching = _Matching()
    pairs = [pair for tag in tags for pair in matching.add(tag)] + matching.finish()
    for opening in matching.opened.values():
        if not any(pair.start < opening.start < pair.end for pair in pairs):
            undecided = min(undecided, opening.start)
    return pairs, undecided


_HALF_TAG = re.compile(r"</?[A-Z_]{0,64}$")


class _Matching:
    """Opening and closing tags, matched in the order of the text."""

    def __init__(self) -> None:
        self.opened: dict[str, Tag] = {}
        self._waiting: list[MarkerPair] = []
        """A heap of the pairs that an earlier opening tag may still enclose."""
        self._closed: int | None = None
        """End of the last closing tag of a pair."""
        self._end = 0
        """End of the last returned pair."""

    def add(self, tag: Tag) -> Iterator[MarkerPair]:
        """Yield the pairs that the next tag decides, in order."""
        if not tag.closes:
            if tag.after in (None, self._closed):
                self.opened[tag.name] = tag
        elif opening := self.opened.pop(tag.name, None):
            pair = MarkerPair(opening.start, opening.end, tag.start, tag.end, opening.name)
            heapq.heappush(self._waiting, pair)
            self._closed = tag.end
        yield from self._before(self.first_open())

    def finish(self) -> list[MarkerPair]:
        """Return the remaining pairs of a text that has ended."""
        return [*self._before(math.inf)]

    def first_open(self) -> float:
        """Return the first opening tag that may still begin a pair."""
        starts = (tag.start for tag in self.opened.values() if tag.start >= self._end)
        return min(starts, default=math.inf)

    def _before(self, limit: float) -> Iterator[MarkerPair]:
        while self._waiting and self._waiting[0].start < limit:
            pair = heapq.heappop(self._waiting)
            if pair.start >= self._end:
                self._end = pair.end
                yield pair
            limit = limit if limit == math.inf else self.first_open()


class OpenMarkers:
    """The pairs of a growing text, each as soon as no further text can change it.

    These are the first pairs that `find_markers` returns for any continuation of the text. A pair
    waits while an earlier tag of another name is open (its closing tag would make the pair
    content), and while its tags could still be in code (see `OpenTags`). The work is linear in the
    length of the text, however it is split into pieces.

    Args:
        names: the names of the tags.
        lines: a reader of the tags that must open a line; it has read `held` already.
        held: the beginning of the text, of which `known` are such tags.
    """

    def __init__(
        self,
        names: Collection[str],
        lines: LineTags | None = None,
        *,
        held: str = "",
        known: Sequence[Tag] = (),
    ) -> None:
        self._tags = OpenTags(names)
        self._lines = lines
        self._read = len(held)
        """Length of the text that `lines` has read ahead."""
        self._base = lines.length - len(held) if lines is not None else 0
        """The start of the text in what `lines` reads."""
        self._unordered = [*known]
        """A heap of tags that another one may precede."""
        self._matching = _Matching()

    @property
    def plain_until(self) -> int:
        """The offset before which everything outside the returned pairs is certainly text."""
        return int(min(self._sure_until, self._matching.first_open()))

    @property
    def _sure_until(self) -> int:
        sure = self._tags.sure_until
        return sure if self._lines is None else min(sure, self._lines.sure_until - self._base)

    def feed(self, piece: str) -> list[MarkerPair]:
        """Return the pairs that this piece decides, in order."""
        pairs: list[MarkerPair] = []
        tags = self._tags.feed(piece)
        if self._lines is not None:
            tags = self._in_order(tags, self._lines, piece)
        for tag in tags:
            pairs += self._matching.add(tag)
        return pairs

    def _in_order(self, tags: list[Tag], lines: LineTags, piece: str) -> list[Tag]:
        """Return these tags and those of the lines, as far as no other precedes them."""
        read, self._read = self._read, 0
        line_tags = lines.feed(piece[read:] if read else piece)
        if not tags and not line_tags and not self._unordered:
            return tags
        for tag in tags:
            heapq.heappush(self._unordered, tag)
        for tag in line_tags:
            heapq.heappush(self._unordered, tag.shifted(-self._base))
        sure = self._sure_until
        ordered: list[Tag] = []
        while self._unordered and self._unordered[0].start < sure:
            ordered.append(heapq.heappop(self._unordered))
        return ordered
