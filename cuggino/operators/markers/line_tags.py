"""Tags that count only where they open a line of a Markdown text."""

from __future__ import annotations

import copy
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from cuggino.operators.markers.blocks import HTML_TAG, Blocks, Kind
from cuggino.operators.markers.open_tags import Tag

_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")
_DEEPEST = 3
"""Most spaces before a tag that opens its line."""


class _Written(NamedTuple):
    """A line of a paragraph: its place, its text without tags, and the tags that may count."""

    start: int
    text: str
    tags: list[Tag]


class _Patterns(NamedTuple):
    """Patterns of some tags, and their beginnings."""

    closing: re.Pattern[str]
    next: re.Pattern[str]
    opening: re.Pattern[str]
    trigger: re.Pattern[str]
    half: re.Pattern[str]
    halves: frozenset[str]
    any: re.Pattern[str]
    longest: int


@lru_cache(maxsize=16)
def _patterns_of(names: frozenset[str]) -> _Patterns:
    any_name = "|".join(map(re.escape, sorted(names))) or "(?!)"
    openings = tuple(f"<{name}>" for name in names)
    return _Patterns(
        closing=re.compile(f"</({any_name})>"),
        next=re.compile(f"</(?:{any_name})>[ \t]*+(?=<({any_name})>)"),
        opening=re.compile(f" {{0,{_DEEPEST}}}<({any_name})>"),
        trigger=re.compile(f"[\r\n] {{0,{_DEEPEST}}}<(?:{any_name})>"),
        half=re.compile(f"[\r\n] {{0,{_DEEPEST}}}(<[^\\s<>]*)$"),
        halves=frozenset(tag[:length] for tag in openings for length in range(1, len(tag))),
        any=re.compile(f"</?(?:{any_name})>"),
        longest=1 + _DEEPEST + max(map(len, openings), default=0),
    )


class LineTags:
    """A reader of a growing text that returns the tags that count, in order.

    An opening tag counts if it opens a line of a paragraph, after at most three spaces, and is not
    in a block quote; or if it directly follows a closing tag, which must then have closed a marker
    (`Tag.after`). A closing tag counts in any line that is not marked as quoted. None counts in
    code, in a comment, or in another tag of HTML. Paragraphs are those of CommonMark, with two
    exceptions: these tags are words, and only HTML's own names begin a block of HTML.

    A tag is returned when its paragraph ends. The work is linear in the text. Until a tag opens a
    line, the lines are not even read.
    """

    def __init__(self, names: Collection[str]) -> None:
        self.names = frozenset(names)
        self._patterns = _patterns_of(self.names)
        self._recent = "\n"
        """The last characters, from before a tag that could be incomplete."""
        self._length = 0
        self._unread: list[str] = []
        """The text from `_start` on: all of it until a tag opens a line, then its last line."""
        self._is_reading = False
        self._start = 0
        self._blocks = Blocks()
        self._paragraph: list[_Written] = []
        """The lines of the open paragraph."""
        self._pending: int | None = None
        """The start of the first tag in it."""
        self._last = -1
        """The start of the last returned tag."""

    def restarted(self) -> LineTags:
        """Return a reader of the same tags for another text; this one is not to be used again."""
        if self._is_reading:
            return LineTags(self.names)
        self._recent, self._length = "\n", 0
        self._unread.clear()
        return self

    def fork(self) -> LineTags:
        """Return a reader that continues from here."""
        twin = copy.copy(self)
        twin._blocks = self._blocks.fork()
        twin._unread, twin._paragraph = [*self._unread], [*self._paragraph]
        return twin

    @property
    def length(self) -> int:
        """The length of the text so far."""
        return self._length

    @property
    def sure_until(self) -> int:
        """The offset before which no further text adds a tag."""
        if self._is_reading:
            return self._start if self._pending is None else self._pending
        half = self._patterns.half.search(self._recent) if "<" in self._recent else None
        if half is not None and half.group(1) in self._patterns.halves:
            return self._length - len(half.group(1))
        return self._length

    def feed(self, piece: str) -> list[Tag]:
        """Return the tags that this piece decides."""
        self._length += len(piece)
        self._unread.append(piece)
        if self._is_reading:
            return self._read_lines() if self._ends_line(piece) else []
        recent = self._recent + piece
        self._recent = recent[-self._patterns.longest :]
        if ">" not in piece or not self._patterns.trigger.search(recent):
            return []
        self._is_reading = True
        return self._read_lines()

    def finish(self) -> list[Tag]:
        """Return the tags of an unfinished paragraph too, as if the text ended here.

        What follows continues the paragraph, but no code or tag of HTML that is still open.
        """
        if not self._is_reading:
            return []
        blocks = self._blocks
        self._blocks = blocks.fork()
        found = [*self._read_line("".join(self._unread)), *self._end_paragraph()]
        self._blocks = blocks
        return found

    def _ends_line(self, piece: str) -> bool:
        before = self._unread[-2][-1:] if len(self._unread) > 1 else ""
        return before == "\r" or "\n" in piece or "\r" in piece

    def _read_lines(self) -> list[Tag]:
        text, at = "".join(self._unread), 0
        found: list[Tag] = []
        for end in _LINE_END.finditer(text):
            found += self._read_line(text[at : end.start()])
            self._start += end.end() - at
            at = end.end()
        self._unread = [text[at:]]
        return found

    def _read_line(self, text: str) -> list[Tag]:
        """Read the line that begins at `_start`; return the tags of a paragraph that it ends."""
        masked = self._patterns.any.sub(_mask, text) if "<" in text else text
        line = self._blocks.read(masked)
        ended = self._end_paragraph() if line.begins else []
        if line.kind in (Kind.TEXT, Kind.HTML):
            opens = line.kind is Kind.TEXT and not line.is_quoted
            closes = line.is_lazy or not line.is_quoted
            tags = [*self._tags(text, opens=opens, closes=closes)] if masked != text else []
            content = masked.lstrip(" \t>") if line.is_quoted else masked
            start = self._start + len(text) - len(content)
            self._paragraph.append(_Written(start, content, tags))
            if tags and self._pending is None:
                self._pending = tags[0].start
        return ended

    def _tags(self, text: str, *, opens: bool, closes: bool) -> Iterator[Tag]:
        if opens and (tag := self._patterns.opening.match(text)):
            start = self._start + tag.start(1) - 1
            yield Tag(start, self._start + tag.end(), tag.group(1), closes=False)
        if closes:
            for tag in self._patterns.closing.finditer(text):
                start, end = self._start + tag.start(), self._start + tag.end()
                yield Tag(start, end, tag.group(1), closes=True)
                if opens and (following := self._patterns.next.match(text, tag.start())):
                    name, start = following.group(1), self._start + following.end()
                    yield Tag(start, start + len(name) + 2, name, closes=False, after=end)

    def _end_paragraph(self) -> list[Tag]:
        lines, self._paragraph = self._paragraph, []
        if self._pending is None:
            return []
        self._pending = None
        regions = _regions("\n".join(line.text for line in lines))
        region = next(regions, None)
        found: list[Tag] = []
        at = 0
        for line in lines:
            for tag in line.tags:
                place = tag.start - line.start + at
                while region is not None and region[1] <= place:
                    region = next(regions, None)
                if (region is None or region[0] > place) and tag.start > self._last:
                    self._last = tag.start
                    found.append(tag)
            at += len(line.text) + 1
        return found


def _mask(tag: re.Match[str]) -> str:
    """Return a word of the same length that cannot be part of a tag: no value begins with `=`."""
    return "=" + "x" * (len(tag.group()) - 1)


_ENDS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>"}
_TOKEN = re.compile(
    r"\\[!-/:-@\[-`{-~]"  # escaped
    r"|(`++)"
    rf"|(<[A-Za-z][A-Za-z0-9.+-]{{1,31}}:[^<>\x00-\x20]*+>|{HTML_TAG})"
    r"|(<!--|<\?|<!\[CDATA\[|<![A-Za-z])"
)
"""Group 1 is a run of backticks, 2 an address or tag, 3 the beginning of a comment and the like."""


def _regions(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of code spans and HTML in the text of a paragraph, in order."""
    runs: dict[int, list[int]] | None = None
    missing: set[str] = set()
    at = 0
    while token := _TOKEN.search(text, at):
        at = token.end()
        marks, tag, opening = token.groups()
        if marks:
            if runs is None:
                runs = defaultdict(list)
                for run in re.finditer("`+", text):
                    runs[len(run.group())].append(run.start())
            same = runs[len(marks)]
            index = bisect_left(same, at)
            if index < len(same):
                at = same[index] + len(marks)
                yield token.start(), at
        elif tag:
            yield token.span()
        elif opening:
            end = _ENDS.get(opening, ">")
            found = -1 if end in missing else text.find(end, _after(opening, text, token.start()))
            if found < 0:
                missing.add(end)
            else:
                at = found + len(end)
                yield token.start(), at


def _after(opening: str, text: str, start: int) -> int:
    """Return where the end of a comment and the like may begin: `<!-->` and `<!--->` are whole."""
    is_short = opening == "<!--" and text.startswith(("<!-->", "<!--->"), start)
    return start + 2 if is_short else start + len(opening)
