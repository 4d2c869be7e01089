"""The failures that the output of a check names: which tests fail, and whether they are new."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from cuggino.domain import without_escapes

_LONGEST_LINE = 2000
_LARGEST = 20_000
"""Characters of the normalized output that its digest covers, in whole lines from the end: where
the output was cut depends on how long its times are."""


class Failures(NamedTuple):
    """The failures of one run of a check that exited with an error."""

    names: frozenset[str] = frozenset()
    """The failing tests and the reported errors; empty where the output does not tell them
    apart."""
    digest: str = ""
    """A hash of the output without what changes from run to run, such as times and addresses."""
    rest: str = ""
    """A hash of what follows the last summary of a known program: other failures may be there."""
    is_complete: bool = True
    """Whether the output lists as many failures as its summaries count."""


class _Found(NamedTuple):
    """The results of a parser."""

    names: Sequence[str] = ()
    """In order, each as often as it is listed."""
    counted: int = 0
    """The failures that summaries count."""


_Parser: TypeAlias = Callable[[Sequence[str]], _Found]


def failures_in(output: str, *, folder: str = "") -> Failures:
    """Return the failures in the output of a check that ran in this folder.

    The output may be the end of a longer one, may have colors, and may mix several programs. The
    folder does not count, so that runs in different checkouts can be compared.
    """
    lines = _plain_lines(output.replace(f"{folder.rstrip('/')}/", "") if folder else output)
    found = [parser(lines) for parser in _PARSERS]
    return Failures(
        names=frozenset(_stable(name) for one in found for name in one.names),
        digest=_digest(_end(_normalized(lines))),
        rest=_digest(_normalized(_after_summary(lines))),
        is_complete=all(len(one.names) >= one.counted for one in found),
    )


def same(a: Failures, b: Failures) -> bool:
    """Return whether the same tests fail; where none are named, whether the outputs are alike."""
    if a.names or b.names:
        return a.names == b.names
    return a.digest == b.digest


def new_since(now: Failures, baseline: Failures) -> frozenset[str] | None:
    """Return the failures that the baseline, which failed as well, does not have.

    None if old and new failures cannot be distinguished.
    """
    if now.digest == baseline.digest:
        return frozenset()
    if not (now.names and baseline.names and now.is_complete and baseline.is_complete):
        return None
    new = now.names - baseline.names
    return new if new or now.rest == baseline.rest else None


# Parsers -------------------------------------------------------------------------------------


_PYTEST_SUMMARY = re.compile(
    r"(?:FAILED|ERROR|SUBFAILED([\[(].*?[\])])?) "
    r"([^\s:]+\.(?:py|txt|rst|md|ya?ml|ipynb|feature)(?:::[^\[]*?(?:\[.*\])?)?)(?: - .*)?"
)
_PYTEST_INLINE = re.compile(
    r"\[gw\d+\] \[ *\d+%\] (?:FAILED|ERROR) (\S.*)|([^\s:]+::\S.*?) (?:FAILED|ERROR)\b.*"
)
_PYTEST_HEADING = re.compile(r"_{3,} (?:ERROR (?:at \w+ of|collecting) )?(\S.*?) _{3,}")
_PYTEST_COUNTS = re.compile(
    r"(?:=+ )?((?:\d+ [a-z]+(?: [a-z]+)?(?:, )?)+) in [\d.]+s(?: \([\d:]+\))?(?: =+)?"
)


def _pytest(lines: Sequence[str]) -> _Found:
    counts = [found[1] for line in lines if (found := _PYTEST_COUNTS.fullmatch(line))]
    count = sum(_counted(text, r"failed|errors?") for text in counts)
    summary = [
        found[2] + (found[1] or "").replace("'", "")  # quoted with xdist only
        for line in lines
        if (found := _PYTEST_SUMMARY.fullmatch(line))
    ]
    if summary:
        return _Found(summary, count)
    inline = [found[1] or found[2] for line in lines if (found := _PYTEST_INLINE.fullmatch(line))]
    if inline:
        return _Found(inline, count)
    headings = [found[1] for line in lines if (found := _PYTEST_HEADING.fullmatch(line))]
    return _Found([*dict.fromkeys(headings)] if counts else [], count)


_UNITTEST = re.compile(r"(?:FAIL|ERROR|UNEXPECTED SUCCESS): (\S+ \([\w.<>]+\)(?: .*)?)")
_UNITTEST_COUNTS = re.compile(r"FAILED \(((?:[a-z ]+=\d+(?:, )?)+)\)")


def _unittest(lines: Sequence[str]) -> _Found:
    names = [found[1] for line in lines if (found := _UNITTEST.fullmatch(line))]
    counts = [found[1] for line in lines if (found := _UNITTEST_COUNTS.fullmatch(line))]
    wanted = re.compile(r"(?:^|, )(?:failures|errors|unexpected successes)=(\d+)")
    return _Found(names, sum(int(n) for text in counts for n in wanted.findall(text)))


_GO_TEST = re.compile(r" *--- FAIL: (\S+) \([\d.]+s\)")
_GO_PACKAGE = re.compile(r"(FAIL|ok  )\t(\S+)(?:\s.*)?")


def _go(lines: Sequence[str]) -> _Found:
    """Read plain output, in which the package follows its tests, and that of `-json`."""
    names: list[str] = []
    tests: list[str] = []
    packages: list[str] = []
    for line in lines:
        if found := _GO_TEST.match(line):
            tests.append(found[1])
        elif found := _GO_PACKAGE.fullmatch(line):
            if found[1] == "FAIL":
                names += [f"{found[2]} {test}" for test in tests] or [found[2]]
            tests = []
        elif line.startswith("{") and '"fail"' in line:
            package, test = _go_event(line)
            if test:
                names.append(f"{package} {test}")
            elif package:
                packages.append(package)
    known = {name.partition(" ")[0] for name in names}
    return _Found([*names, *tests, *(package for package in packages if package not in known)])


def _go_event(line: str) -> tuple[str, str]:
    """Return the package and the test of an event that reports a failure."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(event, dict) or event.get("Action") != "fail":
        return "", ""
    return str(event.get("Package", "")), str(event.get("Test", ""))


_CARGO_TEST = re.compile(r"test (\S.*?) \.\.\. FAILED")
_CARGO_RESULT = re.compile(r"test result: FAILED\. .*?(\d+) failed;.*")


def _cargo(lines: Sequence[str]) -> _Found:
    listed: list[str] = []
    is_list = False
    for line in lines:
        if is_list and line.startswith("    "):
            listed.append(line.strip())
        else:
            is_list = line == "failures:"
    inline = [found[1] for line in lines if (found := _CARGO_TEST.fullmatch(line))]
    counts = [int(found[1]) for line in lines if (found := _CARGO_RESULT.fullmatch(line))]
    if not (counts or inline):
        return _Found()
    return _Found(listed if len(listed) > len(inline) else inline, sum(counts))


_TAP = re.compile(r"( *)(not ok|ok)\b *\d*(?: -)? *(.*)")
_TAP_DIRECTIVE = re.compile(r"(?:^|\s)#\s*(?:todo|skip)\b", re.IGNORECASE)
_TAP_COUNT = re.compile(r"# fail +(\d+)")


def _tap(lines: Sequence[str]) -> _Found:
    """Read the points of TAP; those of subtests are indented and precede their parent."""
    left: list[tuple[int, str]] = []
    for line in lines:
        found = _TAP.fullmatch(line)
        if found is None:
            continue
        depth, is_ok, name = len(found[1]), found[2] == "ok", found[3] or line.strip()
        inside: list[tuple[int, str]] = []
        while left and left[-1][0] > depth:
            inside.append((depth, f"{name} > {left.pop()[1]}"))
        left += reversed(inside)
        if not (is_ok or inside or _TAP_DIRECTIVE.search(name)):
            left.append((depth, name))
    counts = [int(found[1]) for line in lines if (found := _TAP_COUNT.fullmatch(line))]
    return _Found([name for _, name in left], sum(counts))


_NODE_SECTION = "✖ failing tests:"
_NODE_PLACE = re.compile(r"test at (.+?):\d+:\d+")
_NODE_TEST = re.compile(r"✖ (.+?) \([\d.]+ms\)(.*)")
_NODE_COUNT = re.compile(r"ℹ fail (\d+)")


def _node(lines: Sequence[str]) -> _Found:
    """Read the last section of the `spec` reporter of `node --test`, which has their places."""
    names: list[str] = []
    for before, line in pairwise(lines):
        place, found = _NODE_PLACE.fullmatch(before), _NODE_TEST.fullmatch(line)
        if place and found and not _TAP_DIRECTIVE.search(found[2]):
            names.append(f"{place[1]} > {found[1]}")
    counts = [int(found[1]) for line in lines if (found := _NODE_COUNT.fullmatch(line))]
    is_cut = bool(names) and _NODE_SECTION not in lines
    return _Found(_numbered(names), sum(counts) + len(names) + 1 if is_cut else sum(counts))


_JEST_FILE = re.compile(r"FAIL (?:\S+ )?(\S+\.\w+)(?: \([\d.]+ ?m?s\))?")
_JEST_TEST = re.compile(r"  ● (.+)")
_JEST_COUNT = re.compile(r"Tests: +(\d+) failed, .*")


def _jest(lines: Sequence[str]) -> _Found:
    names: list[str] = []
    file = ""
    for line in lines:
        if found := _JEST_FILE.fullmatch(line):
            file = found[1]
        elif file and (found := _JEST_TEST.fullmatch(line)) and found[1] != "Console":
            names.append(f"{file} › {found[1]}")
    counts = [int(found[1]) for line in lines if (found := _JEST_COUNT.fullmatch(line))]
    return _Found(names, sum(counts))


_VITEST = re.compile(r" *FAIL  (\S.*)")
_VITEST_COUNT = re.compile(r" +Tests  (\d+) failed.*")


def _vitest(lines: Sequence[str]) -> _Found:
    names = [found[1] for line in lines if (found := _VITEST.fullmatch(line))]
    counts = [int(found[1]) for line in lines if (found := _VITEST_COUNT.fullmatch(line))]
    return _Found(names, sum(counts))


_JUNIT_CASE = re.compile(r"""<testcase\b((?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*>""")
_JUNIT_NAME = re.compile(r"""\s(classname|name)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def _junit(lines: Sequence[str]) -> _Found:
    names: list[str] = []
    for part in "\n".join(lines).split("<testcase")[1:]:
        found = _JUNIT_CASE.match(f"<testcase{part}")
        body = part.partition("</testcase>")[0]
        if found and ("<failure" in body or "<error" in body):
            fields = {key: html.unescape(a or b) for key, a, b in _JUNIT_NAME.findall(found[1])}
            names.append("::".join(filter(None, map(fields.get, ("classname", "name")))))
    return _Found(names)


_LINT = re.compile(
    r"\s*([^\s:()]+)(?::\d+(?::\d+)?|\(\d+,\d+\))(?::| -) "
    r"((?:fatal )?error\b.*|[A-Z]{1,6}\d{2,5}\b.*|(?:invalid-syntax|undefined): .*)"
)
_LINT_HEADING = re.compile(
    r"(?:error(?:\[\w+\])?|invalid-syntax|unformatted|[A-Z]{1,6}\d{2,5})\b.*"
)
_LINT_PLACE = re.compile(r" +--> (.+?):\d+:\d+")
_LINT_COUNT = re.compile(r"Found (\d+) errors?\b(?! \().*")


def _lint(lines: Sequence[str]) -> _Found:
    """Read errors with a place, as compilers, type checkers and linters report them.

    Places are named without their lines, which move.
    """
    errors: list[str] = []
    heading = ""
    for line in lines:
        if (found := _LINT_PLACE.fullmatch(line)) and heading:
            errors.append(f"{found[1]}: {heading}")
        elif found := _LINT.fullmatch(line):
            errors.append(f"{found[1]}: {found[2]}")
        heading = line if _LINT_HEADING.fullmatch(line) else ""
    counts = [int(found[1]) for line in lines if (found := _LINT_COUNT.fullmatch(line))]
    return _Found(_numbered(errors), sum(counts))


_PARSERS: Sequence[_Parser] = (
    *(_pytest, _unittest, _go, _cargo, _tap, _node, _jest, _vitest, _junit, _lint),
)


def _numbered(names: Iterable[str]) -> list[str]:
    """Return the names, with a number after those that were there before."""
    seen: Counter[str] = Counter()
    numbered: list[str] = []
    for name in names:
        seen[name] += 1
        numbered.append(f"{name} ({seen[name]})" if seen[name] > 1 else name)
    return numbered


def _counted(text: str, words: str) -> int:
    """Return the sum of the numbers before these words."""
    return sum(int(n) for n in re.findall(rf"(\d+) (?:{words})\b", text))


# Text ----------------------------------------------------------------------------------------


_UNSTABLE: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"0x[0-9a-fA-F]{4,}", "<address>"),
        (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<id>"),
        (r"(?:/private)?(?:/var)?/(?:tmp|folders)/[^\s'\"`:,;()<>\]]+", "<temp>"),
    )
)
"""What differs between two runs even in the name of a test."""

_VOLATILE: Sequence[tuple[re.Pattern[str], str]] = (
    *_UNSTABLE,
    *(
        (re.compile(pattern), replacement)
        for pattern, replacement in (
            (
                r"\b\d{4}-\d\d-\d\d(?:[T_ ]?\d\d[:_-]\d\d[:_-]\d\d(?:[.,]\d+)?"
                r"(?:Z|[+-]\d\d:?\d\d)?)?",
                "<date>",
            ),
            (r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \w{3} +\d{1,2}\b", "<date>"),
            (r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2}\b", "<date>"),
            (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?: ?[AP]M)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
            (
                r"(?<![\w.])\d+(?:\.\d+)? ?(?:[nmµu]s|s|m|min|h|secs?|seconds?|minutes?|hours?)"
                r"(?![\w.])",
                "<duration>",
            ),
            (r"\b(duration_ms:?|time=\"|[Tt]ook|[Ee]lapsed:?) *\d+(?:\.\d+)?", r"\1<duration>"),
            (r"\b\d+\.\d+(?==\w+\[)|(?<=\[)\d+\.\d+(?=\])", "<duration>"),
            (r"\b(pid|PID|process|thread)([ :=#]*)\d+", r"\1\2<pid>"),
            (r"' \(\d+\) panicked", "' panicked"),
            (r"\b(seed[ :=]*)\d+", r"\1<seed>"),
            (r"(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0):\d{4,5}\b", r"\1:<port>"),
            (r"\bgw\d+\b", "<worker>"),
            (r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b", "<hash>"),
            (r" ?<duration>(?: ?<duration>)*", " <duration>"),
        )
    ),
)
"""What differs between two runs of the same check, and its replacement."""


def _plain_lines(output: str) -> list[str]:
    """Return the lines as a terminal shows them, without colors and spaces at their ends."""
    text = without_escapes(output).replace("\r\n", "\n")
    shown = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return [line[:_LONGEST_LINE].rstrip() for line in shown]


def _stable(name: str) -> str:
    """Return the name of a test without what differs from run to run."""
    return _replaced(name, _UNSTABLE)


def _normalized(lines: Iterable[str]) -> list[str]:
    """Return the lines that are not blank, without what differs from run to run."""
    return [_replaced(line, _VOLATILE) for line in lines if line.strip()]


def _replaced(text: str, table: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in table:
        text = pattern.sub(replacement, text)
    return text


def _end(lines: Sequence[str]) -> list[str]:
    """Return the last lines, up to the size that is compared."""
    left, kept = _LARGEST, []
    for line in reversed(lines):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return kept


def _digest(lines: Iterable[str]) -> str:
    """Return a hash of the lines, in any order: parallel programs interleave them."""
    return hashlib.sha256("\n".join(sorted(set(lines))).encode("utf-8", "replace")).hexdigest()


_SUMMARY = re.compile(
    rf"""
    {_PYTEST_COUNTS.pattern.replace(" ", "[ ]")} | FAILED[ ]\(.*\)
    | FAIL | {_GO_PACKAGE.pattern.replace(" ", "[ ]")} | \{{"Time":.*
    | test[ ]result:.* | error:[ ](?:test|doctest|\d+[ ]targets?)[ ]failed.* | [ ]{{4}}`-.*`
    | error:[ ](?:could[ ]not[ ]compile|aborting).*
    | [#ℹ][ ](?:tests|suites|pass|fail|duration_ms)\b.*
    | Tests:[ ].* | Ran[ ]all[ ]test[ ]suites.* | [ ]+(?:Tests|Duration)[ ]{{2}}.*
    | </testsuites?> | Found[ ]\d+[ ]errors?\b.* | \[\*\][ ]\d+[ ]fixable.*
    """,
    re.VERBOSE,
)
"""The lines with which known programs end their output; `_node` has a section after them."""

_OF_NODE = re.compile(r"\s.*|\}|test at .*|✖ .*|")


def _after_summary(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines after the last summary of a known program; none without one."""
    ends = [index for index, line in enumerate(lines) if _SUMMARY.fullmatch(line)]
    if not ends:
        return
    is_section = False
    for line in lines[ends[-1] + 1 :]:
        is_section = line == _NODE_SECTION or (is_section and _OF_NODE.fullmatch(line) is not None)
        if not is_section:
            yield line
