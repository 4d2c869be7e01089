"""The findings of reviews: which are the same, and whether reviews still get anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from cuggino.domain.review_text import Entry, entries_of, place_in, prose_lines

SAME_WORDS = 0.6
"""Share of words in common (Dice) from which two findings are the same one."""

SAME_LETTERS = 0.8
"""Share of pairs of letters in common for findings of less than three words."""

SAME_TITLE = 0.75
"""Share of words in common in the first lines, of findings in the same file."""

MAX_FINDINGS = 200
"""Findings of one review that are looked at; more say nothing new about convergence."""

_COMPARED = 2000
"""Characters of a finding that are compared."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a review asks for."""

    what: str
    """The reviewer's words; the first line serves as its title."""
    where: str | None = None
    """A path in the project, maybe with `:line`."""


def parse_findings(review: str) -> tuple[Finding, ...]:
    """The findings of a Markdown review in order, 200 at most.

    A finding is an item of a list outside of another item, a row of a table, or a heading with the
    text below it; a numbered heading takes in all that is below it, items too. Items such as
    `Place: ...` belong to what they are below. Sections that tell what was done or found good
    (`Summary`, `Verified`), items that are checked off, and code blocks are no findings. A review
    without any of these is one finding, an empty one none.

    `where` is the place that a finding names, or else the heading above it.
    """
    entries = entries_of(review)
    findings = [_finding(entry) for entry in entries[:MAX_FINDINGS]]
    if findings:
        return tuple(findings)
    text = "\n".join(prose_lines(review)).strip() or review.strip()
    return (Finding(text, place_in(text)),) if text else ()


def _finding(entry: Entry) -> Finding:
    return Finding("\n".join(entry.lines), place_in(*entry.lines) or place_in(entry.heading))


def same(a: Finding, b: Finding) -> bool:
    """Whether two findings of different reviews are about the same thing.

    Where both name a place it must be the same file; lines do not count, and `app.py` is
    `src/app.py`. Of the words numbers, case, endings and little words do not count. Of what is left
    twice the common words over all words (Dice) must be 0.6; or 0.75 in the first lines alone,
    where both name the same file. With less than three words in either, pairs of letters are
    counted instead of words, and must agree by 0.8.
    """
    return likeness(a, b) > 0


def likeness(a: Finding, b: Finding) -> float:
    """How much alike two findings are, up to 1; 0 when they are not the same."""
    first, second = _profile(a), _profile(b)
    if a.where and b.where and not _same_place(first.path, second.path):
        return 0.0
    if a.what == b.what:
        return 1.0
    if min(len(first.words), len(second.words)) < 3:
        share = _dice(first.letters, second.letters)
        return share if share >= SAME_LETTERS else 0.0
    if (share := _dice(first.words, second.words)) >= SAME_WORDS:
        return share
    titles = (first.title, second.title) if a.where and b.where else ()
    if titles and min(map(len, titles)) >= 3 and _dice(*titles) >= SAME_TITLE:
        return SAME_WORDS
    return 0.0


def as_markdown(finding: Finding, *, reviews: int | None = None) -> str:
    """A file for the findings that a person has to discuss; `reviews` have named it in a row."""
    title, _, rest = finding.what.strip().partition("\n")
    plain = " ".join(re.sub(r"[*_`#]+|^\W{0,3}\d{1,3}[.):]\s", "", title).split())
    cut = len(plain) > 100
    parts = [f"# {plain[:99].rstrip()}…" if cut else f"# {plain or 'Finding'}"]
    if finding.where:
        parts.append(f"Where: `{finding.where}`")
    if cut or rest:
        parts.append(finding.what.strip())
    times = f"{reviews} reviews in a row" if reviews else "Reviews"
    parts.append(
        f"{times} asked for this, and no plan settled it. Decide what is right: mend the code, or "
        "change the specification. Then delete this file."
    )
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class Stalled:
    """Reviews go round in a circle."""

    findings: tuple[Finding, ...]
    """In the words of the latest review."""
    reviews: int
    """How many reviews in a row had just these."""


@dataclass(slots=True)
class ReviewLedger:
    """Keeps the findings of the latest review, with how many reviews in a row each was there.

    It depends on nothing but the reviews it was given since the last approval, so that the recorded
    reviews of a run, given again, make the same ledger.
    """

    patience: int
    _open: tuple[tuple[Finding, int], ...] = field(default=(), init=False)
    _still: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError("patience must be at least 1")

    @property
    def open(self) -> tuple[tuple[Finding, int], ...]:
        """The findings of the latest review, each with its number of reviews in a row."""
        return self._open

    def add(self, review: str) -> Stalled | None:
        """One more review that requests changes.

        Gives `Stalled` when the last `patience` reviews had the same findings, each of them one
        that was in the review before: none was settled, none was new.
        """
        findings = parse_findings(review)
        before = _matches(findings, tuple(finding for finding, _count in self._open))
        settled, new = len(before) < len(self._open), len(before) < len(findings)
        self._still = 1 if settled or new or not self._open else self._still + 1
        self._open = tuple(
            (finding, self._open[before[index]][1] + 1 if index in before else 1)
            for index, finding in enumerate(findings)
        )
        if findings and self._still >= self.patience:
            return Stalled(findings, self._still)
        return None

    def approved(self) -> None:
        """A review had no finding left: whatever comes is new."""
        self._open, self._still = (), 0


def _matches(findings: tuple[Finding, ...], earlier: tuple[Finding, ...]) -> dict[int, int]:
    """For each finding the one that it was, each used once: the most alike first."""
    pairs = [
        (share, finding == other, -abs(new - old), -new, -old)
        for new, finding in enumerate(findings)
        for old, other in enumerate(earlier)
        if (share := likeness(finding, other)) > 0
    ]
    found: dict[int, int] = {}
    taken: set[int] = set()
    for _share, _equal, _distance, new, old in sorted(pairs, reverse=True):
        if -new not in found and -old not in taken:
            found[-new] = -old
            taken.add(-old)
    return found


@dataclass(frozen=True, slots=True)
class _Profile:
    """What of a finding is compared."""

    path: str
    words: frozenset[str]
    title: frozenset[str]
    letters: frozenset[str]


@lru_cache(maxsize=2 * MAX_FINDINGS)
def _profile(finding: Finding) -> _Profile:
    text = finding.what[:_COMPARED]
    path = re.sub(r"(?::\d[\d:,-]*|#L\d+(?:-L?\d+)?)$", "", finding.where or "")
    plain = re.sub(r"[\W\d_]+", " ", text.lower()).strip()
    return _Profile(
        path=path.removeprefix("./").rstrip("/"),
        words=frozenset(_stems(text)),
        title=frozenset(_stems(text.partition("\n")[0])),
        letters=frozenset(a + b for a, b in pairwise(f" {plain} ")) if plain else frozenset(),
    )


def _same_place(a: str, b: str) -> bool:
    return a == b or a.endswith(f"/{b}") or b.endswith(f"/{a}")


def _dice(a: frozenset[str], b: frozenset[str]) -> float:
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 0.0


def _stems(text: str) -> Iterator[str]:
    """The words that carry meaning, by their beginnings; a character each where none has spaces."""
    for word in _WORD.findall(text.lower()):
        if word.isdigit() or word in _LITTLE:
            continue
        stem = re.sub(r"(?:ing|ed|es|s)$", "", word) if len(word) > 4 else word
        yield stem[:6]


_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_LITTLE = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by can do does for from had has have if in into is it its of on "
        "or should so still than that the their then there these this to was were when which while "
        "will with would line lines",
    )
)
