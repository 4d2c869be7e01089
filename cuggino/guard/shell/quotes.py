"""Quotes and backslashes: the parts of a word as text, as far as it is known."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, TypeAlias


class Piece(NamedTuple):
    """A run of characters in a word."""

    kind: Literal["plain", "quoted", "open"]
    """Plain and quoted text is known; open text is known only to bash at run time."""
    text: str = ""


Pieces: TypeAlias = list[Piece]
OPEN = Piece("open")
_ANSI = (
    r"(?s)\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})"
    r"|[uU]([0-9A-Fa-f]{1,8})|c(\\\\|.)|(.))"
)
_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))


def pieces_of(parts: list[dict[str, Any]]) -> Pieces:
    """Return the pieces of the parts of a word, in order."""
    pieces: Pieces = []
    for part in parts:
        value = part.get("Value", "")
        match part["Type"]:
            case "Lit":
                pieces += plain(value)
            case "SglQuoted":
                known = decode_ansi(value) if part.get("Dollar") else value
                pieces.append(OPEN if known is None else Piece("quoted", known))
            case "DblQuoted":
                pieces.append(Piece("quoted"))
                if part.get("Dollar"):  # a localized text
                    pieces.append(OPEN)
                pieces += [
                    Piece("quoted", re.sub(r'\\(?:([\\$`"])|\n)', r"\1", inner.get("Value", "")))
                    if inner["Type"] == "Lit"
                    else OPEN
                    for inner in part.get("Parts", ())
                ]
            case _:
                pieces.append(OPEN)
    return pieces


def plain(value: str) -> Pieces:
    """Return the pieces of unquoted text, in which a backslash quotes the next character."""
    pieces: Pieces = []
    for index, part in enumerate(re.split(r"(\\.|\\\Z)", value, flags=re.DOTALL)):
        if part == "\\\n":  # a line continuation that the parser kept
            continue
        if index % 2:
            pieces.append(Piece("quoted", part[1:] or "\\"))
        elif part:
            pieces.append(Piece("plain", part))
    return pieces


def body_pieces(parts: list[dict[str, Any]], *, is_literal: bool, strips_tabs: bool) -> Pieces:
    """Return the pieces of a here-document; `is_literal` when its delimiter is quoted."""
    pieces: Pieces = []
    for part in parts:
        if part["Type"] != "Lit":
            pieces.append(OPEN)
            continue
        text = part.get("Value", "")
        if strips_tabs:
            text = re.sub(r"\n\t+" if pieces else r"(?:\n|\A)\t+", _line_start, text)
        if not is_literal:
            text = re.sub(r"\\([\\$`])", r"\1", text)
        pieces.append(Piece("quoted", text))
    return pieces


def _line_start(found: re.Match[str]) -> str:
    return found[0].rstrip("\t")


def decode_ansi(value: str) -> str | None:
    """Decode the text between `$'` and `'`; None when it depends on the locale or ends early."""
    data = bytearray()
    end = 0
    for found in re.finditer(_ANSI, value):
        data += value[end : found.start()].encode()
        end = found.end()
        letter, octal, hexadecimal, code, control, other = found.groups()
        if letter:
            data += _LETTERS.get(letter, letter).encode()
        elif octal or hexadecimal:
            data.append((int(octal, 8) if octal else int(hexadecimal, 16)) & 0xFF)
        elif code and int(code, 16) < 0x80 and (found[0][1] == "U" or len(code) <= 4):
            data.append(int(code, 16))
        elif code or control:
            return None
        else:
            data += b"\\" + other.encode()
    data += value[end:].encode()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
