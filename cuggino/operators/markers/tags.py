"""The tags of a growing text: those that count outside of code, and those that open a line.

Both readers are frozen values. `feed` returns the reader after a piece, and the tags that the piece
decides; it does not matter how the text is split into pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from cuggino.operators.markers.markdown import Blocks, Kind, Line, code_and_html
from cuggino.operators.markers.quoting import Quotes, Tag, Written, may_quote

T = TypeVar("T")

Chain: TypeAlias = "tuple[Chain[T], T] | None"
"""A list to which a frozen value adds at no cost: all but the last item, and the last one."""


def unrolled(chain: Chain[T]) -> list[T]:
    """Return the items, the first one first."""
    items: list[T] = []
    while chain is not None:
        chain, item = chain
        items.append(item)
    items.reverse()
    return items


def joined(pieces: Chain[str]) -> str:
    """Return the text of the pieces."""
    if pieces is None:
        return ""
    return pieces[1] if pieces[0] is None else "".join(unrolled(pieces))


class _Run(NamedTuple):
    """Backticks: the start or end of a code span, or of a fence."""

    length: int
    is_escaped: bool = False


_Token = Tag | _Run


class _Paragraph(NamedTuple):
    """What follows unmatched backticks in their paragraph; without any, nothing waits."""

    span: int = 0
    """Length of the backticks that may begin a code span; 0 without any."""
    behind: Chain[_Token] = None
    unsure: int | None = None
    """Start of the first tag that waits."""

    def take(self, token: _Token, found: list[Tag]) -> _Paragraph:
        """Return the paragraph after the token, which is found if it is certainly a tag."""
        if isinstance(token, Tag):
            if not self.span:
                found.append(token)
                return self
            unsure = token.start if self.unsure is None else self.unsure
            return _Paragraph(self.span, (self.behind, token), unsure)
        if not self.span:
            return self if token.is_escaped else self._replace(span=token.length)
        if token.length == self.span:
            return _Paragraph()
        return self._replace(behind=(self.behind, token))

    def finish(self) -> Iterator[Tag]:
        """Yield the tags that wait, as the backticks before them begin no code span."""
        tokens = unrolled(self.behind)
        closing: dict[int, int] = {}
        nearest: dict[int, int] = {}
        for index in range(len(tokens) - 1, -1, -1):
            token = tokens[index]
            if isinstance(token, _Run):
                closing[index] = nearest.get(token.length, index)
                nearest[token.length] = index
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if isinstance(token, Tag):
                yield token
            elif not token.is_escaped:
                index = closing[index]
            index += 1


class _Tokens(NamedTuple):
    """Patterns of what matters in a text, and at its end of the beginnings of that."""

    plain: re.Pattern[str]
    span: re.Pattern[str]
    """After unmatched backticks, where the end of the paragraph matters."""
    fence: re.Pattern[str]
    """In a line that may open a fence, where its end matters."""


def _one_of(names: frozenset[str]) -> str:
    return "|".join(map(re.escape, sorted(names))) or "(?!)"


@lru_cache(maxsize=64)
def _any_tag(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(f"</?(?:{_one_of(names)})>")


@lru_cache(maxsize=64)
def _tokens_of(names: frozenset[str]) -> _Tokens:
    # Each alternative begins with a character of its own: that makes the search fast.
    tags = [f"{slash}{name}>" for name in names for slash in ("", "/")]
    halves = "|".join(re.escape(tag[:end]) for tag in tags for end in range(len(tag))) or "(?!)"
    lead = r"[ \t>]*+(?:(?P<led>`++)|(?P<tildes>~{3,}+)|(?P<part_lead>~{0,2}+\Z))"
    rest = (
        r"|\\(?:(?P<escaped>`++)|(?P<part_escape>\Z))"
        r"|`(?P<ticks>`*+)"
        f"|<(?:(?P<slash>/?)(?P<name>{_one_of(names)})>|(?P<part_tag>{halves})\\Z)"
    )
    return _Tokens(
        plain=re.compile(rf"\n{lead}|`(?P<run>`*+)[^`\n]*+`(?P=run)(?=(?P<code>[^`])){rest}"),
        span=re.compile(rf"\n(?:[ \t]*+(?=(?P<blank>\n))|{lead}){rest}"),
        fence=re.compile(rf"\n(?P<newline>){rest}"),
    )


_FENCE = 3
"""Fewest backticks or tildes that open a fence."""
_RUNS = frozenset({"led", "escaped", "ticks", "tildes"})
"""Tokens that more text may make longer."""
_CLOSING = {mark: re.compile(rf"\n[ \t>]*+({mark}++)[ \t]*+\r?(?=\n)") for mark in "`~"}
_MAY_CLOSE = {mark: re.compile(rf"\n[ \t>]*+({mark}*+)[ \t]*+\r?") for mark in "`~"}
_CONTINUES = {"\n": " \t>", " ": " \t>", "\t": " \t>", ">": " \t>", "`": "`", "~": "~"}
"""What adds nothing to an unfinished token, by its last character."""


class FreeTags(NamedTuple):
    """A reader of the tags that count anywhere outside of code.

    Code is a fence, indented to any depth (agents write them inside lists) and up to the end of the
    text when it is not closed, and a code span, which ends within its paragraph. A tag waits

    - after unmatched backticks: for their counterpart (it was in a code span) or the end of the
      paragraph (it was not);
    - in a line that begins with three or more backticks: for the end of the line (a fence) or
      another backtick (none).

    Only tokens after unmatched backticks are looked at twice.
    """

    names: frozenset[str]
    tail: Chain[str] = (None, "\n")
    """The unfinished token at the end of the text. A line end precedes the text."""
    fence: str = ""
    """The marks of the open fence."""
    opened: int = 0
    """Start of the line that opens it, or may open it."""
    line: Chain[_Token] = None
    """The backticks that may open a fence, and the tags in their line."""
    paragraph: _Paragraph = _Paragraph()

    def sure(self, end: int) -> int:
        """Return the start of the first undecided or incomplete tag of a text with this end."""
        if self.paragraph.unsure is not None:
            return self.paragraph.unsure
        is_half = self.tail is not None and self.tail[1].startswith("<")
        return end - len(joined(self.tail)) if is_half else end

    def feed(
        self, piece: str, start: int = 0, *, is_last: bool = False
    ) -> tuple[FreeTags, list[Tag]]:
        """Return the reader after the piece at the offset, and the tags that it decides."""
        paragraph = self.paragraph
        tokens = _tokens_of(self.names)
        if self.tail is None:
            pattern = tokens.fence if self.line else tokens.span if paragraph.span else tokens.plain
            if "\n" not in piece if self.fence else pattern.search(piece) is None:
                return self, []
        elif not is_last:
            same = _CONTINUES.get(self.tail[1][-1:])
            if same and not piece.strip(same):
                return self._replace(tail=(self.tail, piece)), []
        tail = joined(self.tail)
        text, base, at = tail + piece, start - len(tail), 0
        fence, opened, line = self.fence, self.opened, self.line
        found: list[Tag] = []
        while True:
            if fence:
                close = None
                if fence in text:
                    ends = _CLOSING[fence[0]].finditer(text, at)
                    close = next((end for end in ends if len(end[1]) >= len(fence)), None)
                if close is None:
                    last = text.rfind("\n", at)
                    may_close = last >= 0 and _MAY_CLOSE[fence[0]].fullmatch(text, last)
                    at = last if may_close else len(text)
                    break
                at, fence = close.end(), ""
            pattern = tokens.fence if line else tokens.span if paragraph.span else tokens.plain
            token = pattern.search(text, at)
            if token is None:
                at = len(text)
                break
            kind, at = token.lastgroup or "", token.end()
            is_part = kind in _RUNS and at == len(text) and not is_last
            if is_part or kind.startswith("part"):
                at = token.start()
                break
            match kind:
                case "name":
                    tag = Tag(base + token.start(), base + at, token["name"], bool(token["slash"]))
                    if not line:
                        paragraph = paragraph.take(tag, found)
                    else:
                        line = (line, tag)
                        if paragraph.unsure is None:
                            paragraph = paragraph._replace(unsure=tag.start)
                case "led" if len(token["led"]) >= _FENCE:
                    line, opened = (None, _Run(len(token["led"]))), base + token.start() + 1
                case "led" | "escaped" | "ticks":
                    length = len(token[kind]) + (kind == "ticks")
                    for held in (*unrolled(line), _Run(length, kind == "escaped")):
                        paragraph = paragraph.take(held, found)
                    line = None
                case "tildes":
                    fence, opened = token["tildes"], base + token.start() + 1
                case "newline":
                    run, *_ = unrolled(line)
                    line, fence, at = None, "`" * run[0], token.start()
                case _:
                    pass
            if fence or kind == "blank":
                found += paragraph.finish()
                paragraph = _Paragraph()
        rest = (None, text[at:]) if at < len(text) else None
        return FreeTags(self.names, rest, fence, opened, line, paragraph), found

    def finish(self, end: int) -> tuple[list[Tag], FreeTags | None]:
        """Return the remaining tags, as the text ends here, and the reader if a fence is open."""
        last, found = self.feed("", end, is_last=True)
        found += last.paragraph.finish()
        is_open = last.line is not None
        if last.fence:
            close = _MAY_CLOSE[last.fence[0]].fullmatch(joined(last.tail))
            is_open = close is None or len(close[1]) < len(last.fence)
        return found, last if is_open else None

    def read(self, text: str, start: int) -> tuple[list[Tag], FreeTags | None]:
        """Return what `feed` and `finish` return for the text at the offset."""
        is_plain = not self.fence and "```" not in text and "~~~" not in text
        if is_plain and not _any_tag(self.names).search(text):
            return [], None
        reader, found = self.feed(text, start)
        rest, opened = reader.finish(start + len(text))
        return found + rest, opened


_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")
_DEEPEST = 3
"""Most spaces before a tag that opens its line."""


class _Line(NamedTuple):
    """A line of a paragraph: its place, its text without tags, and the tags that may count."""

    start: int
    text: str
    tags: list[Tag]
    is_quoted: bool = False


class _Patterns(NamedTuple):
    """Patterns of some tags: in a line, and where one opens a line that may not be complete."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    next: re.Pattern[str]
    trigger: re.Pattern[str]
    half: re.Pattern[str]
    longest: int


@lru_cache(maxsize=64)
def _patterns_of(names: frozenset[str]) -> _Patterns:
    name, lead = _one_of(names), f" {{0,{_DEEPEST}}}"
    halves = "|".join(re.escape(name[:end]) for name in names for end in range(len(name) + 1))
    return _Patterns(
        opening=re.compile(f"{lead}<({name})>"),
        closing=re.compile(f"</({name})>"),
        next=re.compile(f"</(?:{name})>[ \t]*+(?=<({name})>)"),
        trigger=re.compile(f"[\r\n]{lead}<(?:{name})>"),
        half=re.compile(f"[\r\n]{lead}(<(?:{halves or '(?!)'}))\\Z"),
        longest=_DEEPEST + max(map(len, names), default=0) + len("\n<>"),
    )


class LineTags(NamedTuple):
    """A reader of the tags that count only where they open a line of a Markdown text.

    An opening tag counts if it opens a line of a paragraph, after at most three spaces, and is not
    in a block quote; or if it directly follows a closing tag, which must then have closed a marker
    (`Tag.after`). A closing tag counts in any line that is not marked as quoted. None counts in
    code, in a comment, or in another tag of HTML. Paragraphs are those of CommonMark, with two
    exceptions: these tags are words, and only HTML's own names begin a block of HTML.

    Nor does a tag count that an open tag or literal quotes (`Quotes`), unless `quotes` is None.

    A tag is returned when its paragraph ends; behind what may quote it, when the part ends. Until a
    tag opens a line, the lines are not even read.
    """

    names: frozenset[str]
    recent: str = "\n"
    """The last characters, from before a tag that could be incomplete."""
    unread: Chain[str] = None
    """The text from `start` on: all of it until a tag opens a line, then its last line."""
    is_reading: bool = False
    start: int = 0
    blocks: Blocks = Blocks()
    paragraph: Chain[_Line] = None
    """The lines of the open paragraph."""
    pending: int | None = None
    """The start of the first tag in it."""
    last: int = -1
    """The start of the last tag of a paragraph that has ended."""
    others: frozenset[str] = frozenset()
    """Markers that count anywhere, and quote nothing."""
    quotes: Quotes | None = Quotes()
    """What the earlier parts leave open."""
    written: Chain[Written] = None
    """The lines of this part, from the first paragraph on in which something may quote."""
    tags: Chain[Tag] = None
    """The tags in them."""
    may_quote: bool = False
    """True if something before may quote the next tag."""
    held: int | None = None
    """The start of the first tag that waits for the end of the part."""

    def sure(self, end: int) -> int:
        """Return the offset before which no text after this end adds a tag."""
        if self.held is not None:
            return self.held
        if self.is_reading:
            return self.start if self.pending is None else self.pending
        half = _patterns_of(self.names).half.search(self.recent) if "<" in self.recent else None
        return end if half is None else end - len(half[1])

    def feed(self, piece: str) -> tuple[LineTags, list[Tag]]:
        """Return the reader after the piece, and the tags that it decides."""
        if not piece:
            return self, []
        unread = (self.unread, piece)
        if self.is_reading:
            reader = self._replace(unread=unread)
            before = self.unread[1][-1:] if self.unread is not None else ""
            ends_line = before == "\r" or "\n" in piece or "\r" in piece
            return reader._read_lines() if ends_line else (reader, [])
        patterns = _patterns_of(self.names)
        recent = self.recent + piece
        is_reading = ">" in piece and patterns.trigger.search(recent) is not None
        reader = self._replace(
            recent=recent[-patterns.longest :], unread=unread, is_reading=is_reading
        )
        return reader._read_lines() if is_reading else (reader, [])

    def finish(self) -> tuple[LineTags, list[Tag]]:
        """Return the tags of an unfinished paragraph too, as if the text ended here.

        What follows continues the paragraph, but no code or tag of HTML that is still open.
        """
        if not self.is_reading:
            return self, []
        whole, found = self._read([(self.start, joined(self.unread))])
        whole, rest = whole._end_paragraph()
        found += rest
        quotes = self.quotes
        if quotes is not None and (whole.tags is not None or whole.may_quote):
            quotes, counted = quotes.read(unrolled(whole.written), unrolled(whole.tags))
            if whole.held is not None:
                found += [tag for tag in counted if tag.start >= whole.held]
            if self.unread is not None and self.unread[1]:  # the next part continues this line
                before, _ = self._end_paragraph()
                quotes, _ = (self.quotes or quotes).read(
                    unrolled(before.written), unrolled(before.tags)
                )
        return self._replace(
            paragraph=None,
            pending=None,
            last=whole.last,
            quotes=quotes,
            written=None,
            tags=None,
            may_quote=quotes is not None and quotes.is_open,
            held=None,
        ), found

    def _read_lines(self) -> tuple[LineTags, list[Tag]]:
        text, at = joined(self.unread), 0
        lines: list[tuple[int, str]] = []
        for end in _LINE_END.finditer(text):
            lines.append((self.start + at, text[at : end.start()]))
            at = end.end()
        rest = self._replace(start=self.start + at, unread=(None, text[at:]))
        return rest._read(lines)

    def _read(self, lines: Iterable[tuple[int, str]]) -> tuple[LineTags, list[Tag]]:
        """Read lines, each with its offset; return the tags of the paragraphs that they end."""
        reader, found = self, list[Tag]()
        blocks, paragraph, pending = self.blocks, self.paragraph, self.pending
        for start, text in lines:
            masked = _any_tag(self.names).sub(_mask, text) if "<" in text else text
            blocks, line = blocks.read(masked)
            if line.begins and paragraph is not None:
                if pending is not None or reader._suspects(paragraph):
                    reader = reader._replace(paragraph=paragraph, pending=pending)
                    reader, decided = reader._end_paragraph()
                    found += decided
                paragraph = pending = None
            if line.kind is Kind.TEXT or line.kind is Kind.HTML:
                tags = [*_tags_in(text, start, line, self.names)] if masked != text else []
                if tags and pending is None:
                    pending = tags[0].start
                content = masked.lstrip(" \t>") if line.is_quoted else masked
                at = start + len(text) - len(content)
                paragraph = (paragraph, _Line(at, content, tags, line.is_quoted))
            elif reader.may_quote and (line.kind is Kind.NOTHING or blocks.is_indented_code):
                written = Written(start, masked, is_code=line.kind is Kind.RAW)
                reader = reader._replace(written=(reader.written, written))
        return reader._replace(blocks=blocks, paragraph=paragraph, pending=pending), found

    def _suspects(self, paragraph: Chain[_Line]) -> bool:
        """Return whether something up to the end of the paragraph may quote a tag."""
        if self.quotes is None or self.may_quote:
            return self.may_quote
        while paragraph is not None:
            paragraph, (_, text, *_) = paragraph
            if may_quote(_any_tag(self.others).sub(_mask, text) if "<" in text else text):
                return True
        return False

    def _end_paragraph(self) -> tuple[LineTags, list[Tag]]:
        """Return the reader after the paragraph, and those of its tags that nothing may quote."""
        if self.paragraph is None:
            return self, []
        suspects = self._suspects(self.paragraph)
        lines = unrolled(self.paragraph)
        regions = [*code_and_html("\n".join(line.text for line in lines))]
        found = [tag for tag in _outside(lines, regions) if tag.start > self.last]
        written, tags, held = self.written, self.tags, self.held
        if suspects:
            for line in _blanked(lines, regions, self.others):
                written = (written, line)
            if found and held is None:
                held = found[0].start
        for tag in found:
            tags = (tags, tag)
        return self._replace(
            paragraph=None,
            pending=None,
            last=found[-1].start if found else self.last,
            written=written,
            tags=tags,
            may_quote=suspects,
            held=held,
        ), (found if held is None else [])


def _outside(lines: Sequence[_Line], regions: Iterable[tuple[int, int]]) -> Iterator[Tag]:
    """Yield the tags of a paragraph outside of its code and HTML, the `regions` of its text."""
    places = iter(regions)
    region = next(places, None)
    at = 0
    for line in lines:
        for tag in line.tags:
            place = tag.start - line.start + at
            while region is not None and region[1] <= place:
                region = next(places, None)
            if region is None or region[0] > place:
                yield tag
        at += len(line.text) + 1


def _blanked(
    lines: Sequence[_Line], regions: Iterable[tuple[int, int]], others: frozenset[str]
) -> Iterator[Written]:
    """Yield the lines of a paragraph without quotes, code, comments and other markers."""
    text = "\n".join(" " * len(line.text) if line.is_quoted else line.text for line in lines)
    pieces, at = list[str](), 0
    for start, end in regions:
        if text[start] == "`" or text.startswith(("<!", "<?"), start):
            pieces += [text[at:start], re.sub(r"[^\n]", " ", text[start:end])]
            at = end
    blanked = "".join([*pieces, text[at:]])
    if others:
        blanked = _any_tag(others).sub(_mask, blanked)
    for line, words in zip(lines, blanked.split("\n"), strict=True):
        yield Written(line.start, words)


def _mask(tag: re.Match[str]) -> str:
    """Return a word of the same length that cannot be part of a tag: no value begins with `=`."""
    return "=" + "x" * (len(tag.group()) - 1)


def _tags_in(text: str, at: int, line: Line, names: frozenset[str]) -> Iterator[Tag]:
    """Yield the tags that may count in the line of text that begins at the offset."""
    patterns = _patterns_of(names)
    opens = line.kind is Kind.TEXT and not line.is_quoted
    if opens and (tag := patterns.opening.match(text)):
        yield Tag(at + tag.start(1) - 1, at + tag.end(), tag[1], closes=False)
    if line.is_lazy or not line.is_quoted:
        for tag in patterns.closing.finditer(text):
            end = at + tag.end()
            yield Tag(at + tag.start(), end, tag[1], closes=True)
            if opens and (following := patterns.next.match(text, tag.start())):
                name, start = following[1], at + following.end()
                yield Tag(start, start + len(name) + 2, name, closes=False, after=end)
