"""The findings of a review: requested changes, their places, and the clauses that demand them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cuggino.domain.texts import cut_at_end

MAX_FINDINGS = 200
"""The most findings parsed per review; more would not change the result."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A change requested by a review."""

    what: str
    """The reviewer's text; its first line is the title."""
    where: str | None = None
    """A path in the project, possibly with `:line`."""
    is_improvement: bool = False
    """True if the review lists it as an improvement, which no specification demands."""

    @property
    def id(self) -> str | None:
        """The id by which the text refers to a finding of an earlier review, such as `F3`."""
        found = _ID.match(self.what)
        return f"F{found[1]}" if found else None

    @property
    def text(self) -> str:
        """The reviewer's text without the id."""
        return _ID.sub("", self.what, count=1)

    @property
    def title(self) -> str:
        """The first line as plain text of at most 100 characters, without id and label."""
        first = _LABEL.sub("", self.text.strip(), count=1).partition("\n")[0]
        plain = re.sub(r"[*_`#]+|^\W{0,3}\d{1,3}[.):]\s", "", first)
        return cut_at_end(" ".join(plain.split()), 100)

    @property
    def clause(self) -> str:
        """The line that names what a specification demands; "" without one."""
        return next(filter(_CLAUSE.search, self.what.splitlines()), "").strip()

    @property
    def reason(self) -> str:
        """The reason for it, after `Reason:`; "" without one."""
        found = _REASON.search(self.what)
        return found[1] if found else ""


def parse_findings(review: str) -> tuple[Finding, ...]:
    """Return the findings of a Markdown review in order, 200 at most.

    A finding is a top-level list item, a table row, or a heading with the text below it; a numbered
    heading includes everything below it, items too. Items such as `Place: ...` belong to the
    finding above. Sections about what was done or is good (`Summary`, `Verified`), checked items
    and code blocks are ignored. A review without any of these is one finding; an empty one has
    none.

    `where` is the place that a finding names, or the heading above it. Findings below the heading
    `Improvements`, and those that begin with `Improvement:`, are improvements.
    """
    entries = entries_of(review)
    findings = [_finding(entry) for entry in entries[:MAX_FINDINGS]]
    if findings:
        return tuple(findings)
    text = "\n".join(prose_lines(review)).strip() or review.strip()
    return (Finding(text, place_in(text)),) if text else ()


def _finding(entry: ReviewEntry) -> Finding:
    what = "\n".join(entry.lines)
    where = place_in(*entry.lines) or place_in(entry.heading)
    is_labeled = _LABEL.match(_ID.sub("", what, count=1)) is not None
    return Finding(what, where, entry.is_improvement or is_labeled)


def finding_as_markdown(finding: Finding, *, is_improvement: bool = False) -> str:
    """Return a file with a finding for a person to decide."""
    parts = [f"# {finding.title or 'Finding'}"]
    if finding.where:
        parts.append(f"Where: `{finding.where}`")
    if "\n" in finding.what.strip() or finding.title.endswith("…"):
        parts.append(finding.what.strip())
    parts.append(_IMPROVEMENT_ADVICE if is_improvement else _ADVICE)
    return "\n\n".join(parts) + "\n"


_ADVICE = (
    "Reviews requested this, and no plan resolved it. Decide what is right: fix the code, or "
    "change the specification. Then delete this file."
)
_IMPROVEMENT_ADVICE = (
    "A review suggested this, and no specification demands it, so it held nothing up. To have it "
    "done, write it into a specification or a backlog item. Then delete this file."
)


@dataclass(slots=True)
class ReviewEntry:
    """One unit of a review: an item, a row, a section."""

    lines: list[str]
    heading: str = ""
    """The heading of the section that contains an item or a row."""
    is_improvement: bool = False


@dataclass(slots=True)
class _Section:
    title: str = ""
    level: int = 0
    is_parent: bool = False
    """A deeper heading follows; the text before it is an introduction."""
    improvements: int = 0
    """The level of the heading `Improvements` that it is below, or is itself; 0 without one."""
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
    def lists_improvements(self) -> bool:
        return _IMPROVEMENTS.fullmatch(self._name) is not None

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
            for item in self.items:
                yield ReviewEntry(item, self.title, self.improvements > 0)
        elif (
            (self.body or self.is_numbered)
            and not self.is_parent
            and self.title
            and not _REVIEW.fullmatch(self._name)
        ):
            yield ReviewEntry([self.title, *self.body], is_improvement=self.improvements > 0)


def entries_of(review: str) -> list[ReviewEntry]:
    """Return the entries of a review; those of neutral sections only if there are no others."""
    sections = _sections(review)
    entries = [e for s in sections if not s.is_neutral for e in s.entries()]
    return entries or [ReviewEntry(item, s.title) for s in sections for item in s.items]


def lists_findings(review: str) -> bool:
    """Return whether the review lists findings, rather than being one piece of prose."""
    return bool(entries_of(review))


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
        if _PLACE.match(line) and (place := next(places_in(line), None)):
            return place
    return min((place for line in lines for place in places_in(line)), key=_rank, default=None)


def _rank(place: str) -> int:
    path, _, line = place.partition(":")
    return (0 if line else 1) + (2 if path.endswith((".md", ".txt", ".rst")) else 0)


def places_in(line: str) -> Iterator[str]:
    """Yield the paths that a line of a review names, as it writes them."""
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
                above = section.improvements if level > section.improvements else 0
                section = _Section(title, level, improvements=above)
                if section.lists_improvements and not above:
                    section.improvements = level
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
    r"|must fix|should fix|critical|major|minor|high|medium|low"
    r"|required(?: by (?:the )?spec(?:ification)?s?)?|improvements?)",
    re.IGNORECASE,
)
_IMPROVEMENTS = re.compile(r"improvements?", re.IGNORECASE)
_ID = re.compile(r"\A\W{0,4}F(\d{1,4})\b[\s\W]{0,4}")
_LABEL = re.compile(
    r"\A\W{0,4}improvements?\W{0,2}?(?:[:\])]|\s[-\u2013\u2014]\s)\W{0,3}", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"(?i:(?<![\w./])(?:spec(?:ification)?s?|requirements?|clause)\b(?![./]\w)"
    r"|\w\.(?:md|rst|txt)\b)|§|\b[A-Z]{2,}-\d+\b"
)
_REASON = re.compile(r"(?:^|[\s(*_-])(?:reason|why)\W{0,3}:\W{0,3}(\w.*)", re.IGNORECASE)
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
