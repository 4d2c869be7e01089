"""The marble diagrams of docstrings, so that a test can execute them.

A drawing is a literal block of labeled rows, the last of which is the result::

    a:              a---b--|
    b:              (c|)
    merge_now:      (ac)---b--|     both begin at once

At least three spaces separate a diagram from a note.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

_ROW = re.compile(r"(?P<label>[^:]+):\s{2,}(?P<diagram>\S+(?:\s{1,2}\S+)*)(?:\s{3,}(?P<note>.+))?")
_DIAGRAM = re.compile(r"[-\w()|#^! .]+")


class Row(NamedTuple):
    """One stream of a drawing."""

    label: str
    diagram: str
    note: str


Drawing = tuple[Row, ...]


def drawings(docstring: str) -> Iterator[Drawing]:
    """Yield the drawings of a docstring: the sources, then the result."""
    inside, rows = False, list[Row]()
    for line in [*inspect.cleandoc(docstring).splitlines(), "the end"]:
        if inside and line.startswith(" ") and (row := _row(line.strip())):
            rows.append(row)
            continue
        if len(rows) > 1:
            yield tuple(rows)
        rows = []
        if line.endswith("::"):
            inside = True
        elif line and not line.startswith(" "):
            inside = False


def _row(line: str) -> Row | None:
    found = _ROW.fullmatch(line)
    if found is None or not _DIAGRAM.fullmatch(found["diagram"]):
        return None
    return Row(found["label"], found["diagram"], found["note"] or "")
