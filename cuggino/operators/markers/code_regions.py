"""The code in a Markdown text: fenced blocks and code spans (CommonMark 4.5 and 6.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r"^[ \t>]*(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_CODE_RUN = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


class CodeRegion(NamedTuple):
    """A piece of code, as offsets into the text; `closed` is False for an unclosed fence."""

    start: int
    end: int
    closed: bool = True


def code_regions(text: str) -> Iterator[CodeRegion]:
    """Yield every fenced code block and code span, in order; linear in the text.

    A fence may be indented to any depth (agents write them inside lists), and an unclosed one runs
    to the end of the text. A code span ends within its paragraph.
    """
    position = 0
    for fence in _fences(text):
        yield from _code_spans(text, position, fence.start)
        yield fence
        position = fence.end
    yield from _code_spans(text, position, len(text))


def open_fence(text: str) -> int | None:
    """Return the start of an unclosed fence; None without one."""
    return next((fence.start for fence in _fences(text) if not fence.closed), None)


def _fences(text: str) -> Iterator[CodeRegion]:
    position = 0
    while opening := _FENCE.search(text, position):
        closing = _end_of_fence(text, opening)
        position = closing.end() if closing else len(text)
        yield CodeRegion(opening.start(), position, closed=closing is not None)


def _end_of_fence(text: str, opening: re.Match[str]) -> re.Match[str] | None:
    mark = opening.group(1)
    closing = rf"^[ \t>]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*\r?$"
    return re.compile(closing, re.MULTILINE).search(text, opening.end())


def _code_spans(text: str, start: int, end: int) -> Iterator[CodeRegion]:
    while start < end:
        blank = _BLANK_LINE.search(text, start, end)
        paragraph_end = blank.start() if blank else end
        yield from _code_spans_of_paragraph(text, start, paragraph_end)
        start = blank.end() - 1 if blank else end


def _code_spans_of_paragraph(text: str, start: int, end: int) -> Iterator[CodeRegion]:
    runs = [match.span() for match in _CODE_RUN.finditer(text, start, end)]
    # The next run of the same length, found from the back, so that each run is read once.
    closing: list[int | None] = [None] * len(runs)
    nearest: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        closing[index] = nearest.get(length)
        nearest[length] = index
    index = 0
    while index < len(runs):
        closes = closing[index]
        escaped = text[runs[index][0] - 1 : runs[index][0]] == "\\"
        if closes is None or escaped:
            index += 1
        else:
            yield CodeRegion(runs[index][0], runs[closes][1])
            index = closes + 1
