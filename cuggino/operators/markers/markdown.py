"""Markdown: the blocks of a text, line by line, and the code and HTML within a paragraph.

As in CommonMark 0.31, chapters 4 to 6.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
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
_HTML_TAG = rf"<[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+\s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>"
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
_OTHER_HTML = re.compile(rf"(?=</?(?:{_INLINE_TAGS})[\s/>])(?:{_HTML_TAG})\s*$", re.IGNORECASE)
"""A line of nothing but a tag. CommonMark takes any name; agents write `<analysis>` around text."""


class Blocks(NamedTuple):
    """The open blocks after some lines of a text."""

    containers: tuple[int, ...] = ()
    childless: int | None = None
    """The index of a list item that is empty so far."""
    leaf: _Leaf = _Leaf.NONE
    fence: str = ""
    """The opening marks of the current fence."""
    html_end: re.Pattern[str] | None = None
    """The end of the current HTML block; None for a blank line."""

    @property
    def is_indented_code(self) -> bool:
        """True after a line of code without a fence."""
        return self.leaf is _Leaf.CODE

    def read(self, line: str) -> tuple[Blocks, Line]:
        """Return the blocks after the next line, without its line ending, and how it is read."""
        if line[:1].isalpha() and not self.containers:
            if self.leaf is _Leaf.PARAGRAPH:
                return self, _MORE_TEXT
            if self.leaf is _Leaf.NONE:
                return _IN_PARAGRAPH, _NEW_TEXT
        text = line.expandtabs(4) if "\t" in line else line
        matched, at = self._match(text)
        blocks, read = self, None
        if matched == len(self.containers):
            blocks, read = self._continue_leaf(text, at)
        if read is None:
            blocks, read = blocks._begin(text, at, matched)
        if _QUOTE in blocks.containers:
            read = read._replace(is_quoted=True)
        return blocks, read

    def _match(self, text: str) -> tuple[int, int]:
        """Return how many containers the line continues, and where its content begins."""
        at = 0
        for index, container in enumerate(self.containers):
            start = _first(text, at)
            if container == _QUOTE:
                if start - at > 3 or text[start : start + 1] != ">":
                    return index, at
                at = start + 1 + (text[start + 1 : start + 2] == " ")
            elif start == len(text):
                if index == self.childless:
                    return index, at
                at = start
            elif start - at >= container:
                at += container
            else:
                return index, at
        return len(self.containers), at

    def _continue_leaf(self, text: str, at: int) -> tuple[Blocks, Line | None]:
        """Return how a line in the current leaf is read; None if it may begin a block."""
        start = _first(text, at)
        match self.leaf:
            case _Leaf.FENCE:
                marks = text[start:].rstrip(" ")
                is_end = (
                    start - at <= 3
                    and len(marks) >= len(self.fence)
                    and not marks.strip(self.fence[0])
                )
                return (self._replace(leaf=_Leaf.NONE) if is_end else self), _RAW
            case _Leaf.HTML if self.html_end is not None:
                is_end = self.html_end.search(text, at) is not None
                return (self._replace(leaf=_Leaf.NONE) if is_end else self), _RAW
            case _Leaf.HTML if start < len(text):
                return self, _HTML
            case _Leaf.CODE if start - at >= 4 or start == len(text):
                return self, _RAW
            case _Leaf.PARAGRAPH:
                return self, None
            case _:
                return self._replace(leaf=_Leaf.NONE), None

    def _begin(self, text: str, at: int, matched: int) -> tuple[Blocks, Line]:
        """Begin the blocks that the rest of the line begins."""
        is_matched = matched == len(self.containers)
        is_paragraph = self.leaf is _Leaf.PARAGRAPH
        containers = self.containers[:matched]
        childless: int | None = None
        while (start := _first(text, at)) < len(text):
            rest = text[start:]
            continues = is_paragraph and is_matched
            if start - at > 3:
                if is_paragraph:
                    break
                return Blocks(containers, leaf=_Leaf.CODE), _RAW
            nests = len(containers) < _DEEPEST
            if nests and rest[0] == ">":
                containers += (_QUOTE,)
                at = start + 1 + (rest[1:2] == " ")
            elif begun := _leaf(rest, is_paragraph=is_paragraph, continues=continues):
                return begun[0]._replace(containers=containers), begun[1]
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
            is_new = is_lost or self.leaf is _Leaf.PARAGRAPH
            return (Blocks(containers, childless) if is_new else self), _NOTHING
        if is_paragraph and not is_matched:
            return self, _MORE_TEXT._replace(is_lazy=True)
        line = _MORE_TEXT if is_paragraph else _NEW_TEXT
        return Blocks(containers, leaf=_Leaf.PARAGRAPH), line


_IN_PARAGRAPH = Blocks(leaf=_Leaf.PARAGRAPH)


def _leaf(rest: str, *, is_paragraph: bool, continues: bool) -> tuple[Blocks, Line] | None:
    """Return the leaf that the text begins, a paragraph aside."""
    if rest[0] == "#" and _HEADING.match(rest):
        return Blocks(), _NEW_TEXT
    if rest[0] in "`~" and (fence := _FENCE.match(rest)):
        return Blocks(leaf=_Leaf.FENCE, fence=fence.group()), _RAW
    if rest[0] == "<":
        return _html(rest, is_paragraph=is_paragraph)
    if (continues and _UNDERLINE.match(rest)) or (rest[0] in "*_-" and _RULE.match(rest)):
        return Blocks(), _NOTHING
    return None


def _html(rest: str, *, is_paragraph: bool) -> tuple[Blocks, Line] | None:
    for begin, end in _RAW_HTML:
        if begin.match(rest):
            return Blocks() if end.search(rest) else Blocks(leaf=_Leaf.HTML, html_end=end), _RAW
    if _BLOCK_HTML.match(rest) or (not is_paragraph and _OTHER_HTML.match(rest)):
        return Blocks(leaf=_Leaf.HTML), _HTML
    return None


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


_ENDS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>"}
_TOKEN = re.compile(
    r"\\[!-/:-@\[-`{-~]"  # escaped
    r"|(`++)"
    rf"|(<[A-Za-z][A-Za-z0-9.+-]{{1,31}}:[^<>\x00-\x20]*+>|{_HTML_TAG})"
    r"|(<!--|<\?|<!\[CDATA\[|<![A-Za-z])"
)
"""Group 1 is a run of backticks, 2 an address or tag, 3 the beginning of a comment and the like."""


def code_and_html(text: str) -> Iterator[tuple[int, int]]:
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
