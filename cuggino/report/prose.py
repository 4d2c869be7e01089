"""Agents' Markdown and diffs as HTML.

No agent text becomes markup, the name of an attribute, an id or a class: HTML in Markdown is text,
images are not loaded, and links allow only `http` and `https`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from cuggino.inert import inert
from cuggino.report.cutting import Cut, cut

MOST: Final = 20_000
"""Characters of Markdown that are rendered; of a longer text, head and tail."""

_BOX = re.compile(r"\A\[([ xX])\] ")
_CODE = re.compile("`([^`]+)`")
_LINK = re.compile(r"https?://[^\s]", re.IGNORECASE)


def markup(html: str = "") -> Markup:
    """Mark HTML as safe, so that templates do not escape it."""
    return Markup(html)


def markdown(text: str | Cut, *, most: int = MOST) -> Markup:
    """Render Markdown of an agent or a person as HTML."""
    known = (Cut(text) if isinstance(text, str) else text).fit(most)
    if not known.left_out:
        return _rendered(known.head)
    return markup("").join((_rendered(known.head), left_out(known), _rendered(known.tail)))


def coded(title: str) -> Markup:
    """Return a title as HTML, with what stands in back-quotes as code."""
    code = markup("<code>{}</code>")
    parts = enumerate(_CODE.split(inert(title)))
    return markup("").join(code.format(part) if n % 2 else part for n, part in parts)


def left_out(text: Cut) -> Markup:
    """Return the note on the omitted part of a cut text; empty for a whole one."""
    if not text.left_out:
        return markup("")
    return markup('<p class="cut">… {} characters left out …</p>').format(f"{text.left_out:,}")


def _rendered(text: str) -> Markup:
    if not text.strip():
        return markup("")
    parser = _parser()
    tokens = parser.parse(inert(text))
    _plain(tokens)
    return markup(parser.renderer.render(tokens, parser.options, {}))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["image", "html_block", "html_inline"])
    # The library documents no other way to choose which links are allowed.
    parser.validateLink = lambda url: _LINK.match(url) is not None  # type: ignore[method-assign]
    return parser


def _plain(tokens: Sequence[Token]) -> None:
    """Keep only the attributes of this module, and headings below those of the page."""
    for token in tokens:
        href = token.attrs.get("href") if token.type == "link_open" else None
        start = token.attrs.get("start") if token.type == "ordered_list_open" else None
        token.attrs = {}
        if href is not None:
            token.attrs = {"href": href, "rel": "noreferrer nofollow"}
        if isinstance(start, int):
            token.attrs = {"start": start}
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 3)}"
        if token.type == "inline" and token.children and token.children[0].type == "text":
            first = token.children[0]
            first.content = _BOX.sub(_box, first.content)
        token.info = ""  # the language of a code block, which would be a class
        if token.children:
            _plain(token.children)


def _box(found: re.Match[str]) -> str:
    return "☐ " if found[1] == " " else "☑ "


def diff(text: str | Cut) -> Markup:
    """Render a diff, with a class per line that is added, deleted or a heading."""
    known = Cut(text) if isinstance(text, str) else text
    parts: list[Markup] = [_lines(known.head)]
    if known.left_out:
        parts += [left_out(known), _lines(known.tail)]
    return markup("").join(parts)


def _lines(text: str) -> Markup:
    body = "".join(_spans(inert(text).splitlines()))
    return markup('<pre class="diff">{}</pre>').format(markup(body))


def _spans(lines: Iterable[str]) -> Iterator[str]:
    """Yield each line; equal neighbors share a span."""
    kind = ""
    held: list[str] = []
    for line in lines:
        now = _class(line)
        if held and now != kind:
            yield _span(kind, held)
            held = []
        kind = now
        held.append(line)
    if held:
        yield _span(kind, held)


def _span(kind: str, lines: list[str]) -> str:
    text = escape("\n".join(lines) + "\n")
    return f'<span class="{kind}">{text}</span>' if kind else str(text)


def _class(line: str) -> str:
    """Return the class of a line: `a` added, `d` deleted, `h` heading, `f` file."""
    if line.startswith(("+++ ", "--- ", "diff ", "index ", "new file", "deleted file", "rename ")):
        return "f"
    if line.startswith("@@"):
        return "h"
    return {"+": "a", "-": "d"}.get(line[:1], "")


__all__ = ["MOST", "cut", "diff", "left_out", "markdown"]
