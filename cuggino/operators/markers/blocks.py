"""The block structure of a Markdown text, line by line (CommonMark 0.31, chapters 4 and 5)."""

from __future__ import annotations

import copy
import re
from enum import Enum, auto
from typing import NamedTuple

_QUOTE = 0
"""A block quote among the containers; a list item is the columns that its content is indented."""


class Kind(Enum):
    """The block to which a line belongs."""

    TEXT = auto()
    """A paragraph or heading."""
    HTML = auto()
    """An HTML block such as `<div>`, up to a blank line."""
    RAW = auto()
    """Code, a comment or another block whose text is never markup."""
    NOTHING = auto()
    """No block with text: a blank line, a rule, the underline of a heading."""


class Line(NamedTuple):
    """One line of a text, as Markdown reads it."""

    kind: Kind
    begins: bool
    """It begins a new block."""
    is_quoted: bool
    """It is in a block quote."""
    is_lazy: bool
    """It continues the paragraph of a container whose marks it does not repeat."""


class _Leaf(Enum):
    NONE = auto()
    PARAGRAPH = auto()
    FENCE = auto()
    CODE = auto()
    HTML = auto()


_NEW_TEXT = Line(Kind.TEXT, begins=True, is_quoted=False, is_lazy=False)
_MORE_TEXT = _NEW_TEXT._replace(begins=False)
_NOTHING = Line(Kind.NOTHING, begins=True, is_quoted=False, is_lazy=False)
_RAW = _NOTHING._replace(kind=Kind.RAW)
_HTML = _NOTHING._replace(kind=Kind.HTML)

_DEEPEST = 100
"""Most containers within one another; what would be deeper is text. Keeps the work linear."""
_SPACES = re.compile(" *")
_HEADING = re.compile(r"#{1,6}(?: |$)")
_UNDERLINE = re.compile(r"(?:=+|-+) *$")
_RULE = re.compile(r"(?:(?:\* *){3,}|(?:_ *){3,}|(?:- *){3,})$")
_FENCE = re.compile(r"`{3,}(?!.*`)|~{3,}")
_ITEM = re.compile(r"(?:[*+-]|(\d{1,9})[.)])(?= |$)")
_ATTRIBUTE = r"\s++[A-Za-z_:][\w:.-]*+(?:\s*+=\s*+(?:[^\"'=<>`\x00-\x20]++|'[^']*+'|\"[^\"]*+\"))?+"
HTML_TAG = rf"<[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+\s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>"
"""A complete tag of HTML (CommonMark 6.6), as a regular expression."""
_RAW_HTML = (
    (
        re.compile(r"<(?:script|pre|textarea|style)(?:\s|>|$)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|textarea|style)>", re.IGNORECASE),
    ),
    (re.compile("<!--"), re.compile("-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile("<![A-Za-z]"), re.compile(">")),
    (re.compile(r"<!\[CDATA\["), re.compile("]]>")),
)
"""The beginnings of HTML blocks that end with a text of their own, and those texts."""
_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|"
    "dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|"
    "hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|"
    "search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
_BLOCK_HTML = re.compile(rf"</?(?:{_BLOCK_TAGS})(?:\s|/?>|$)", re.IGNORECASE)
_INLINE_TAGS = (
    "a|abbr|audio|b|bdi|bdo|button|canvas|cite|code|data|datalist|del|dfn|em|embed|i|img|input|ins|"
    "kbd|label|map|mark|meter|object|output|picture|pre|q|ruby|s|samp|script|select|slot|small|"
    "span|strong|style|sub|sup|svg|template|textarea|time|u|var|video|wbr"
)
_OTHER_HTML = re.compile(rf"(?=</?(?:{_INLINE_TAGS})[\s/>])(?:{HTML_TAG})\s*$", re.IGNORECASE)
"""A line of nothing but a tag. CommonMark takes any name; agents write `<analysis>` around text."""


class Blocks:
    """A reader of the lines of a text."""

    def __init__(self) -> None:
        self._containers: tuple[int, ...] = ()
        self._childless: int | None = None
        """The index of a list item that is empty so far."""
        self._leaf = _Leaf.NONE
        self._fence = ""
        """The opening marks of the current fence."""
        self._html_end: re.Pattern[str] | None = None
        """The end of the current HTML block; None for a blank line."""

    def fork(self) -> Blocks:
        """Return a reader in the same state."""
        return copy.copy(self)

    def read(self, line: str) -> Line:
        """Return how the next line is read, given without its line ending."""
        if line[:1].isalpha() and not self._containers:
            if self._leaf is _Leaf.PARAGRAPH:
                return _MORE_TEXT
            if self._leaf is _Leaf.NONE:
                self._leaf = _Leaf.PARAGRAPH
                return _NEW_TEXT
        text = line.expandtabs(4) if "\t" in line else line
        matched, at = self._match(text)
        read = None
        if matched == len(self._containers):
            read = self._continue_leaf(text, at)
        read = read or self._begin(text, at, matched)
        return read._replace(is_quoted=_QUOTE in self._containers)

    def _match(self, text: str) -> tuple[int, int]:
        """Return how many containers the line continues, and where its content begins."""
        at = 0
        for index, container in enumerate(self._containers):
            start = _first(text, at)
            if container == _QUOTE:
                if start - at > 3 or text[start : start + 1] != ">":
                    return index, at
                at = start + 1 + (text[start + 1 : start + 2] == " ")
            elif start == len(text):
                if index == self._childless:
                    return index, at
                at = start
            elif start - at >= container:
                at += container
            else:
                return index, at
        return len(self._containers), at

    def _continue_leaf(self, text: str, at: int) -> Line | None:
        """Return how a line in the current leaf is read; None if it may begin a block."""
        start = _first(text, at)
        match self._leaf:
            case _Leaf.FENCE:
                marks = text[start:].rstrip(" ")
                is_end = (
                    start - at <= 3
                    and len(marks) >= len(self._fence)
                    and not marks.strip(self._fence[0])
                )
                if is_end:
                    self._leaf = _Leaf.NONE
                return _RAW
            case _Leaf.HTML if self._html_end is not None:
                if self._html_end.search(text, at):
                    self._leaf = _Leaf.NONE
                return _RAW
            case _Leaf.HTML if start < len(text):
                return _HTML
            case _Leaf.CODE if start - at >= 4 or start == len(text):
                return _RAW
            case _Leaf.PARAGRAPH:
                return None
            case _:
                self._leaf = _Leaf.NONE
                return None

    def _begin(self, text: str, at: int, matched: int) -> Line:
        """Begin the blocks that the rest of the line begins."""
        is_matched = matched == len(self._containers)
        is_paragraph = self._leaf is _Leaf.PARAGRAPH
        containers = self._containers[:matched]
        childless: int | None = None
        while (start := _first(text, at)) < len(text):
            rest = text[start:]
            continues = is_paragraph and is_matched
            if start - at > 3:
                if is_paragraph:
                    break
                return self._set(containers, _Leaf.CODE, _RAW)
            nests = len(containers) < _DEEPEST
            if nests and rest[0] == ">":
                containers += (_QUOTE,)
                at = start + 1 + (rest[1:2] == " ")
            elif leaf := self._leaf_of(rest, is_paragraph=is_paragraph, continues=continues):
                return self._set(containers, *leaf)
            elif nests and (item := _list_item(rest, continues=continues)):
                width, is_empty = item
                childless = len(containers) if is_empty else None
                containers += (start - at + width,)
                at = min(start + width, len(text))
            else:
                break
            is_paragraph = False
        else:
            is_lost = not is_matched or len(containers) > matched
            if is_lost or self._leaf is _Leaf.PARAGRAPH:
                self._set(containers, _Leaf.NONE, _NOTHING)
                self._childless = childless
            return _NOTHING
        if is_paragraph and not is_matched:
            return _MORE_TEXT._replace(is_lazy=True)
        begins = not is_paragraph
        return self._set(containers, _Leaf.PARAGRAPH, _NEW_TEXT if begins else _MORE_TEXT)

    def _leaf_of(self, rest: str, *, is_paragraph: bool, continues: bool) -> _Begun | None:
        """Return the leaf that the text begins, a paragraph aside."""
        if rest[0] == "#" and _HEADING.match(rest):
            return _Leaf.NONE, _NEW_TEXT
        if rest[0] in "`~" and (fence := _FENCE.match(rest)):
            self._fence = fence.group()
            return _Leaf.FENCE, _RAW
        if rest[0] == "<":
            return self._html(rest, is_paragraph=is_paragraph)
        if continues and _UNDERLINE.match(rest):
            return _Leaf.NONE, _NOTHING
        if rest[0] in "*_-" and _RULE.match(rest):
            return _Leaf.NONE, _NOTHING
        return None

    def _html(self, rest: str, *, is_paragraph: bool) -> _Begun | None:
        for begin, end in _RAW_HTML:
            if begin.match(rest):
                self._html_end = end
                return (_Leaf.NONE if end.search(rest) else _Leaf.HTML), _RAW
        if _BLOCK_HTML.match(rest) or (not is_paragraph and _OTHER_HTML.match(rest)):
            self._html_end = None
            return _Leaf.HTML, _HTML
        return None

    def _set(self, containers: tuple[int, ...], leaf: _Leaf, line: Line) -> Line:
        self._containers, self._leaf, self._childless = containers, leaf, None
        return line


_Begun = tuple[_Leaf, Line]


def _list_item(rest: str, *, continues: bool) -> tuple[int, bool] | None:
    """Return the width of the list marker with its spaces, and whether the item is empty."""
    marker = _ITEM.match(rest)
    if marker is None:
        return None
    spaces = _first(rest, marker.end()) - marker.end()
    is_empty = marker.end() + spaces == len(rest)
    if continues and (is_empty or int(marker.group(1) or 1) != 1):
        return None
    if is_empty or spaces > 4:
        spaces = 1
    return marker.end() + spaces, is_empty


def _first(text: str, at: int) -> int:
    """Return the position of the first character other than a space, else the length."""
    spaces = _SPACES.match(text, at)
    return spaces.end() if spaces else at
