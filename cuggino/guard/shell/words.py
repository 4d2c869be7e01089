"""The words of a command: quotes removed, braces expanded, unknown parts left open."""

from __future__ import annotations

import re

from cuggino.guard.shell.quotes import OPEN, Piece, Pieces
from cuggino.guard.shell.tree import Refused, Script, Word

LARGEST_EXPANSION = 64
# Rarely used patterns are compiled on use, since compiling delays every start.
_SEQUENCE = (
    r"(?a)(?:(-?\d{1,9})\.\.(-?\d{1,9})|([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z]))"
    r"(?:\.\.(-?\d{1,9}))?"
)
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=", re.ASCII)


_OPENING, _CLOSING = Piece("plain", "{"), Piece("plain", "}")
_COMMA, _RANGE = Piece("plain", ","), Piece("plain", "..")
_MOST_STEPS = 200_000


class _Unclear(Exception):
    """Braces whose expansion is uncertain or too large."""


def words_of(text: str, pieces: Pieces, scripts: tuple[Script, ...]) -> list[Word]:
    """Return the words that one written word expands to; none if it is empty and unquoted.

    The first of them holds its scripts. Raises `Refused` above 64 words.
    """
    if not any(piece.kind == "plain" and "{" in piece.text for piece in pieces):
        return [one_word(text, pieces, scripts)] if pieces else []
    try:
        expanded = [made for made in _Braces(pieces).expand() if made]
    except _Unclear:
        known: Pieces = []
        for piece in pieces:
            before, brace, _ = piece.text.partition("{")
            if piece.kind == "plain" and brace:
                known.append(Piece("plain", before))
                break
            known.append(piece)
        return [one_word(text, [*known, OPEN], scripts)]
    return [one_word(text, made, () if index else scripts) for index, made in enumerate(expanded)]


def one_word(text: str, pieces: Pieces, scripts: tuple[Script, ...]) -> Word:
    """Return a word that is not expanded any further."""
    value: str | None = "".join(piece.text for piece in pieces)
    unquoted = "".join(piece.text if piece.kind == "plain" else "\0" for piece in pieces)
    prefix = ""
    if any(piece.kind == "open" for piece in pieces):
        value = None
        prefix = _known_start(pieces)
    return Word(
        text=text,
        value=value,
        prefix=prefix,
        has_glob=_has_glob(unquoted),
        has_tilde=_has_tilde(unquoted),
        is_quoted=any(piece.kind == "quoted" for piece in pieces),
        scripts=scripts,
    )


def _has_glob(unquoted: str) -> bool:
    """Return whether bash would match files; a `[` alone matches nothing."""
    opening = unquoted.find("[")
    return (
        "*" in unquoted or "?" in unquoted or (opening > -1 and unquoted.rfind("]") > opening + 1)
    )


def _has_tilde(unquoted: str) -> bool:
    """Return whether bash would expand a tilde in the word."""
    if unquoted.startswith("~"):
        return True
    found = _ASSIGNS.match(unquoted)
    return found is not None and re.search(r"[=:]~", unquoted[found.end() - 1 :]) is not None


def _known_start(pieces: Pieces) -> str:
    """Return the beginning of the word, up to an open part or a pattern."""
    start = ""
    for piece in pieces:
        if piece.kind == "open":
            break
        if piece.kind == "plain" and (pattern := re.search(r"[*?\[]", piece.text)):
            return start + piece.text[: pattern.start()]
        start += piece.text
    return start


class _Braces:
    """Brace expansion of one word, which bash does before everything else."""

    def __init__(self, pieces: Pieces) -> None:
        self._tokens: Pieces = []
        for piece in pieces:
            runs = re.split(r"([{},]|\.\.)", piece.text) if piece.kind == "plain" else []
            self._tokens += [Piece("plain", run) for run in runs if run] if runs else [piece]
        openings = sum(token == _OPENING for token in self._tokens)
        if openings * len(self._tokens) > _MOST_STEPS:
            raise _Unclear

    def expand(self) -> list[Pieces]:
        """Return all words, in bash's order."""
        return self._between(0, len(self._tokens))

    def _between(self, start: int, end: int) -> list[Pieces]:
        """Return the words of a range: the text before its first braces, each choice, each rest."""
        index = start
        while index < end:
            close = self._close(index, end) if self._tokens[index] == _OPENING else None
            if close is None:
                index += 1
                continue
            choices = self._choices(index + 1, close)
            if choices is None:  # plain text, including any braces in it
                index = close + 1
                continue
            rests = self._between(close + 1, end)
            if len(choices) * len(rests) > LARGEST_EXPANSION:
                raise _too_many()
            before = self._tokens[start:index]
            return [before + choice + rest for choice in choices for rest in rests]
        return [self._tokens[start:end]]

    def _close(self, opening: int, end: int) -> int | None:
        """Return the brace that closes the one at `opening`, after a `,` or `..` of its level."""
        if opening == 0 and self._tokens[1:2] == [_CLOSING]:
            return None
        level, parts = 0, 0
        for index in range(opening + 1, end):
            token = self._tokens[index]
            if token == _CLOSING and level == 0 and parts:
                return index
            if token == _OPENING:
                level += 1
            elif token == _CLOSING and level:
                level -= 1
            elif level == 0:
                is_range = token == _RANGE and self._tokens[index + 1 : index + 2] != [_CLOSING]
                parts += token == _COMMA or is_range
        return None

    def _choices(self, start: int, end: int) -> list[Pieces] | None:
        """Return the choices between braces; None when it is not an expansion."""
        if not any(token == _COMMA for token in self._tokens[start:end]):
            inside = self._tokens[start:end]
            if any(token.kind == "quoted" and "," in token.text for token in inside):
                raise _Unclear
            if any(token.kind != "plain" for token in inside):
                return None
            items = _sequence("".join(token.text for token in inside))
            return [[Piece("plain", item)] for item in items] or None
        choices: list[Pieces] = []
        level, first = 0, start
        for index in range(start, end):
            token = self._tokens[index]
            level += (token == _OPENING) - (token == _CLOSING and level > 0)
            if token == _COMMA and level == 0:
                choices += self._between(first, index)
                first = index + 1
        choices += self._between(first, end)
        if len(choices) > LARGEST_EXPANSION:
            raise _too_many()
        return choices


def _sequence(text: str) -> list[str]:
    """Return the items of `a..e` or `1..9..2`; none when it is not a sequence."""
    found = re.fullmatch(_SEQUENCE, text)
    if found is None:
        if re.fullmatch(r"[A-Za-z]\.\.[A-Za-z](\.\..*)?|-?\+?\d+\.\.[-+]?\d+(\.\..*)?", text):
            raise _Unclear
        return []
    first, last, low, lower, up, upper, step = found.groups()
    numeric = first is not None
    start, stop = (int(first), int(last)) if numeric else (ord(low or up), ord(lower or upper))
    stride = abs(int(step or 1)) or 1
    if abs(stop - start) // stride >= LARGEST_EXPANSION:
        raise _too_many()
    numbers = range(start, stop + 1, stride) if start <= stop else range(start, stop - 1, -stride)
    if not numeric:
        return [chr(number) for number in numbers]
    padded = any(re.match(r"-?0\d", side) for side in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [f"{number:0{width}d}" if width else str(number) for number in numbers]


def _too_many() -> Refused:
    return Refused(
        f"A word with braces expands to more than {LARGEST_EXPANSION} words; write fewer."
    )
