"""Matching tags, in a complete text and in one that is still being written."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from cuggino.operators.markers.code_regions import code_regions, open_fence
from cuggino.operators.markers.line_tags import LineTags
from cuggino.operators.markers.open_tags import OpenTags, Tag


class MarkerPair(NamedTuple):
    """A matching opening and closing tag, as offsets into the text."""

    start: int
    content_start: int
    content_end: int
    end: int
    tag: str


def tag_pattern(names: Collection[str]) -> re.Pattern[str]:
    """Return a pattern of these tags: group 1 is the slash, group 2 the name."""
    return re.compile(f"<(/?)({'|'.join(map(re.escape, names)) or '(?!)'})>")


def find_markers(
    text: str, pattern: re.Pattern[str], line_tags: Sequence[Tag] = ()
) -> tuple[list[MarkerPair], int]:
    """Return the outermost tag pairs in order, and the start of the undecided text.

    `line_tags` are more tags of the text, in order, whose names the pattern does not have.
    Undecided is the text from the first unclosed tag, unclosed code fence or incomplete tag at the
    very end; without any of these it starts at the text's length.
    """
    opened: dict[str, Tag] = {}
    candidates: list[MarkerPair] = []
    closed: int | None = None
    for tag in heapq.merge(_tags_outside_code(text, pattern), line_tags):
        if not tag.closes:
            if tag.after in (None, closed):
                opened[tag.name] = tag
        elif opening := opened.pop(tag.name, None):
            candidates.append(_pair(opening, tag))
            closed = tag.end
    candidates.sort()
    pairs: list[MarkerPair] = []
    for pair in candidates:
        if not pairs or pair.start >= pairs[-1].end:
            pairs.append(pair)
    undecided = _open_end(text)
    for opening in opened.values():
        if not any(pair.start < opening.start < pair.end for pair in pairs):
            undecided = min(undecided, opening.start)
    return pairs, undecided


def _pair(opening: Tag, closing: Tag) -> MarkerPair:
    return MarkerPair(opening.start, opening.end, closing.start, closing.end, opening.name)


def _tags_outside_code(text: str, pattern: re.Pattern[str]) -> Iterator[Tag]:
    matches = (
        Tag(match.start(), match.end(), match.group(2), closes=bool(match.group(1)))
        for match in pattern.finditer(text)
    )
    tag = next(matches, None)
    if tag is None:
        return
    for start, end, _ in code_regions(text):
        while tag is not None and tag.start < start:
            yield tag
            tag = next(matches, None)
        while tag is not None and tag.start < end:
            tag = next(matches, None)
    while tag is not None:
        yield tag
        tag = next(matches, None)


_HALF_TAG = re.compile(r"</?[A-Z_]{0,64}$")


def _open_end(text: str) -> int:
    """Return the start of an unclosed fence or incomplete tag; the text's length without one."""
    half = _HALF_TAG.search(text, max(0, len(text) - 70))
    end = half.start() if half else len(text)
    fence = open_fence(text)
    return end if fence is None else min(end, fence)


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
        self._tags = OpenTags(names, tag_pattern(names))
        self._lines = lines
        self._read = len(held)
        """Length of the text that `lines` has read ahead."""
        self._base = lines.length - len(held) if lines is not None else 0
        """The start of the text in what `lines` reads."""
        self._unordered = [*known]
        """A heap of tags that another one may precede."""
        self._opened: dict[str, Tag] = {}
        self._waiting: list[MarkerPair] = []
        """A heap of the pairs that an earlier opening tag may still enclose."""
        self._closed: int | None = None
        """End of the last closing tag of a pair."""
        self._end = 0
        """End of the last returned pair."""

    @property
    def plain_until(self) -> int:
        """The offset before which everything outside the returned pairs is certainly text."""
        return int(min(self._sure_until, self._first_open()))

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
            if not tag.closes:
                if tag.after in (None, self._closed):
                    self._opened[tag.name] = tag
            elif opening := self._opened.pop(tag.name, None):
                heapq.heappush(self._waiting, _pair(opening, tag))
                self._closed = tag.end
            pairs += self._decided()
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

    def _decided(self) -> Iterator[MarkerPair]:
        while self._waiting and self._waiting[0].start < self._first_open():
            pair = heapq.heappop(self._waiting)
            if pair.start >= self._end:
                self._end = pair.end
                yield pair

    def _first_open(self) -> float:
        """Return the first opening tag that may still begin a pair."""
        if not self._opened:
            return math.inf
        starts = (tag.start for tag in self._opened.values() if tag.start >= self._end)
        return min(starts, default=math.inf)
