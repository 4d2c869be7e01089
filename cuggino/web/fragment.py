"""Parts of a page that change while it is open."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

_ID = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_LINE_END = re.compile("\r\n|\r|\n")


class Fragment(NamedTuple):
    """HTML for the element of a page with the id `to`."""

    to: str
    how: Literal["replace", "append", "outer"]
    """`replace` its children, `append` children whose ids the page lacks, or replace it itself."""
    html: str


def as_templates(fragments: Iterable[Fragment]) -> str:
    """Return the fragments as `<template>` elements, as `live.js` expects them.

    Raises:
        ValueError: an id is not one of ours.
    """
    return "".join(map(_template, fragments))


def as_message(text: str, *, id: int | None = None, event: str | None = None) -> bytes:
    """Return a server-sent event that no text can end early or extend by a field."""
    lines = [f"data: {line}\n" for line in _LINE_END.split(text)]
    before = (f"event: {event}\n" if event else "") + (f"id: {id}\n" if id is not None else "")
    return f"{before}{''.join(lines)}\n".encode("utf-8", "replace")


def _template(fragment: Fragment) -> str:
    if _ID.fullmatch(fragment.to) is None:
        raise ValueError(f"{fragment.to!r} is not the id of a page")
    how = html.escape(fragment.how)
    return f'<template data-to="{fragment.to}" data-how="{how}">{fragment.html}</template>'


def slug(name: str, default: str = "project") -> str:
    """Return a name as part of a URL and of an id."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")[:40].rstrip("-") or default
