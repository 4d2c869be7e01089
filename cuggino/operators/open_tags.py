"""The tags of a text that is still being written, as far as it is sure that they are tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

_LEAD = re.compile(r"[ \t>]*")
_BLANKS = re.compile(r"[ \t]*")
_FENCE = 3
"""How many backticks or tildes open a fence at least."""
_MARKS = {"`": re.compile("`*"), "~": re.compile("~*")}


class Tag(NamedTuple):
    """A tag outside of code, as offsets into the text."""

    start: int
    end: int
    name: str
    closes: bool


class _Run(NamedTuple):
    """Backticks outside of a fence: the beginning or the end of a code span, or a fence's."""

    length: int
    escaped: bool


_Token = Tag | _Run


class OpenTags:
    """Reads a text piece by piece; gives the tags that are outside of code however it goes on.

    What code is, is told by `code_regions`; this finds the same regions from the left. Tags have
    to wait

    - behind backticks without their counterpart: for it (they were in a code span), or for the
      end of the paragraph (there is none);
    - in a line that begins with three backticks or more: for its end (it opens a fence), or for
      another backtick (it does not).

    Each character is looked at once, or twice behind backticks: the work is linear in the text,
    whatever pieces it comes in.
    """

    def __init__(self, names: Collection[str], pattern: re.Pattern[str]) -> None:
        self._token = re.compile(f"{pattern.pattern}|[\n`]")
        tags = [f"<{slash}{name}>" for name in names for slash in ("", "/")]
        self._halves = {tag[:length] for tag in tags for length in range(1, len(tag))}
        self._longest = max(map(len, tags), default=1)
        self._read: Callable[[], bool] = self._lead
        """Reads on; False when it needs more than there is."""
        self._text = ""
        self._at = 0
        """Where in `_text` the reading goes on."""
        self._offset = 0
        """Where in the whole text `_text` begins."""
        self._before = ""
        """The character before `_text`."""
        self._is_blank = True
        """The line consists of blanks until now."""
        self._marks = 0
        """How many backticks or tildes of the present run were seen."""
        self._leads = self._is_escaped = False
        """Whether it begins its line, and whether a backslash is before it."""
        self._mark, self._least = "`", 0
        """Of the open fence, and how many of them close it at least."""
        self._line: list[_Token] | None = None
        """What is in a line that may open a fence."""
        self._span = 0
        """The length of the backticks that may begin a code span; 0 without any."""
        self._behind: list[_Token] = []
        """What is behind them in their paragraph."""
        self._unsure: int | None = None
        """The first tag in either."""
        self._found: list[Tag] = []

    @property
    def sure_until(self) -> int:
        """Where the first tag, or half of one, stands of which it is not sure what it is."""
        return self._offset + self._at if self._unsure is None else self._unsure

    def feed(self, piece: str) -> list[Tag]:
        """The tags that are sure with this piece, in order."""
        self._before = self._text[self._at - 1 : self._at] or self._before
        self._offset += self._at
        self._text, self._at = self._text[self._at :] + piece, 0
        while self._at < len(self._text) and self._read():
            pass
        found, self._found = self._found, []
        return found

    def _lead(self) -> bool:
        """At the beginning of a line."""
        char = self._skip(_LEAD, quotes=True)
        match char:
            case "":
                return False
            case "\n":
                self._at += 1
                if self._is_blank:
                    self._end_paragraph()
                self._is_blank = True
            case "`":
                self._begin_run(leads=True)
            case "~":
                self._marks, self._read = 0, self._tildes
            case _:
                self._read = self._inside
        return True

    def _inside(self) -> bool:
        """Somewhere in a line."""
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
        """In backticks."""
        if not self._count("`"):
            return False
        run = _Run(self._marks, self._is_escaped)
        self._read = self._inside
        if self._leads and run.length >= _FENCE:
            self._mark, self._least, self._line = "`", run.length, [run]
            return True
        held, self._line = self._line or [], None
        for token in (*held, run):
            self._take(token)
        return True

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
            self._read, self._is_blank = self._lead, True
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
        """What is open begins no code span."""
        self._found += _outside_spans(self._behind)
        self._span, self._behind, self._unsure = 0, [], None

    def _fence_line(self) -> bool:
        """In a line of code, or the rest of one that opens a fence."""
        end = self._text.find("\n", self._at)
        if end < 0:
            self._at = len(self._text)
            return False
        self._at, self._read = end + 1, self._fence_lead
        return True

    def _fence_lead(self) -> bool:
        """At the beginning of a line in a fence, which may close it."""
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
        """Behind the marks that close a fence, if the line ends here."""
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
            self._read, self._is_blank = self._lead, True
        else:
            self._read = self._fence_line

    def _skip(self, what: re.Pattern[str], *, quotes: bool = False) -> str:
        """The character behind these, or nothing when it is not there yet."""
        end = _end_of(what, self._text, self._at)
        if quotes and ">" in self._text[self._at : end]:
            self._is_blank = False
        self._at = end
        return self._text[end : end + 1]

    def _count(self, mark: str) -> bool:
        """Whether the run of these is over."""
        end = _end_of(_MARKS[mark], self._text, self._at)
        self._marks += end - self._at
        self._at = end
        return end < len(self._text)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


def _outside_spans(tokens: Sequence[_Token]) -> Iterator[Tag]:
    """The tags of a complete paragraph that are in no code span."""
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
