"""Arithmetic that assigns variables: `((PATH=1))`, `let "PATH=1"`, `a[PATH=1]=2`, `${PATH:=x}`.

The raw text is searched, even within quotes. Text that only mentions such an assignment is rare; it
is denied too, and has to be reworded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cuggino.guard.commands.assignments import assignment_reason
from cuggino.guard.commands.base import Site, first
from cuggino.guard.policy import Policy
from cuggino.guard.shell.tree import Word

_OPENINGS = re.compile(
    r"\(\(|\$\[|(?<=\w)\[|\$\{[#!]?[\w@*]+(?:\[[^\]]*\])?:(?![-=?+])|\[\[(?=\s)|\blet\s"
    r"|\b(?:declare|typeset|local|readonly|export)\s+(?:[-+]\w+\s+)*[-+]\w*i"
)
_CLOSES = {"(": "()", "[": "[]", "{": "{}"}
_OPERATOR = r"(?:[-+*/%&|^]|<<|>>)?=(?![=>~])"
_ASSIGNED = re.compile(
    rf"\b([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*(?:{_OPERATOR}|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)",
    re.ASCII,
)
_OPEN = re.compile(rf"\$(?:\w+|\{{[^}}]*\}}|\([^()]*\))\w*\s*{_OPERATOR}", re.ASCII)
_COMPARES = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge|v|R)\s")
_DEFAULT = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[^\]]*\])?:?=", re.ASCII)
_QUOTES = re.compile(r"['\"\\]")
_LONGEST = 4096


def calculated(text: str, policy: Policy) -> str:
    """Return why arithmetic in the text is denied: it assigns a protected variable."""
    for match in _DEFAULT.finditer(text):
        if reason := assignment_reason(match[1], None, policy):
            return reason
    for opening, inside in _regions(text):
        parts = [inside]
        if opening == "[[":
            parts = [part for part in re.split(r"&&|\|\|", inside) if _COMPARES.search(part)]
        for part in parts:
            if reason := names_reason(part, policy):
                return reason
        if opening in ("((", "$[") and _OPEN.search(inside):
            return f"It cannot be told which variable '{inside.strip()}' sets: write its name out"
    return ""


def calculates(text: str) -> bool:
    """Return whether there is arithmetic, which also evaluates the values of variables."""
    return any(
        opening != "[[" or _COMPARES.search(inside) is not None
        for opening, inside in _regions(text)
    )


def names_reason(text: str, policy: Policy) -> str:
    """Return why evaluating the text is denied: it assigns a protected variable."""
    found: Iterable[str] = dict.fromkeys(m[1] or m[2] for m in _ASSIGNED.finditer(text))
    return next(filter(None, (assignment_reason(name, None, policy) for name in found)), "")


def kept_reason(words: Iterable[Word], site: Site) -> str:
    """Return why a script with arithmetic may not store the words: evaluated, they would assign."""
    if not site.trail.calculates:
        return ""
    return first(names_reason(word.value, site.policy) for word in words if word.value)


def _regions(text: str) -> Iterator[tuple[str, str]]:
    """Yield the opening and the text of each arithmetic expression."""
    text = text.replace("\\\n", "")  # a line that continues on the next one
    yield from _written(text)
    if (bare := _QUOTES.sub("", text)) != text:
        yield from _written(bare)  # `l''et` is `let`


def _written(text: str) -> Iterator[tuple[str, str]]:
    for match in _OPENINGS.finditer(text):
        opening = match[0]
        start = match.end()
        if opening[-1] in "([" or opening.startswith("${"):
            bracket = "{" if opening.startswith("${") else opening[-1]
            depth = 2 if opening in ("((", "[[") else 1
            yield opening, text[start : _close(text, start, _CLOSES[bracket], depth)]
        else:
            end = re.compile(r"[;\n|]|&(?!=)").search(text, start)
            yield "let", text[start : end.start() if end else len(text)]


def _close(text: str, at: int, pair: str, depth: int) -> int:
    for index in range(at, min(len(text), at + _LONGEST)):
        depth += (text[index] == pair[0]) - (text[index] == pair[1])
        if not depth:
            return index
    return min(len(text), at + _LONGEST)
