"""Markdown blocks, wrapped like the README."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from cuggino_cli.help.schemas import one_line

WIDTH = 100


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring, each wrapped and followed by an empty line."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        yield textwrap.fill(one_line(paragraph), WIDTH, break_on_hyphens=False)
        yield ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table, followed by an empty line."""
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def item(text: str) -> str:
    """Return a list item, wrapped."""
    return textwrap.fill(
        text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )


def drawing(docstring: str | None) -> Iterator[str]:
    """Yield the literal block of a docstring as a code block."""
    found = re.search(r"^::\n\n((?:(?: {4}.*)?\n)+)", inspect.cleandoc(docstring or ""), re.M)
    assert found is not None
    yield "```text"
    yield textwrap.dedent(found[1]).strip("\n")
    yield "```"
    yield ""
