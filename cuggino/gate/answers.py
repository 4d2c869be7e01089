"""Recognize approvals that answer a finding of the gate with a clause of the specification."""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLAUSE = 4
"""Words in a row that a quotation has to share with the specification."""
_FEWEST = 3
"""Words that a text or a line must have to be quoted at all."""


def is_answered(finding: str, answer: str, texts: Iterable[str]) -> bool:
    """Return whether the answer quotes one of the texts after the id of the finding.

    A quotation shares four words in a row with it, or all of a shorter line; case, punctuation and
    markup do not count.
    """
    parts = re.split(rf"(?<!\w){re.escape(finding)}(?!\w)", answer)
    said = [_words(part) for part in parts[1:]]
    clauses = [_words(part) for text in texts for part in (text, *text.splitlines())]
    return any(_quotes(words, clause) for clause in clauses for words in said)


def _quotes(said: list[str], text: list[str]) -> bool:
    length = min(_CLAUSE, len(text))
    if length < _FEWEST:
        return False
    clauses = {tuple(text[n : n + length]) for n in range(len(text) - length + 1)}
    return any(tuple(said[n : n + length]) in clauses for n in range(len(said) - length + 1))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
