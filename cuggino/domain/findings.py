"""The findings of reviews: parsing, comparing, and detecting that reviews no longer converge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from cuggino.domain.project_paths import PathState, is_test_file

SAME_WORDS = 0.6
"""Share of common words (Dice) from which two findings are the same."""

SAME_LETTERS = 0.8
"""Share of common letter pairs, for findings of fewer than three words."""

SAME_TITLE = 0.75
"""Share of common words in the first lines, for findings in the same file."""

MAX_FINDINGS = 200
"""The most findings parsed per review; more would not change the result."""

_COMPARED = 2000
"""Characters of a finding that are compared."""


NamedFiles: TypeAlias = Mapping[str, PathState]
"""The files that each name in a review refers to, each with a digest."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A change requested by a review."""

    what: str
    """The reviewer's text; its first line is the title."""
    where: str | None = None
    """A path in the project, possibly with `:line`."""


def parse_findings(review: str) -> tuple[Finding, ...]:
    """Return the findings of a Markdown review in order, 200 at most.

    A finding is a top-level list item, a table row, or a heading with the text below it; a numbered
    heading includes everything below it, items too. Items such as `Place: ...` belong to the
    finding above. Sections about what was done or is good (`Summary`, `Verified`), checked items
    and code blocks are ignored. A review without any of these is one finding; an empty one has
    none.

    `where` is the place that a finding names, or the heading above it.
    """
    entries = entries_of(review)
    findings = [_finding(entry) for entry in entries[:MAX_FINDINGS]]
    if findings:
        return tuple(findings)
    text = "\n".join(prose_lines(review)).strip() or review.strip()
    return (Finding(text, place_in(text)),) if text else ()


def _finding(entry: ReviewEntry) -> Finding:
    return Finding("\n".join(entry.lines), place_in(*entry.lines) or place_in(entry.heading))


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


def finding_as_markdown(finding: Finding, *, reviews: int | None = None) -> str:
    """Return a file with the findings that a person has to decide; `reviews` repeated them."""
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
        f"{times} requested this, and no plan resolved it. Decide what is right: fix the code, or "
        "change the specification. Then delete this file."
    )
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class Stalled:
    """A row of reviews with the same findings."""

    findings: tuple[Finding, ...]
    """The findings, worded as in the latest review."""
    reviews: int
    """Reviews in a row with exactly these findings."""


@dataclass(slots=True)
class ReviewLedger:
    """The findings of the latest review, each with the number of reviews in a row that repeated it.

    A finding is repeated when it is the same (`same`), the files that it names have not changed
    since, and no count in it has fallen. One that names no file, or only tests, is repeated when
    its whole text is. None is repeated when a count beside the findings has fallen ("12 tests fail"
    above a list). So work that makes progress is not a stall, however similar its reviews are.

    It depends only on the reviews since the last approval and the files that they named, so that
    replaying a run's reviews gives the same ledger.
    """

    patience: int
    _open: tuple[tuple[Finding, int], ...] = field(default=(), init=False)
    _files: PathState | None = field(default=None, init=False)
    _still: int = field(default=0, init=False)
    _beside: tuple[int, ...] = field(default=(), init=False)
    """The counts beside the findings."""

    def __post_init__(self) -> None:
        if self.patience < 1:
            raise ValueError("patience must be at least 1")

    @property
    def open(self) -> tuple[tuple[Finding, int], ...]:
        """The findings of the latest review, each with its number of reviews in a row."""
        return self._open

    @property
    def named(self) -> tuple[str, ...]:
        """The files that the latest review names."""
        return files_named(finding for finding, _count in self._open)

    def add(self, review: str, files: NamedFiles | None = None) -> Stalled | None:
        """Add a review that requests changes.

        `files` are those that it names, as they are now; when they are unknown, as in a run of
        version 0.1.0, the texts alone are compared. Returns `Stalled` if the last `patience`
        reviews had the same findings, none resolved and none new.
        """
        findings = parse_findings(review)
        beside = _counts_beside(findings, review)
        has_fallen = files is not None and _has_fallen(self._beside, beside)
        before = _matches(
            findings,
            () if has_fallen else tuple(finding for finding, _count in self._open),
            lambda new, old: _is_repeated(new, old, files, self._files),
        )
        self._beside = beside
        self._files = None
        if files is not None:
            self._files = {path: of for state in files.values() for path, of in state.items()}
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
        """Forget all findings after an approval."""
        self._open, self._still, self._files, self._beside = (), 0, None, ()


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
    return is_unchanged and not _has_fallen(_counts(old), _counts(new))


@lru_cache(maxsize=2 * MAX_FINDINGS)
def _names(finding: Finding) -> tuple[str, ...]:
    places = [place for line in finding.what.splitlines() for place in _places(line)]
    named = (*places, *([finding.where] if finding.where else []))
    return tuple(_LINE_NUMBER.sub("", place).removeprefix("./").rstrip("/") for place in named)


def _plain(finding: Finding) -> str:
    return " ".join(finding.what.split())


def _counts(finding: Finding) -> tuple[int, ...]:
    """Return the numbers in the text that may be counts: no line numbers, no parts of names."""
    text = _ORDINAL.sub("", finding.what[:_COMPARED])
    return tuple(int(found) for found in _COUNT.findall(text))


def _counts_beside(findings: Iterable[Finding], review: str) -> tuple[int, ...]:
    """Return the counts in the lines of the review that belong to no finding."""
    told = "\n".join(finding.what for finding in findings)
    # Whole lines are found faster than parts of megabytes of text.
    whole_lines = {_without_bullet(line) for line in told.split("\n")}
    beside: list[str] = []
    size = 0
    for line in map(_without_bullet, prose_lines(review)):
        if line.startswith("|") or line in whole_lines or line in told:
            continue
        beside.append(line)
        size += len(line) + 1
        if size > _COMPARED:
            break
    return _counts(Finding("\n".join(beside)))


def _without_bullet(line: str) -> str:
    return _BULLET.sub("", line).rstrip()


def _has_fallen(before: tuple[int, ...], now: tuple[int, ...]) -> bool:
    return any(later < earlier for earlier, later in zip(before, now, strict=False))


def _matches(
    findings: tuple[Finding, ...],
    earlier: tuple[Finding, ...],
    is_repeated: Callable[[Finding, Finding], bool],
) -> dict[int, int]:
    """Match each finding to an earlier one, the most similar first, each used once."""
    pairs = [
        (share, finding == other, -abs(new - old), -new, -old)
        for new, finding in enumerate(findings)
        for old, other in enumerate(earlier)
        if (share := likeness(finding, other)) > 0 and is_repeated(finding, other)
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
    """The compared parts of a finding."""

    path: str
    words: frozenset[str]
    title: frozenset[str]
    letters: frozenset[str]


@lru_cache(maxsize=2 * MAX_FINDINGS)
def _profile(finding: Finding) -> _Profile:
    text = finding.what[:_COMPARED]
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
    for word in (_ASCII_WORD if text.isascii() else _WORD).findall(text.lower()):
        if word.isdigit() or word in _LITTLE:
            continue
        stem = re.sub(r"(?:ing|ed|es|s)$", "", word) if len(word) > 4 else word
        yield stem[:6]


_LINE_NUMBER = re.compile(r"(?::\d[\d:,-]*|#L\d+(?:-L?\d+)?)$")
_ORDINAL = re.compile(r"^\W{0,3}\d{1,3}[.):]\s")
_BULLET = re.compile(r"^[\s#*_>+-]*(?:\d{1,3}[.):]\s+)?")
_COUNT = re.compile(r"(?<!line )(?<!lines )(?<![\w.:/#@-])\d{1,9}(?![\w:-]|/\D|\.\d)")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
_ASCII_WORD = re.compile(r"[^\W_]+")  # compiled in a hundredth of the time
_LITTLE = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by can do does for from had has have if in into is it its of on "
        "or should so still than that the their then there these this to was were when which while "
        "will with would line lines",
    )
)


@dataclass(slots=True)
class ReviewEntry:
    """One unit of a review: an item, a row, a section."""

    lines: list[str]
    heading: str = ""
    """The heading of the section that contains an item or a row."""


@dataclass(slots=True)
class _Section:
    title: str = ""
    level: int = 0
    is_parent: bool = False
    """A deeper heading follows; the text before it is an introduction."""
    body: list[str] = field(default_factory=list)
    items: list[list[str]] = field(default_factory=list)

    @property
    def is_numbered(self) -> bool:
        """The heading and everything below it are one finding."""
        number = _NUMBERED.match(self.title) if self.title else None
        return number is not None and not any(
            kind.fullmatch(self._name) for kind in (_NEUTRAL, _REVIEW, _LIST)
        )

    @property
    def is_neutral(self) -> bool:
        return bool(self.title) and _NEUTRAL.fullmatch(self._name) is not None

    @property
    def is_titled(self) -> bool:
        """The text below the heading explains the heading."""
        kinds = (_NEUTRAL, _REVIEW, _LIST)
        return bool(self.title) and not any(kind.fullmatch(self._name) for kind in kinds)

    @property
    def _name(self) -> str:
        return _NUMBERED.sub("", self.title[:200], count=1).strip(" \t*_`:.#()-")

    def entries(self) -> Iterator[ReviewEntry]:
        if self.items and not self.is_numbered:
            yield from (ReviewEntry(item, self.title) for item in self.items)
        elif (
            (self.body or self.is_numbered)
            and not self.is_parent
            and self.title
            and not _REVIEW.fullmatch(self._name)
        ):
            yield ReviewEntry([self.title, *self.body])


def entries_of(review: str) -> list[ReviewEntry]:
    """Return the entries of a review; those of neutral sections only if there are no others."""
    sections = _sections(review)
    entries = [e for s in sections if not s.is_neutral for e in s.entries()]
    return entries or [ReviewEntry(item, s.title) for s in sections for item in s.items]


def prose_lines(review: str) -> Iterator[str]:
    """Return the lines outside of code blocks, without horizontal rules."""
    fence = ""
    for line in review.splitlines():
        if found := _FENCE.match(line):
            if not fence:
                fence = found[1]
                continue
            if found[1].startswith(fence) and not found[2].strip():
                fence = ""
                continue
        if not fence and not _DRAWN.fullmatch(line):
            yield line


def place_in(*lines: str) -> str | None:
    """Return the place named in the text, if any.

    A place after a label such as `Place:` comes first, then one with a line number. Code files take
    precedence over documents, such as the specification that they violate.
    """
    for line in lines:
        if _PLACE.match(line) and (place := next(_places(line), None)):
            return place
    return min((place for line in lines for place in _places(line)), key=_rank, default=None)


def _rank(place: str) -> int:
    path, _, line = place.partition(":")
    return (0 if line else 1) + (2 if path.endswith((".md", ".txt", ".rst")) else 0)


def _places(line: str) -> Iterator[str]:
    text = line[:2000]
    for quoted, bare in _TOKEN.findall(_URL.sub(" ", text) if "://" in text else text):
        token = (quoted or bare).rstrip(".,:;!?").removeprefix("./")
        if len(token) > 300 or token.lower() in _NO_FILES:
            continue
        found = _FILE.fullmatch(token) if "." in token else None
        if found is None:
            if token in _FILES or (quoted and _FOLDER.fullmatch(token)):
                yield token
            continue
        path, extension, number = found.groups()
        if number or extension.lower() in _EXTENSIONS or ("/" in path and quoted):
            yield token


def _sections(review: str) -> list[_Section]:
    section = _Section()
    sections = [section]
    item: list[str] | None = None
    indent = 0  # of the item
    after_blank = in_table = False
    for line in prose_lines(review):
        text = line.strip()
        if not text:
            after_blank, in_table = True, False
            continue
        depth = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if depth < 2 and (heading := _HEADING.match(text)):
            level, title = _heading(heading)
            below = level > section.level
            item = None
            if below and (
                (section.is_numbered and not _NUMBERED.match(title))
                or (section.is_titled and _FIELD.match(f"{title}:"))
            ):
                section.body.append(title)
            else:
                section.is_parent = below
                section = _Section(title, level)
                sections.append(section)
        elif text.startswith("|"):
            item = None
            if _SEPARATOR.fullmatch(text):
                if in_table and section.items:
                    section.items.pop()  # the header
            elif row := " ".join(cell.strip() for cell in text.split("|") if cell.strip()):
                section.items.append([row])
                if section.is_numbered:
                    section.body.append(row)
            in_table = True
        elif listed := _ITEM.match(text):
            content = listed[1]
            if section.is_numbered:
                section.body.append(content)
            elif item is not None and (
                depth > indent + 1 or (_FIELD.match(content) and not _FIELD.match(item[0]))
            ):
                item.append(content)
            elif _FIELD.match(content) and section.is_titled and not section.items:
                section.body.append(content)
            else:
                box = _BOX.match(content)
                item, indent = [box[2] if box else content], depth
                if not box or box[1] == " ":
                    section.items.append(item)
        elif item is not None and (depth > indent or not after_blank):
            item.append(text)
        else:
            item = None
            section.body.append(text)
        after_blank = False
    return sections


def _heading(found: re.Match[str]) -> tuple[int, str]:
    """Return level and text; a bold line is the lowest level."""
    if found[1]:
        return len(found[1]), found[2].rstrip("# \t")
    return 7, found[3].strip()


_FENCE = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)?(`{3,}|~{3,})(.*)")
_DRAWN = re.compile(r"\s*(?:-[-\s]+|=[=\s]+|\*[*\s]+|_[_\s]+)")
_HEADING = re.compile(r"(#{1,6})\s+([^#\s].*)|\*\*([^*]+)\*\*:?$")
_ITEM = re.compile(r"(?:[-*+•]|\(?\d{1,9}[.)])\s+(\S.*)")
_BOX = re.compile(r"\[([ xX])\]\s+(.*)")
_SEPARATOR = re.compile(r"\|[\s:|-]*-[\s:|-]*")
_NUMBERED = re.compile(
    r"\W{0,3}(?:(?:finding|issue|problem|bug|defect|blocker)\b\W{0,3})?[a-z]?\d{1,3}(?:\.\d{1,3})*\b"
    r"|\W{0,3}(?:finding|issue|problem|bug|defect|blocker)\s*:",
    re.IGNORECASE,
)
_NEUTRAL = re.compile(
    r"(?:overall )?(?:summary|verdict|conclusion|assessment|result)s?"
    r"|overview|introduction|scope|method(?:ology)?|approach|baseline|context|background|notes?"
    r"|(?:what )?(?:i )?(?:was )?(?:checked|verified|tested)|what (?:matches|is fine|is right)"
    r"|(?:what )?works|ok|passe[sd]|passing|strengths|positives?|fine|tests?(?: run)?|checks?"
    r"|commands?(?: run)?|evidence|next steps|settled|fixed|resolved",
    re.IGNORECASE,
)
_REVIEW = re.compile(r"(?:code )?review(?: .*|:.*)?", re.IGNORECASE)
_LIST = re.compile(
    r"(?:(?:open|remaining|new|other|minor|major|critical|blocking|main) )?"
    r"(?:findings?|issues?|problems?|defects?|bugs?|gaps?|mismatch(?:es)?|differences|deviations"
    r"|(?:required |requested )?changes(?: required| requested)?|(?:what is )?missing|blockers?"
    r"|must fix|should fix|critical|major|minor|high|medium|low)",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"\W{0,2}(?:place|where|location|files?|spec(?:ification)?s?|requirements?|expected|actual"
    r"|code|found|observed|severity|priority|fix|suggest(?:ion|ed fix)|recommendation|impact|why"
    r"|reason|what|problem|evidence|details?|steps|reproduc(?:e|tion)|proof|demand(?:s|ed)?"
    r"|says|does)(?: (?:says|does|is))?\W{0,2}:",
    re.IGNORECASE,
)
_PLACE = re.compile(r"\W{0,2}(?:place|where|location|files?|code)\W{0,2}:", re.IGNORECASE)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S+", re.IGNORECASE)
_TOKEN = re.compile(r"`([^`\s]+)`|([^\s`'\"()\[\]<>,;|*]+)")
_FILE = re.compile(
    r"(/?(?:[^\s:#/]+/)*[^\s:#/]*\.([A-Za-z][A-Za-z0-9]{0,9}))"
    r"(:\d+(?:[-:,]\d+)*|#L\d+(?:-L?\d+)?)?"
)
_FOLDER = re.compile(r"(?:[\w.@+-]+/)+[\w.@+-]*")
_EXTENSIONS = frozenset(
    re.findall(
        r"\w+",
        "bash c cc cfg cjs conf cpp cs css csv dart env ex exs go gradle graphql h hpp hs html ini "
        "ipynb java jl js json jsonl jsx kt less lock lua md mjs mk ml php pl proto ps1 py pyi r "
        "rb rs rst sass scala scss sh sql svelte svg swift tf toml ts tsx txt vue xml yaml yml zig "
        "zsh",
    )
)
_FILES = frozenset({"Dockerfile", "Jenkinsfile", "Makefile"})
_NO_FILES = frozenset({"node.js", "vue.js", "next.js", "react.js"})
