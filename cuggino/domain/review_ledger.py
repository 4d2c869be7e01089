"""The ledger of a run's findings: open ones, blocking ones, and reviews that repeat themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, pairwise
from typing import Literal, NamedTuple, TypeAlias

from cuggino.domain.findings import (
    MAX_FINDINGS,
    Finding,
    lists_findings,
    parse_findings,
    places_in,
    prose_lines,
)
from cuggino.domain.project_paths import PathState, is_test_file

SAME_WORDS = 0.6
"""Share of common words (Dice) from which two findings are the same."""

SAME_LETTERS = 0.8
"""Share of common letter pairs, for findings of fewer than three words."""

SAME_TITLE = 0.75
"""Share of common words in the first lines, for findings in the same file."""

_COMPARED = 2000
"""Characters of a finding that are compared."""

NamedFiles: TypeAlias = Mapping[str, PathState]
"""The files that each name in a review refers to, each with a digest."""


def files_named(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the files and folders that the findings name, without line numbers, sorted."""
    return tuple(sorted({name for finding in findings for name in _names(finding)}))


def same(a: Finding, b: Finding) -> bool:
    """Return whether two findings of different reviews are about the same thing.

    If both name a place, it must be the same file, ignoring lines; `app.py` equals `src/app.py`.
    Numbers, case, endings and stop words are ignored. Twice the common words over all words (Dice)
    must be at least 0.6, or 0.75 in the first lines alone if both name the same file. With fewer
    than three words in either, letter pairs are compared instead and must reach 0.8.
    """
    return likeness(a, b) > 0


def likeness(a: Finding, b: Finding) -> float:
    """Return the similarity of two findings, up to 1; 0 if they are not the same."""
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


@dataclass(frozen=True, slots=True)
class Stalled:
    """A row of reviews with the same findings."""

    findings: tuple[Finding, ...]
    """The findings, worded as in the latest review."""
    reviews: int
    """Reviews in a row with exactly these findings."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A finding of a run's reviews."""

    id: str
    """`F1`, `F2`, ...: a finding that comes back keeps its id."""
    finding: Finding
    """The finding as the latest review with it words it."""
    state: Literal["open", "settled", "kept"]
    """`open`: the work has to satisfy it. `settled`: the reviews after it no longer have it.
    `kept`: an improvement, which blocks nothing."""
    first: int
    """The review that found it, from 1."""
    last: int
    """The latest review with it."""
    repeats: int = 1
    """Reviews in a row with it, while nothing came of it."""


class Judgment(NamedTuple):
    """The findings of a review that block, and its improvements."""

    blocking: tuple[LedgerEntry, ...]
    improvements: tuple[LedgerEntry, ...]
    is_doubtful: bool = False
    """True if the text beside the findings reports a failure."""

    @property
    def is_approval(self) -> bool:
        """True if nothing but improvements is left."""
        return bool(self.improvements) and not self.blocking and not self.is_doubtful


def judged(
    review: str, ledger: ReviewLedger, *, changed: Collection[str] | None = None
) -> Judgment:
    """Return which findings of a review block the work, and which are improvements.

    `ledger` holds the reviews before it; `changed` are the files that changed since the latest one,
    None if that is unknown or there was none.

    An improvement is what the review lists as one. A new finding on old ground is one, too, as
    reviews that always find something else never end: the files that it names have not changed
    since the latest review, and it gives neither a clause of the specification nor a reason. This
    does not hold for tests that it names, where a failure is only seen; for reviews that list no
    findings but are prose; and as long as the files of an open finding have not changed, as it may
    be that one in other words.
    """
    return ledger.after(review, changed=changed).judgment


@dataclass(frozen=True, slots=True)
class ReviewLedger:
    """The findings of a run's reviews. A value: replaying the reviews gives the same ledger.

    It also detects reviews that repeat themselves. A finding is repeated when it is the same
    (`same`), the files that it names have not changed since, and no count in it has fallen. One
    that names no file, or only tests, is repeated when its whole text is. None is repeated when a
    count beside the findings has fallen ("12 tests fail" above a list). So work that makes progress
    is not a stall, however similar its reviews are. Improvements do not count.
    """

    patience: int | None = None
    """Reviews in a row with the same findings that are a stall; None for no limit."""
    entries: tuple[LedgerEntry, ...] = ()
    """The findings of the latest review in its order, then earlier ones, the latest first."""
    reviews: int = 0
    """Reviews so far, without those that approved."""
    _ids: int = 0
    _files: PathState | None = None
    _still: int = 0
    """Reviews in a row with exactly the open findings."""
    _beside: str = ""
    """The text of the latest review beside its findings."""

    def __post_init__(self) -> None:
        if self.patience is not None and self.patience < 1:
            raise ValueError("patience must be at least 1")

    @property
    def open(self) -> tuple[LedgerEntry, ...]:
        """The findings that the latest review has and the work has to satisfy."""
        return tuple(entry for entry in self.entries if entry.state == "open")

    @property
    def named(self) -> tuple[str, ...]:
        """The files that the open findings name."""
        return files_named(entry.finding for entry in self.open)

    @property
    def judgment(self) -> Judgment:
        """The judgment of the latest review."""
        latest = [entry for entry in self.entries if entry.last == self.reviews]
        improvements = tuple(entry for entry in latest if entry.state == "kept")
        return Judgment(self.open, improvements, _FAILURE.search(self._beside) is not None)

    @property
    def stalled(self) -> Stalled | None:
        """The stall, if the last `patience` reviews had the same findings, none resolved or new."""
        if self.patience is None or not self.open or self._still < self.patience:
            return None
        return Stalled(tuple(entry.finding for entry in self.open), self._still)

    def after(
        self,
        review: str,
        *,
        files: NamedFiles | None = None,
        changed: Collection[str] | None = None,
    ) -> ReviewLedger:
        """Return the ledger after a review that requests changes.

        `files` are those that it and the open findings name, as they are now; when they are
        unknown, as in a run of version 0.1.0, the texts alone are compared. `changed` as in
        `judged`.
        """
        findings = parse_findings(review)
        beside = _beside(findings, review)
        has_fallen = files is not None and _has_fallen(_counts(self._beside), _counts(beside))

        def is_repeated(new: Finding, old: LedgerEntry) -> bool:
            if has_fallen or old.state != "open":
                return False
            return _is_repeated(new, old.finding, files, self._files)

        matches = _matches(findings, self.entries, is_repeated)
        ids = (f"F{number}" for number in count(self._ids + 1))
        is_worked_on = all(_is_on_new_ground(entry.finding, changed) for entry in self.open)
        ground = changed if is_worked_on and lists_findings(review) else None
        latest = tuple(
            self._entered(finding, matches.get(index), ids, ground)
            for index, finding in enumerate(findings)
        )
        blocking = [entry for entry in latest if entry.state == "open"]
        is_same = len(blocking) == len(self.open) == sum(entry.repeats > 1 for entry in blocking)
        found = {match.entry for match in matches.values()}
        gone = (entry for index, entry in enumerate(self.entries) if index not in found)
        earlier = tuple(map(_settled, gone))[:MAX_FINDINGS]
        return replace(
            self,
            entries=latest + earlier,
            reviews=self.reviews + 1,
            _ids=self._ids + len(findings) - len(matches),
            _files=_merged(files),
            _still=self._still + 1 if is_same and blocking else 1,
            _beside=beside,
        )

    def approved(self) -> ReviewLedger:
        """Return the ledger after an approval: all open findings are settled."""
        entries = tuple(map(_settled, self.entries))
        return replace(self, entries=entries, _files=None, _still=0, _beside="")

    def _entered(
        self,
        finding: Finding,
        match: _Match | None,
        ids: Iterator[str],
        changed: Collection[str] | None,
    ) -> LedgerEntry:
        """Return the entry of a finding of the next review."""
        number = self.reviews + 1
        before = self.entries[match.entry] if match is not None else None
        is_justified = (
            (before is not None and before.state != "kept")
            or (finding.clause or finding.reason)
            or _is_on_new_ground(finding, changed)
        )
        is_kept = finding.is_improvement or not is_justified
        state: Literal["open", "kept"] = "kept" if is_kept else "open"
        if match is None or before is None:
            return LedgerEntry(next(ids), finding, state, number, number)
        repeats = before.repeats + 1 if match.is_repeated else 1
        return replace(before, finding=finding, state=state, last=number, repeats=repeats)


class _Match(NamedTuple):
    entry: int
    """The position of the earlier entry."""
    is_repeated: bool


def _settled(entry: LedgerEntry) -> LedgerEntry:
    return replace(entry, state="settled") if entry.state == "open" else entry


def _merged(files: NamedFiles | None) -> PathState | None:
    if files is None:
        return None
    return {path: digest for state in files.values() for path, digest in state.items()}


def _is_on_new_ground(finding: Finding, changed: Collection[str] | None) -> bool:
    """Return whether a file that a finding names has changed, or none is known not to have."""
    names = _names(finding)
    if changed is None or all(map(is_test_file, names)):
        return True
    return any(
        _same_place(name, path) or path.startswith(f"{name}/") for name in names for path in changed
    )


def _is_repeated(
    new: Finding, old: Finding, files: NamedFiles | None, before: PathState | None
) -> bool:
    """Return whether nothing has come of a finding since the review before."""
    if files is None or before is None:
        return files is None and before is None
    names = [name for name in _names(new) if name in files]
    if all(map(is_test_file, names)) and _plain(new) != _plain(old):
        return False
    now = {path: digest for name in names for path, digest in files[name].items()}
    known = now.keys() & before.keys()
    is_unchanged = bool(known or not now) and all(now[path] == before[path] for path in known)
    return is_unchanged and not _has_fallen(_counts(old.what), _counts(new.what))


@lru_cache(maxsize=4 * MAX_FINDINGS)
def _names(finding: Finding) -> tuple[str, ...]:
    places = [place for line in finding.what.splitlines() for place in places_in(line)]
    named = (*places, *([finding.where] if finding.where else []))
    return tuple(_LINE_NUMBER.sub("", place).removeprefix("./").rstrip("/") for place in named)


def _plain(finding: Finding) -> str:
    return " ".join(finding.text.split())


def _counts(text: str) -> tuple[int, ...]:
    """Return the numbers in the text that may be counts: no line numbers, no parts of names."""
    return tuple(int(found) for found in _COUNT.findall(_ORDINAL.sub("", text[:_COMPARED])))


def _beside(findings: Iterable[Finding], review: str) -> str:
    """Return the lines of the review that belong to no finding."""
    texts = "\n".join(finding.what for finding in findings)
    # Whole lines are found faster than parts of megabytes of text.
    whole_lines = {_without_bullet(line) for line in texts.split("\n")}
    beside: list[str] = []
    size = 0
    for line in map(_without_bullet, prose_lines(review)):
        if line.startswith("|") or line in whole_lines or line in texts:
            continue
        beside.append(line)
        size += len(line) + 1
        if size > _COMPARED:
            break
    return "\n".join(beside)


def _without_bullet(line: str) -> str:
    return _BULLET.sub("", line).rstrip()


def _has_fallen(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    return any(later < earlier for earlier, later in zip(before, now, strict=False))


def _matches(
    findings: tuple[Finding, ...],
    entries: tuple[LedgerEntry, ...],
    is_repeated: Callable[[Finding, LedgerEntry], bool],
) -> dict[int, _Match]:
    """Match findings to earlier ones: repeated ones first, the most similar first, each once."""
    pairs = [
        (is_repeated(finding, entry), share, finding == entry.finding, -abs(new - old), -new, -old)
        for new, finding in enumerate(findings)
        for old, entry in enumerate(entries)
        if (share := _likeness_to(entry, finding)) > 0
    ]
    found: dict[int, _Match] = {}
    taken: set[int] = set()
    for repeated, _share, _equal, _distance, new, old in sorted(pairs, reverse=True):
        if -new not in found and -old not in taken:
            found[-new] = _Match(-old, repeated)
            taken.add(-old)
    return found


def _likeness_to(entry: LedgerEntry, finding: Finding) -> float:
    """Return the similarity to an entry; a finding that gives its id is the same.

    That of one that is not open must be more than a common place: short texts about a file are
    alike by its name.
    """
    share = likeness(finding, entry.finding)
    if share and entry.state != "open":
        share = likeness(_without_place(finding), _without_place(entry.finding))
    if share == 0 and finding.id == entry.id:
        places = _profile(finding).path, _profile(entry.finding).path
        return SAME_WORDS if "" in places or _same_place(*places) else 0.0
    return share


@lru_cache(maxsize=4 * MAX_FINDINGS)
def _without_place(finding: Finding) -> Finding:
    text = finding.what.replace(finding.where, "") if finding.where else finding.what
    return replace(finding, what=text)


@dataclass(frozen=True, slots=True)
class _Profile:
    """The compared parts of a finding."""

    path: str
    words: frozenset[str]
    title: frozenset[str]
    letters: frozenset[str]


@lru_cache(maxsize=4 * MAX_FINDINGS)
def _profile(finding: Finding) -> _Profile:
    text = finding.text[:_COMPARED]
    path = _LINE_NUMBER.sub("", finding.where or "")
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
    """Return the stems of the meaningful words; single characters for scripts without spaces."""
    for word in re.findall(_ASCII_WORD if text.isascii() else _WORD, text.lower()):
        if word.isdigit() or word in _LITTLE:
            continue
        stem = re.sub(r"(?:ing|ed|es|s)$", "", word) if len(word) > 4 else word
        yield stem[:6]


_LINE_NUMBER = re.compile(r"(?::\d[\d:,-]*|#L\d+(?:-L?\d+)?)$")
_ORDINAL = re.compile(r"^\W{0,3}\d{1,3}[.):]\s")
_BULLET = re.compile(r"^[\s#*_>+-]*(?:\d{1,3}[.):]\s+)?")
_COUNT = re.compile(r"(?<!line )(?<!lines )(?<![\w.:/#@-])\d{1,9}(?![\w:-]|/\D|\.\d)")
_FAILURE = re.compile(
    r"\b(?:block(?:s|ed|ers?|ing)?|fail(?:s|ed|ing|ures?)?|broken)\b", re.IGNORECASE
)
_WORD = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff]+"
_ASCII_WORD = r"[^\W_]+"  # compiled in a hundredth of the time
_LITTLE = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by can do does for from had has have if in into is it its of on "
        "or should so still than that the their then there these this to was were when which while "
        "will with would line lines",
    )
)
