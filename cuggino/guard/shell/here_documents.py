"""Bounds of here-documents: refused unless bash must read them as the parser does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from cuggino.guard.shell.tree import Refused

_DELIMITER = r"""(?a)(\\?)([\w.+%@:,-]+)|(["'])([\w.+%@:, -]*)\3"""
_UNCLEAR = "The end of a here-document is ambiguous; write the text with the file tools instead."


class HereDocument(NamedTuple):
    """A here-document, and the end of the substitution around it."""

    redirect: dict[str, Any]
    end: int | None = None


def check_here_documents(documents: list[HereDocument], source: bytes) -> None:
    """Raise `Refused` unless the bodies follow each other from the next line on (R4, R5).

    bash reads the bodies at the end of the line, wherever that is. So there must be no other line
    end between an operator and its body, for example in quotes or substitutions.
    """
    cursors: dict[int, int] = {}
    for document in sorted(documents, key=lambda one: one.redirect["OpPos"]["Offset"]):
        line_end = source.find(b"\n", document.redirect["Word"]["End"]["Offset"])
        if line_end < 0:
            raise _refused(document, _UNCLEAR, source)
        start = cursors.get(line_end, line_end + 1)
        cursors[line_end] = _check_body(document, start, source) + 1


def may_hold_them(statements: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the statements of a substitution that may have here-documents: those of its only list.

    bash parses a substitution, prints it, and parses the printed text when it runs it. Text after a
    here-document is then printed differently.
    """
    left = list(statements) if len(statements) == 1 else []
    while left:
        statement = left.pop()
        command = statement.get("Cmd", {})
        if command.get("Type", "CallExpr") == "CallExpr":
            yield statement
        elif command["Type"] == "BinaryCmd":
            left += [command["X"], command["Y"]]


def _check_body(document: HereDocument, start: int, source: bytes) -> int:
    """Return the end of the line that ends the here-document whose body begins at `start`."""
    redirect = document.redirect
    word = redirect["Word"]
    found = re.fullmatch(
        _DELIMITER, source[word["Pos"]["Offset"] : word["End"]["Offset"]].decode(errors="replace")
    )
    if found is None:
        raise _refused(
            document, "The delimiter of a here-document is not a plain word; use `EOF`.", source
        )
    delimiter, is_literal = found[2] or found[4] or "", bool(found[1] or found[3])
    body = redirect.get("Hdoc")  # includes the closing line; missing if empty
    if body is None:
        end = source.find(b"\n", start)
        end = end if end >= 0 else len(source)
    else:
        end = body["End"]["Offset"]
    lines = source[start:end].decode(errors="replace").split("\n")
    if redirect["Op"] == "<<-":
        lines = [line.lstrip("\t") for line in lines]
    if (
        (body is not None and body["Pos"]["Offset"] != start)
        or (document.end is not None and end >= document.end)
        or source[end : end + 1] not in (b"", b"\n")
        or delimiter not in lines
        or lines.index(delimiter) != len(lines) - 1
    ):
        raise _refused(document, _UNCLEAR, source)
    lines.pop()
    if document.end is not None and any(
        line.startswith(delimiter) and ")" in line[len(delimiter) :] for line in lines
    ):  # R4: bash would end it there
        raise _refused(
            document,
            "A line of a here-document begins with its delimiter; use another delimiter.",
            source,
        )
    if not is_literal and any(line.endswith("\\") for line in lines):
        raise _refused(
            document,
            "A line of a here-document ends in a backslash; quote the delimiter: `<<'EOF'`.",
            source,
        )
    return end


def _refused(document: HereDocument, reason: str, source: bytes) -> Refused:
    start, end = document.redirect["OpPos"]["Offset"], document.redirect["Word"]["End"]["Offset"]
    return Refused(reason, source[start:end].decode(errors="replace"))
