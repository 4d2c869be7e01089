"""Tags and literals that quote what they contain: a terminal marker in them is void.

Markdown knows fences, indented code and HTML. Agents also structure their text with tags of their
own (`<thinking>`), and show code without a fence.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import NamedTuple


class Tag(NamedTuple):
    """A tag, as offsets into the text."""

    start: int
    end: int
    name: str
    closes: bool
    after: int | None = None
    """The end of a closing tag; this tag counts only if that one has closed a marker."""


class Written(NamedTuple):
    """A line of a message as text: its code spans and comments are blank, its own tags words."""

    start: int
    text: str
    is_code: bool = False
    """It is in an indented code block, where a literal may end but not begin."""


class Quotes(NamedTuple):
    """What is open after the lines of a message so far."""

    tags: tuple[str, ...] = ()
    """The names of the open tags, the outermost first."""
    literal: str = ""
    """The end of the open literal; "" if none is open."""
    counted: frozenset[str] = frozenset()
    """The markers that are open."""
    void: frozenset[str] = frozenset()
    """The markers whose last opening tag was void: so is the closing tag."""

    @property
    def is_open(self) -> bool:
        """Return whether a tag or literal quotes what follows."""
        return bool(self.tags or self.literal)

    def read(self, lines: Sequence[Written], tags: Sequence[Tag]) -> tuple[Quotes, list[Tag]]:
        """Return the state after the lines, and those of their tags that nothing quotes.

        A tag that opens a line, or a literal at the start or end of one, quotes up to its end, or
        else to that of the message. In the middle of a line it quotes only if its end follows in
        these lines. The content of a marker that counts is read as it is.
        """
        reader = _Reader(self, lines, tags)
        counted = [*reader.read()]
        return reader.state, counted


def may_quote(text: str) -> bool:
    """Return whether a tag or literal may open in the text; cheap, and sometimes wrong."""
    return _SUSPECT.search(text) is not None


_EMPTY = re.compile("area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
"""Elements of HTML without content."""
_LOOSE = re.compile(
    "a|abbr|b|bdi|bdo|big|body|caption|center|cite|colgroup|data|dd|del|dfn|dt|em|font|head|html|i|"
    "ins|label|li|mark|optgroup|option|p|rp|rt|s|small|span|strike|strong|sub|sup|tbody|td|tfoot|"
    "th|thead|time|tr|tt|u|var"
)
"""Elements of HTML that are used within a text, or whose end may be omitted."""
_DRAFT = re.compile("think|thought|reason|reflect|scratch|draft|example|quot", re.IGNORECASE)
"""Names of tags around a draft, which quote wherever they open."""
_ATTRIBUTE = (
    r"\s+(?:[\w:@.-]+(?:\s*=\s*(?:\"[^\"]*+\"|'[^']*+'|\{[^{}]*+\}|[^\s\"'=<>`{}]+))?"
    r"|\{[^{}]*+\})"
)
_TOKEN = re.compile(
    rf"<(?P<slash>/?)(?P<tag>[A-Za-z][\w:.-]*+)(?:{_ATTRIBUTE})*+\s*+(?P<empty>/?)>"
    r"|(?P<fragment></?>)"
    r"|(?P<triple>\"\"\"|''')"
    r"|(?<!\\)(?P<quote>[\"'`])"
    r"|\\begin\{(?P<tex>[\w*]+)\}"
    r"|(?<![\w<])<<<?[-~]?(?P<mark>['\"]?)(?P<here>[A-Za-z_]\w*)(?P=mark)(?!\w)"
    r"|#\+(?i:begin)_(?P<org>\w+)"
    r"|\{(?P<jira>code|noformat|quote)(?::[^{}\n]*+)?\}"
    r"|\[(?P<bb>code|quote|spoiler|pre)(?:=[^\]\n]*+)?\]"
    r"|(?P<comment>/\*)"
    r"|\bR\"(?P<cpp>\w*)\("
    r"|\br(?P<rust>#+)\""
    r"|\[(?P<lua>=*)\["
    r"|(?P<line>\n)"
)
_SUSPECT = re.compile(
    r"<[A-Za-z>]|[\"'`(\[{][ \t]*$|:[ \t]+[|>]|\"\"\"|'''|::|<<|\\begin|#\+"
    r"|\{(?:code|noformat|quote)|\[(?:code|quote|spoiler|pre|=*\[)|/\*|\bR\"|\br#"
    r"|[=(\[{,:+][ \t]*\w{0,2}[\"'`]|\b(?:return|echo|printf?|puts)[ \t]+[\"'`]",
    re.IGNORECASE | re.MULTILINE,
)
_STRING = re.compile(r"(?:[=(\[{,:+]\s*|\b(?:return|echo|printf?|puts)\s+)[A-Za-z]{0,2}\Z")
"""Code that a string follows."""
_SCALAR = re.compile(r"\s*(?:-\s+)*[\w.'\"/ -]+:\s+[|>][+-]?\d*[+-]?\s*(?:#.*)?\Z")
"""The head of a block scalar of YAML."""
_DIRECTIVE = re.compile(r"(?:.*[^:\s])?::\s*\Z|\s*\.\. [\w:-]+::(?: .*)?\Z")
"""A line of reStructuredText before a literal block."""
_BRACKET = re.compile(r"(?P<sure>\breturn\s*|=>?\s*)?(?P<bracket>[(\[{])\s*\Z")
_CLOSING = MappingProxyType({"(": ")", "[": "]", "{": "}"})
_CLOSING_TAG = re.compile(r"</(?P<name>[A-Za-z][\w:.-]*+)?\s*+>")


class _Reader:
    """One pass over the lines of a message."""

    def __init__(self, before: Quotes, lines: Sequence[Written], tags: Sequence[Tag]) -> None:
        self._open = [*before.tags]
        self._literal = before.literal
        self._counted, self._void = {*before.counted}, {*before.void}
        self._text = text = "\n".join(line.text for line in lines)
        self._code: set[int] = set()
        """The places of the lines that are indented code."""
        self._tags: list[tuple[int, Tag]] = []
        """The tags of markers, each with its place in the text; negative before its lines."""
        self._next = self._at = 0
        self._void_until = -math.inf
        self._missing: set[str] = set()
        """Ends that follow nowhere."""
        self._closings = _places(_CLOSING_TAG.finditer(text), "name")
        place, index = 0, 0
        for line in lines:
            if line.is_code:
                self._code.add(place)
            while index < len(tags) and tags[index].start <= line.start + len(line.text):
                self._tags.append((place + tags[index].start - line.start, tags[index]))
                index += 1
            place += len(line.text) + 1
        self._tags += ((len(text), tag) for tag in tags[index:])

    @property
    def state(self) -> Quotes:
        return Quotes(
            tuple(self._open), self._literal, frozenset(self._counted), frozenset(self._void)
        )

    def read(self) -> Iterator[Tag]:
        """Yield the tags that count, in order."""
        if self._literal:
            end, self._literal = self._literal, ""
            self._quote(end, 0, is_sure=True)
        while not self._literal and (token := _TOKEN.search(self._text, self._at)) is not None:
            skipped = yield from self._markers(token.start())
            if skipped is not None:
                self._at = max(self._at, skipped)
                continue
            self._at = token.end()
            start = self._text.rfind("\n", 0, token.start()) + 1
            if start in self._code:
                continue
            if token["line"]:
                self._end_line(start, token.start())
            else:
                self._begin(token, self._text[start : token.start()])
        while (yield from self._markers(len(self._text) + 1)) is not None:
            pass

    def _markers(self, until: int) -> Generator[Tag, None, int | None]:
        """Yield the tags before this place that count; return where the content of one ends."""
        while self._next < len(self._tags) and self._tags[self._next][0] < until:
            place, tag = self._tags[self._next]
            self._next += 1
            if not tag.closes:
                if self._open or self._literal or place < self._void_until:
                    self._void.add(tag.name)
                    self._counted.discard(tag.name)
                    continue
                self._counted.add(tag.name)
                self._void.discard(tag.name)
                yield tag
                content = self._content(tag.name)
                if content:
                    yield from (inner for _, inner in content)
                    self._next += len(content)
                    self._counted.discard(tag.name)
                    return content[-1][0] + 1
            elif tag.name in self._counted:
                self._counted.discard(tag.name)
                self._open.clear()  # what the content has opened
                self._literal = ""
                yield tag
            elif tag.name not in self._void:
                yield tag
        return None

    def _content(self, name: str) -> list[tuple[int, Tag]]:
        """Return the tags up to the closing one; none if another one of the name opens before."""
        for index in range(self._next, len(self._tags)):
            if self._tags[index][1].name == name:
                closes = self._tags[index][1].closes
                return self._tags[self._next : index + 1] if closes else []
        return []

    def _begin(self, token: re.Match[str], before: str) -> None:
        """Begin what the token opens, or end the tag that it closes."""
        at, text = token.end(), self._text
        starts, ends = not before.strip(), text[at : self._line_end(at)].strip() == ""
        match token.lastgroup:
            case "tag" | "empty":
                self._begin_tag(token, before, is_alone=starts and ends)
            case "fragment":
                name = ""
                if token[0] == "</>":
                    self._end_tag(name)
                elif (starts and ends) or self._closes(name, at):
                    self._open.append(name)
            case "triple":
                self._quote(token[0], at, is_sure=starts or ends)
            case "quote":
                self._begin_string(token[0], before, at, ends=ends)
            case "tex":
                self._quote(f"\\end{{{token['tex']}}}", at, is_sure=starts)
            case "here":
                is_sure = bool(token["mark"]) or token["here"].isupper()
                self._quote(f"\n{token['here']}", at, is_sure=is_sure)
            case "org":
                end = f"#+{'END' if 'BEGIN' in token[0] else 'end'}_{token['org']}"
                self._quote(end, at, is_sure=starts)
            case "jira":
                self._quote(f"{{{token['jira']}}}", at, is_sure=starts)
            case "bb":
                self._quote(f"[/{token['bb']}]", at, is_sure=starts)
            case "comment":
                self._quote("*/", at, is_sure=starts)
            case "cpp":
                self._quote(f'){token["cpp"]}"', at, is_sure=ends)
            case "rust":
                self._quote(f'"{token["rust"]}', at, is_sure=ends)
            case "lua":
                self._quote(f"]{token['lua']}]", at, is_sure=ends and not starts)
            case _:
                pass

    def _begin_tag(self, token: re.Match[str], before: str, *, is_alone: bool) -> None:
        name = token["tag"].lower()
        if token["slash"]:
            self._end_tag(name)
            return
        if token["empty"] or _EMPTY.fullmatch(name):
            return
        opens_line = not before.strip() and (is_alone or token["tag"][0].islower())
        is_draft = _DRAFT.search(name) is not None and not before[-1:].isalnum()
        is_sure = is_draft or (opens_line and not _LOOSE.fullmatch(name))
        if is_sure or self._closes(name, token.end()):
            self._open.append(name)

    def _end_tag(self, name: str) -> None:
        if name in self._open:
            last = len(self._open) - 1 - self._open[::-1].index(name)
            del self._open[last:]

    def _closes(self, name: str, at: int) -> bool:
        """Return whether a closing tag follows that no open tag of this name needs."""
        places = self._closings.get(name, ())
        return len(places) - bisect_left(places, at) > self._open.count(name)

    def _begin_string(self, mark: str, before: str, at: int, *, ends: bool) -> None:
        """Begin a string that its line does not end."""
        text = self._text
        if _is_within_word(text, at - 1):
            return
        same = _next_mark(text, mark, at, self._line_end(at))
        if same >= 0:
            self._at = same + 1
            return
        is_code = _STRING.search(before) is not None
        if is_code or (ends and not before[-1:].isalnum()):
            end = _next_mark(text, mark, at, len(text))
            if end >= 0 or (ends and is_code):
                self._quote(mark, at, is_sure=ends and is_code, end_at=end + 1 if end >= 0 else -1)

    def _end_line(self, start: int, end: int) -> None:
        """Begin a block that the line from `start` to `end` introduces."""
        line = self._text[start:end].rstrip()
        if ":" not in line and line[-1:] not in _CLOSING:
            return
        indent = len(line) - len(line.lstrip())
        if _SCALAR.match(line):
            self._void_to(self._block_end(end, indent, is_loose=True))
        elif _DIRECTIVE.match(line):
            self._void_to(self._block_end(end, indent, is_loose=False))
        elif bracket := _BRACKET.search(line):
            closing = _CLOSING[bracket["bracket"]]
            key = f"{indent} {closing}"
            found: re.Match[str] | None = None
            if key not in self._missing:
                found = re.compile(rf"\n[ \t]{{0,{indent}}}\{closing}").search(self._text, end)
            if found is not None:
                self._void_to(found.end())
                return
            self._missing.add(key)
            if bracket["sure"]:
                self._quote(f"\n{closing}", end, is_sure=True)

    def _block_end(self, at: int, indent: int, *, is_loose: bool) -> int:
        """Return where the block that follows this line end is over: it is indented deeper.

        A loose one that is not indented ends at an empty line.
        """
        text, is_first, is_indented = self._text, True, True
        place = at + 1
        while place < len(text):
            end = self._line_end(place)
            line = text[place:end]
            is_deeper = len(line) - len(line.lstrip()) > indent
            if not line.strip():
                if not is_indented:
                    return place
            elif is_first:
                is_first, is_indented = False, is_deeper
                if not is_deeper and not is_loose:
                    return at
            elif is_indented and not is_deeper:
                return place
            place = end + 1
        return len(text) + 1

    def _quote(self, end: str, at: int, *, is_sure: bool, end_at: int | None = None) -> None:
        """Skip a literal up to its end; one that is not sure must have an end."""
        outer = self._closings.get(self._open[0], ()) if self._open else ()
        limit = next(iter(outer[bisect_left(outer, at) :]), len(self._text))
        found = self._find(end, at, limit) if end_at is None else end_at
        if 0 <= found <= limit:
            self._void_to(found)
        elif is_sure and limit < len(self._text):
            self._void_to(limit)
        elif is_sure:
            self._literal = end

    def _find(self, end: str, at: int, limit: int) -> int:
        """Return where the end that follows is over; -1 without one."""
        if end in self._missing:
            return -1
        if end.startswith("\n"):
            found = re.compile(rf"\n[ \t]*{re.escape(end[1:])}(?![\w-])").search(self._text, at)
            place = found.end() if found is not None else -1
        else:
            place = self._text.find(end, at)
            place += len(end) if place >= 0 else 0
        if place < 0:
            self._missing.add(end)
        return place if place <= limit else -1

    def _void_to(self, place: int) -> None:
        self._at = max(self._at, place)
        self._void_until = self._at

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        return len(self._text) if end < 0 else end


def _places(tokens: Iterable[re.Match[str]], group: str) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for token in tokens:
        places.setdefault((token[group] or "").lower(), []).append(token.start())
    return places


def _next_mark(text: str, mark: str, at: int, limit: int) -> int:
    """Return the place of the next such quotation mark that is not escaped; -1 without one."""
    while (at := text.find(mark, at, limit)) >= 0:
        if text[at - 1] != "\\" and not _is_within_word(text, at):
            return at
        at += 1
    return -1


def _is_within_word(text: str, at: int) -> bool:
    """Return whether letters surround the mark, as in `don't`."""
    return text[at] == "'" and text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum()
