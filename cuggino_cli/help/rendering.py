"""Markdown as plain text for a terminal: as much Markdown as the help pages use."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from cuggino_cli.help import TOPICS

_ITEM = re.compile(r"( *)(?:-|\d+\.) ")
_NARROWEST_CELL = 30
"""Columns for the last cell of a table; with fewer, each row becomes a block of lines."""
_GAP = "  "


def rendered(markdown: str, columns: int) -> Iterator[str]:
    """Yield the lines of the text, wrapped to `columns`. Code keeps its lines."""
    for block in _blocks(markdown):
        first = block[0]
        if first.startswith("```"):
            yield from (f"    {line}".rstrip() for line in block[1:-1])
        elif first.startswith("#"):
            yield from _heading(first, columns)
        elif first.startswith("|"):
            yield from _table(block, columns)
        elif first:
            yield from _paragraph(" ".join(line.strip() for line in block), first, columns)
        else:
            yield ""


def section(markdown: str, name: str) -> str | None:
    """Return the part below the heading `name`, heading included; case does not matter."""
    level = 0
    found: list[str] = []
    for block in _blocks(markdown):
        heading = re.match(r"(#+) (.*)", block[0])
        if heading and level and len(heading[1]) <= level:
            break
        if heading and not level and heading[2].replace("`", "").lower() == name.lower():
            level = len(heading[1])
        if level:
            found += block
    return "\n".join(found).rstrip("\n") + "\n" if found else None


def headings(markdown: str) -> list[str]:
    """Return the headings below the title."""
    return [
        block[0].lstrip("# ").replace("`", "")
        for block in _blocks(markdown)
        if block[0].startswith("##")
    ]


def _blocks(markdown: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in re.sub(r"<!--.*?-->\n*", "", markdown, flags=re.DOTALL).splitlines():
        if block and not _continues(block, line):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _continues(block: Sequence[str], line: str) -> bool:
    first = block[0]
    if first.startswith("```"):
        return len(block) == 1 or block[-1] != "```"
    if first.startswith("|"):
        return line.startswith("|")
    if not first or not line or first.startswith("#"):
        return False
    return not line.startswith(("#", "|", "```")) and not _ITEM.match(line)


def _heading(line: str, columns: int) -> Iterator[str]:
    marks, _, title = line.partition(" ")
    shown = list(_wrapped(_inline(title).replace("`", ""), columns))
    yield from shown
    if len(marks) <= 2:
        yield ("=" if len(marks) == 1 else "-") * max(map(len, shown))


def _paragraph(text: str, first: str, columns: int) -> Iterator[str]:
    item = _ITEM.match(first)
    before = item[1] if item else ""
    after = " " * len(item[0]) if item else ""
    yield from _wrapped(_inline(text), columns, first=before, rest=after)


def _table(lines: Sequence[str], columns: int) -> Iterator[str]:
    heads, _, *rows = ([_inline(cell) for cell in _cells(line)] for line in lines)
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads) - 1)]
    room = columns - sum(width + len(_GAP) for width in widths)
    if room >= min(_NARROWEST_CELL, max(len(row[-1]) for row in (heads, *rows))):
        for row in (heads, *rows) if any(heads) else rows:
            lead = "".join(f"{cell:<{at}}{_GAP}" for cell, at in zip(row, widths, strict=False))
            yield from _wrapped(lead + row[-1], columns, rest=" " * len(lead), keep=lead)
    else:
        for number, row in enumerate(rows):
            yield from [""] if number else []
            yield from _block(heads, row, columns)


def _block(heads: Sequence[str], row: Sequence[str], columns: int) -> Iterator[str]:
    yield from _wrapped(row[0], columns, first="  ", rest="  ")
    facts = [f"{head}: {cell}" for head, cell in zip(heads[1:-1], row[1:-1], strict=True) if cell]
    yield from _wrapped("; ".join(facts), columns, first=" " * 6, rest=" " * 6)
    yield from _wrapped(row[-1], columns, first=" " * 6, rest=" " * 6)


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _inline(text: str) -> str:
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", _link, text)
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"\*\*?(\S.*?)\*\*?", r"\1", part)
        for part in parts
    )


def _link(match: re.Match[str]) -> str:
    text, target = match.groups()
    if target.startswith("https://"):
        return text if text in target else f"{text} ({target})"
    name = target.partition("#")[0].removesuffix(".md")
    return f"{text} (`cuggino help {name}`)" if name in TOPICS else text


def _wrapped(
    text: str, columns: int, *, first: str = "", rest: str = "", keep: str = ""
) -> Iterator[str]:
    """Wrap the text; its beginning `keep` is left as it is."""
    lines = textwrap.wrap(
        text[len(keep) :],
        max(columns, len(rest) + 20),
        initial_indent=keep or first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    yield from lines or ([keep.rstrip()] if keep.strip() else [])
