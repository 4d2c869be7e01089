"""The structure of a review in Markdown: its items, rows and sections, and the places it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Entry:
    """What stands in a review as one thing: an item, a row, a section."""

    lines: list[str]
    heading: str = ""
    """Of the section that an item or a row is in."""


@dataclass(slots=True)
class _Section:
    title: str = ""
    level: int = 0
    is_parent: bool = False
    """A deeper heading follows: what comes before that is an introduction."""
    body: list[str] = field(default_factory=list)
    items: list[list[str]] = field(default_factory=list)

    @property
    def is_numbered(self) -> bool:
        """The heading is one finding, and all below it is part of that."""
        number = _NUMBERED.match(self.title)
        return number is not None and not any(
            kind.fullmatch(self._name) for kind in (_NEUTRAL, _REVIEW, _LIST)
        )

    @property
    def is_neutral(self) -> bool:
        return _NEUTRAL.fullmatch(self._name) is not None

    @property
    def is_titled(self) -> bool:
        """What is below the heading tells more about what the heading says."""
        kinds = (_NEUTRAL, _REVIEW, _LIST)
        return bool(self.title) and not any(kind.fullmatch(self._name) for kind in kinds)

    @property
    def _name(self) -> str:
        return _NUMBERED.sub("", self.title[:200], count=1).strip(" \t*_`:.#()-")

    def entries(self) -> Iterator[Entry]:
        if self.items and not self.is_numbered:
            yield from (Entry(item, self.title) for item in self.items)
        elif (
            (self.body or self.is_numbered)
            and not self.is_parent
            and self.title
            and not _REVIEW.fullmatch(self._name)
        ):
            yield Entry([self.title, *self.body])


def entries_of(review: str) -> list[Entry]:
    """The entries of a review; those of neutral sections only when there are no others."""
    sections = _sections(review)
    entries = [e for s in sections if not s.is_neutral for e in s.entries()]
    return entries or [Entry(item, s.title) for s in sections for item in s.items]


def prose_lines(review: str) -> Iterator[str]:
    """The lines outside of code blocks, without those that only draw a line."""
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
    """The place that the text names: after `Place:` or the like, with a line number, else any.

    Code goes before documents, such as the specification that it does not match.
    """
    for line in lines:
        if _PLACE.match(line) and (place := next(_places(line), None)):
            return place
    return min((place for line in lines for place in _places(line)), key=_rank, default=None)


def _rank(place: str) -> int:
    path, _, line = place.partition(":")
    return (0 if line else 1) + (2 if path.endswith((".md", ".txt", ".rst")) else 0)


def _places(line: str) -> Iterator[str]:
    for quoted, bare in _TOKEN.findall(_URL.sub(" ", line[:2000])):
        token = (quoted or bare).rstrip(".,:;!?").removeprefix("./")
        if len(token) > 300 or token.lower() in _NO_FILES:
            continue
        found = _FILE.fullmatch(token)
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
    """Level and text; a bold line is the lowest heading."""
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
