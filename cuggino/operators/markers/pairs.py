"""Matching tags, of a whole text and of one that is still being written."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from cuggino.operators.markers.code_regions import code_regions, open_fence
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


def find_markers(text: str, pattern: re.Pattern[str]) -> tuple[list[MarkerPair], int]:
    """Return the outermost tag pairs in order, and the start of the undecided text.

    Undecided is the text from the first unclosed tag, unclosed code fence or incomplete tag at the
    very end; without any of these it starts at the text's length.
    """
    opened: dict[str, re.Match[str]] = {}
    candidates: list[MarkerPair] = []
    for tag in _tags_outside_code(text, pattern):
        name = tag.group(2)
        if not tag.group(1):
            opened[name] = tag
        elif name in opened:
            opening = opened.pop(name)
            candidates.append(
                MarkerPair(opening.start(), opening.end(), tag.start(), tag.end(), name)
            )
    candidates.sort()
    pairs: list[MarkerPair] = []
    for pair in candidates:
        if not pairs or pair.start >= pairs[-1].end:
            pairs.append(pair)
    undecided = _open_end(text)
    for opening in opened.values():
        if not any(pair.start < opening.start() < pair.end for pair in pairs):
            undecided = min(undecided, opening.start())
    return pairs, undecided


def _tags_outside_code(text: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    matches = pattern.finditer(text)
    tag = next(matches, None)
    if tag is None:
        return
    for start, end, _ in code_regions(text):
        while tag is not None and tag.start() < start:
            yield tag
            tag = next(matches, None)
        while tag is not None and tag.start() < end:
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
    text, whatever pieces it arrives in.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._tags = OpenTags(names, tag_pattern(names))
        self._opened: dict[str, Tag] = {}
        self._waiting: list[MarkerPair] = []
        """A heap of the pairs that an earlier opening tag may still enclose."""
        self._end = 0
        """End of the last returned pair."""

    @property
    def plain_until(self) -> int:
        """Up to here, everything outside the returned pairs is certainly text."""
        return int(min(self._tags.sure_until, self._first_open()))

    def feed(self, piece: str) -> list[MarkerPair]:
        """Return the pairs that this piece decides, in order."""
        pairs: list[MarkerPair] = []
        for tag in self._tags.feed(piece):
            if not tag.closes:
                self._opened[tag.name] = tag
            elif opening := self._opened.pop(tag.name, None):
                pair = MarkerPair(opening.start, opening.end, tag.start, tag.end, tag.name)
                heapq.heappush(self._waiting, pair)
            pairs += self._decided()
        return pairs

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
