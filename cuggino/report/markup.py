"""HTML whose text is escaped on insertion."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import TypeAlias

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_ACTIVE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}\ud800-\udfff]")

_IN_SCRIPT = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))

_VOID = frozenset({"meta", "link", "input", "br"})


class Html(str):
    """Text that is already HTML; made only by this module."""

    __slots__ = ()


PLACE = Html("<later>")
"""A place in HTML for text that is inserted later; escaped text cannot contain it."""

Child: TypeAlias = str | Iterable["str | None"] | None
"""Text, which is escaped unless it is `Html`; None; or a sequence of both."""


def visible(text: str) -> str:
    """Replace invisible and control characters by visible ones.

    Controls except newline and tab become their pictures (ESC is `␛`), directional marks and C1
    controls are spelled out, lone surrogates become U+FFFD.
    """
    return _ACTIVE.sub(_picture, text.replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{{{code:x}}}"


def escape(text: str) -> Html:
    """Escape the text for an element or a quoted attribute."""
    return Html(html.escape(visible(text)))


def join(*children: Child) -> Html:
    """Join the children."""
    return Html("".join(_flat(children)))


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Html:
    """Return an element.

    `class_` is `class`, `data_x` is `data-x`; True is an attribute without a value, None and False
    omit it.
    """
    opening = name
    for key, value in attributes.items():
        if value is True:
            opening += f" {_attribute(key)}"
        elif value is not None and value is not False:
            opening += f' {_attribute(key)}="{escape(value)}"'
    if name in _VOID:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{join(*children)}</{name}>")


def island(name: str, text: str) -> Html:
    """Return JSON in a script element that is never run and cannot be closed by its content."""
    return Html(f'<script type="application/json" id="{escape(name)}">{for_island(text)}</script>')


def for_island(text: str) -> str:
    """Return JSON with the characters escaped that a script element must not contain."""
    for character, written in _IN_SCRIPT:  # much faster than `str.translate`
        text = text.replace(character, written)
    return text


def to_json(value: object) -> str:
    """Return compact JSON that is valid UTF-8; a lone surrogate becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _flat(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield escape(child)
        elif child is not None:
            yield from _flat(child)
