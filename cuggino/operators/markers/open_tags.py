"""The tags of a text that is still being written, once they are certainly tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_LEAD = re.compile(r"[ \t>]*")
_BLANKS = re.compile(r"[ \t]*")
_FENCE = 3
"""Fewest backticks or tildes that open a fence."""
_MARKS = {"`": re.compile("`*"), "~": re.compile("~*")}


class Tag(NamedTuple):
    """A tag outside of code, as offsets into the text."""

    start: int
    end: int
    name: str
    closes: bool
    after: int | None = None
    """The end of a closing tag; this tag counts only if that one has closed a marker."""

    def shifted(self, by: int) -> Tag:
        """Return the tag as an offset into a text that begins so much earlier."""
        after = None if self.after is None else self.after + by
        return self._replace(start=self.start + by, end=self.end + by, after=after)


class _Run(NamedTuple):
    """Backticks outside a fence: the start or end of a code span or of a fence."""

    length: int
    escaped: bool


_Token = Tag | _Run


def tag_pattern(names: Collection[str]) -> str:
    """Return a regular expression of these tags: group 1 is the slash, group 2 the name."""
    return f"<(/?)({'|'.join(map(re.escape, names)) or '(?!)'})>"


@lru_cache(maxsize=64)
def _tables(names: tuple[str, ...]) -> tuple[re.Pattern[str], frozenset[str], int]:
    """Return a pattern of what a line consists of, the beginnings of tags, the longest tag."""
    tags = [f"<{slash}{name}>" for name in names for slash in ("", "/")]
    halves = frozenset(tag[:length] for tag in tags for length in range(1, len(tag)))
    return re.compile(f"{tag_pattern(names)}|[\n`]"), halves, max(map(len, tags), default=1)


class OpenTags:
    """A reader of a text in pieces that returns the tags outside of code.

    Code is a fence, indented to any depth (agents write them inside lists) and up to the end of the
    text when it is not closed, and a code span, which ends within its paragraph. A tag waits

    - after unmatched backticks: for their counterpart (it was in a code span) or the end of the
      paragraph (it was not);
    - in a line that begins with three or more backticks: for the end of the line (a fence) or
      another backtick (none).

    Each character is read once, or twice after backticks. So the work is linear in the length of
    the text, however it is split into pieces.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._token, self._halves, self._longest = _tables(tuple(names))
        self._read: Callable[[], bool] = self._lead
        """Continues reading; returns False when it needs more text."""
        self._text = ""
        self._at = 0
        """The position in `_text`."""
        self._offset = 0
        """The start of `_text` in the whole text."""
        self._before = ""
        """The character before `_text`."""
        self._is_blank = True
        """The line is blank so far."""
        self._line_start = 0
        """Start of the line that is being read, or of the one that opened the fence."""
        self._marks = 0
        """Length of the current run of backticks or tildes so far."""
        self._leads = self._is_escaped = False
        """The run begins its line; a backslash precedes it."""
        self._mark, self._least = "`", 0
        """The character of the open fence, and the fewest that close it."""
        self._line: list[_Token] | None = None
        """The tokens of a line that may open a fence."""
        self._span = 0
        """Length of the backticks that may begin a code span; 0 without any."""
        self._behind: list[_Token] = []
        """The tokens after them in their paragraph."""
        self._unsure: int | None = None
        """Start of the first tag in either."""
        self._found: list[Tag] = []

    @property
    def sure_until(self) -> int:
        """Start of the first undecided or incomplete tag."""
        return self._offset + self._at if self._unsure is None else self._unsure

    def feed(self, piece: str) -> list[Tag]:
        """Return the tags that this piece decides, in order."""
        self._before = self._text[self._at - 1 : self._at] or self._before
        self._offset += self._at
        self._text, self._at = self._text[self._at :] + piece, 0
        while self._at < len(self._text) and self._read():
            pass
        found, self._found = self._found, []
        return found

    def finish(self) -> tuple[list[Tag], int | None]:
        """Return the remaining tags, as if the text ended here, and the start of an open fence.

        Nothing more may be fed.
        """
        if self._read == self._run:
            self._read = self._inside
            self._end_run()
        if self._read == self._inside:
            is_open = self._line is not None
        elif self._read == self._tildes:
            is_open = self._marks >= _FENCE
        elif self._read == self._fence_marks:
            is_open = self._marks < self._least
        else:
            is_open = self._read in (self._fence_line, self._fence_lead)
        self._line = None
        self._end_paragraph()
        found, self._found = self._found, []
        return found, self._line_start if is_open else None

    def _begin_line(self) -> None:
        self._read, self._is_blank = self._lead, True
        self._line_start = self._offset + self._at

    def _lead(self) -> bool:
        """Read the beginning of a line."""
        char = self._skip(_LEAD, quotes=True)
        match char:
            case "":
                return False
            case "\n":
                self._at += 1
                if self._is_blank:
                    self._end_paragraph()
                self._begin_line()
            case "`":
                self._begin_run(leads=True)
            case "~":
                self._marks, self._read = 0, self._tildes
            case _:
                self._read = self._inside
        return True

    def _inside(self) -> bool:
        """Read inside a line."""
        token = self._token.search(self._text, self._at)
        if token is None:
            half = self._text.rfind("<", max(self._at, len(self._text) - self._longest + 1))
            is_half = half >= 0 and self._text[half:] in self._halves
            self._at = half if is_half else len(self._text)
            return False
        if token.group() == "`":
            self._at = token.start()
            self._begin_run(leads=False)
            return True
        self._at = token.end()
        if token.group() == "\n":
            self._end_line()
        else:
            start, end = self._offset + token.start(), self._offset + token.end()
            self._take(Tag(start, end, token.group(2), closes=bool(token.group(1))))
        return True

    def _begin_run(self, *, leads: bool) -> None:
        before = self._text[self._at - 1 : self._at] or self._before
        self._marks, self._leads, self._is_escaped = 0, leads, before == "\\"
        self._read = self._run

    def _run(self) -> bool:
        """Read a run of backticks."""
        if not self._count("`"):
            return False
        self._read = self._inside
        self._end_run()
        return True

    def _end_run(self) -> None:
        run = _Run(self._marks, self._is_escaped)
        if self._leads and run.length >= _FENCE:
            self._mark, self._least, self._line = "`", run.length, [run]
            return
        held, self._line = self._line or [], None
        for token in (*held, run):
            self._take(token)

    def _tildes(self) -> bool:
        if not self._count("~"):
            return False
        if self._marks < _FENCE:
            self._read = self._inside
        else:
            self._end_paragraph()
            self._mark, self._least = "~", self._marks
            self._read = self._fence_line
        return True

    def _end_line(self) -> None:
        if self._line is None:
            self._begin_line()
        else:
            self._line = None
            self._end_paragraph()
            self._read = self._fence_lead

    def _take(self, token: _Token) -> None:
        if self._line is not None:
            self._hold(token, self._line)
        elif self._span:
            if isinstance(token, _Run) and token.length == self._span:
                self._span, self._behind, self._unsure = 0, [], None
            else:
                self._hold(token, self._behind)
        elif isinstance(token, Tag):
            self._found.append(token)
        elif not token.escaped:
            self._span = token.length

    def _hold(self, token: _Token, where: list[_Token]) -> None:
        where.append(token)
        if self._unsure is None and isinstance(token, Tag):
            self._unsure = token.start

    def _end_paragraph(self) -> None:
        """Release the tags after unmatched backticks: they begin no code span."""
        self._found += _outside_spans(self._behind)
        self._span, self._behind, self._unsure = 0, [], None

    def _fence_line(self) -> bool:
        """Read a line of code, or the rest of one that opens a fence."""
        end = self._text.find("\n", self._at)
        if end < 0:
            self._at = len(self._text)
            return False
        self._at, self._read = end + 1, self._fence_lead
        return True

    def _fence_lead(self) -> bool:
        """Read the beginning of a line in a fence, which may close it."""
        char = self._skip(_LEAD)
        if char == self._mark:
            self._marks, self._read = 0, self._fence_marks
        elif char:
            self._read = self._fence_line
        return bool(char)

    def _fence_marks(self) -> bool:
        if not self._count(self._mark):
            return False
        self._read = self._fence_end if self._marks >= self._least else self._fence_line
        return True

    def _fence_end(self) -> bool:
        """Read after the marks of a closing fence, if the line ends here."""
        char = self._skip(_BLANKS)
        if char == "\r":
            self._at += 1
            self._read = self._fence_return
        elif char:
            self._close_fence(char)
        return bool(char)

    def _fence_return(self) -> bool:
        self._close_fence(self._text[self._at])
        return True

    def _close_fence(self, char: str) -> None:
        if char == "\n":
            self._at += 1
            self._begin_line()
        else:
            self._read = self._fence_line

    def _skip(self, what: re.Pattern[str], *, quotes: bool = False) -> str:
        """Skip the pattern; return the next character, or "" at the end of the text."""
        end = _end_of(what, self._text, self._at)
        if quotes and ">" in self._text[self._at : end]:
            self._is_blank = False
        self._at = end
        return self._text[end : end + 1]

    def _count(self, mark: str) -> bool:
        """Count the run; return True when it is over."""
        end = _end_of(_MARKS[mark], self._text, self._at)
        self._marks += end - self._at
        self._at = end
        return end < len(self._text)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


def _outside_spans(tokens: Sequence[_Token]) -> Iterator[Tag]:
    """Yield the tags of a complete paragraph outside its code spans."""
    closing: dict[int, int] = {}
    nearest: dict[int, int] = {}
    for index in range(len(tokens) - 1, -1, -1):
        token = tokens[index]
        if isinstance(token, _Run):
            if token.length in nearest:
                closing[index] = nearest[token.length]
            nearest[token.length] = index
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if isinstance(token, Tag):
            yield token
        elif not token.escaped:
            index = closing.get(index, index)
        index += 1
