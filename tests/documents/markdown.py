"""Pieces of Markdown, wrapped as the README is."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 100


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a docstring, each wrapped and followed by an empty line."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        yield textwrap.fill(without_numbers(paragraph), WIDTH, break_on_hyphens=False)
        yield ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table, followed by an empty line."""
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def item(text: str) -> str:
    """A line of a list, wrapped."""
    return textwrap.fill(
        text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )


def without_numbers(text: str) -> str:
    """In one line, without the numbers of requirements."""
    return " ".join(re.sub(r"\s*\((?:[A-Z]{3}-\d{3}(?:, | to )?)+\)", "", text).split())


def drawing(docstring: str | None) -> Iterator[str]:
    """What stands below `::` in a docstring, as a block of code, followed by an empty line."""
    found = re.search(r"^::\n\n((?:(?: {4}.*)?\n)+)", inspect.cleandoc(docstring or ""), re.M)
    assert found is not None
    yield "```text"
    yield textwrap.dedent(found[1]).strip("\n")
    yield "```"
    yield ""
