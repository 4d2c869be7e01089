"""Whether a session is told what it was told in the recording."""

from __future__ import annotations

import re
import tempfile
from typing import NamedTuple

from cuggino.agents.cassettes.masking import MARK, mark
from cuggino.agents.cassettes.text import Places

_SHOWN = 80
"""Characters of a line that are shown on each side of where it differs."""

_TEMPORARY = "|".join(
    dict.fromkeys(
        re.escape(place) for place in (tempfile.gettempdir(), "/private/tmp", "/var/tmp", "/tmp")
    )
)
_DIFFERING: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), word)
    for pattern, word in (
        (r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "⟦id⟧"),
        (
            rf"(?<![\w.-])(?:{_TEMPORARY}|(?:/private)?/var/folders/[^/\s]+/[^/\s]+/T)"
            r"(?:(?:/[^/\s\"'`:,;()<>⟦⟧]+)*(?=/)(?:/(?:tmp|pytest-)[^/\s\"'`:,;()<>⟦⟧]+(?!/))?)",
            "⟦temporary⟧",
        ),
        (r" ?\(\d:\d\d:\d\d\)", ""),  # pytest tells it above a minute only
        (
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|\s?[+-]\d\d:?\d\d)?)?",
            "⟦time⟧",
        ),
        (r"(?<![\d:.])\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?![\d:])", "⟦time⟧"),
        (r"(?<![\d:.])\d{1,2}:\d\d(?:\.\d+| min)\b", "⟦duration⟧"),
        (r"(?<![\w.])(?:\d+\.\d+ ?(?:m?s|sec|seconds|µs|us)|\d+ ?(?:ms|µs))\b", "⟦duration⟧"),
        (r"(?i)(?:(?<=in )|(?<=time: )|(?<=\())\d+(?:m ?\d+)? ?s\b", "⟦duration⟧"),
        (r"\b\d+\.\d+ (?:runs|assertions|tests)/s", "⟦rate⟧"),
        (r"(?i)(?<=seed )\d+", "⟦seed⟧"),
        (r"={3,}", "==="),
        (r"0x[0-9a-fA-F]{6,}\b", "⟦address⟧"),
        (r"(?<=localhost:)\d{4,5}\b|(?<=127\.0\.0\.1:)\d{4,5}\b", "⟦port⟧"),
        (r"(?:(?<![\w-])|(?<=-g))(?=[a-f]*\d)[0-9a-f]{7,64}(?![\w-])", "⟦hash⟧"),
    )
)
"""What legitimately differs between two runs, and the word that is compared in its place."""


_KEY = mark("private key")
_WORDS = 3
"""A secret may be a phrase, but no more of them: what else a prompt says has to be the same."""


class Difference(NamedTuple):
    """The first line in which two texts differ."""

    line: int
    """Counted from 1."""
    expected: str
    found: str


def normalised(text: str) -> str:
    """The text without what legitimately differs: ids, hashes, times, temporary folders."""
    for pattern, word in _DIFFERING:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def first_difference(recorded: str, now: str, places: Places) -> Difference | None:
    """Where what is said now departs from what was recorded; None when it does not.

    A mark of the recording, which stands for a secret, is equal to any few words in its line;
    that of a private key to anything.
    """
    expected, found = normalised(recorded), normalised(places.named(now))
    if _KEY in expected and _fits(expected, found):
        return None
    ours, theirs = expected.split("\n"), found.split("\n")
    if len(ours) == len(theirs) and all(map(_fits, ours, theirs)):
        return None
    number = 0
    while number < min(len(ours), len(theirs)):
        if ours[number] != theirs[number] and not _fits(ours[number], theirs[number]):
            break
        number += 1
    old = ours[number] if number < len(ours) else None
    new = theirs[number] if number < len(theirs) else None
    at = _departure(old or "", new or "")
    return Difference(number + 1, _shown(old, at), _shown(new, at))


def _fits(expected: str, found: str) -> bool:
    """Whether the texts are the same, where a mark is equal to any few words."""
    first, *others = MARK.split(expected)
    if not others:
        return expected == found
    if not found.startswith(first) or len(found) < len(first) + len(others[-1]):
        return False
    at = len(first)
    for number, (masked, piece) in enumerate(zip(MARK.findall(expected), others, strict=True), 1):
        is_last = number == len(others)
        then = len(found) - len(piece) if is_last else found.find(piece, at)
        gap = found[at:then]
        if then < at or not found.startswith(piece, then):
            return False
        if masked != _KEY and ("\n" in gap or len(gap.split()) > _WORDS):
            return False
        at = then + len(piece)
    return True


def _departure(old: str, new: str) -> int:
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    return same


def _shown(line: str | None, at: int) -> str:
    if line is None:
        return "nothing more"
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    before, after = "…" if begin else "", "…" if end < len(line) else ""
    return f"“{before}{line[begin:end]}{after}”"
