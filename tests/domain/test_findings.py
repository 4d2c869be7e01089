"""Findings: their structure and equality, and reviews and tool calls that repeat themselves."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.domain import RepetitionWatch, most_cautious
from cuggino.domain.findings import MAX_FINDINGS, Finding, finding_as_markdown, parse_findings
from cuggino.domain.review_ledger import NamedFiles, ReviewLedger, Stalled, judged, same
from tests.growth import is_linear
from tests.vectors import each

LIST = """# Review of round 2

I compared the code with `specs/users.md`.

## Summary

- Tests: 12 passed, 3 failed

## Findings

1. **Email is not validated** (`src/app.py:42`): the specification demands an `@`; the code
   accepts anything.
   - Spec: specs/users.md, section 2
2. The list of users is not sorted, see src/list.py line 7.

More about that in a paragraph of its own.

```
- not a finding: in.py
```

- [x] Passwords are hashed
- [ ] No help text for `--verbose`

## What works

- Login in `src/login.py`
"""

HEADINGS = """## 1. Missing validation

- **Place:** `src/app.py:12`
- **Spec:** `specs/users.md:3` demands an `@`
- **Code:** accepts anything

### Evidence

ran it

## 2. No retries

**Spec:** three retries, specs/http.md:3
**Code:** none in src/http.py

## Verdict

Request changes.
"""

TABLE = """| # | Where | What |
|---|:-----:|------|
| 1 | `a.py:3` | no check of the input |
| 2 | web/b.ts | no test of the form |
"""

PLAIN = """### Missing validation
**Spec:**
an address has an `@`
**Code:**
accepts anything, src/app.py:1

### Missing retries
#### Expected
three
#### Actual
none
"""

# Words without Markdown syntax or anything that looks like a location.
WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=3, max_size=9)
SENTENCE = st.lists(WORD, min_size=4, max_size=12).map(" ".join)
MARKDOWN = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(["# A", "## 1. B", "## Summary", "**h**", "Place: k/l.py", "", "---"]),
        st.sampled_from(["- c", "  - d `x.py:1`", "1. e", "- [x] i", "- [ ] j", "\t- m"]),
        st.sampled_from(["```", "~~~", "| f | g |", "|-|-|"]),
    ),
    max_size=30,
).map("\n".join)


class TestParse:
    @each(
        "review, expected",
        [
            (
                LIST,
                [
                    ("**Email is not validated** (`src/app.py:42`)", "src/app.py:42"),
                    ("The list of users is not sorted", "src/list.py"),
                    ("No help text for `--verbose`", None),
                ],
            ),
            (
                HEADINGS,
                [("1. Missing validation\n", "src/app.py:12"), ("2. No retries\n", "src/http.py")],
            ),
            (TABLE, [("1 `a.py:3` no check", "a.py:3"), ("2 web/b.ts no test", "web/b.ts")]),
            (PLAIN, [("Missing validation\n", "src/app.py:1"), ("Missing retries\n", None)]),
            ("The tests fail.\nSee src/a.py.", [("The tests fail.\nSee src/a.py.", "src/a.py")]),
            ("# Review\n\nNothing works.", [("# Review\n\nNothing", None)]),
            (
                "# Review\n\n- a\n- b\n\n## Open questions\n\n- c",
                [("a", None), ("b", None), ("c", None)],
            ),
            ("## Summary\n\n- a\n- b", [("a", None), ("b", None)]),
            ("- a\n- b   ", [("a", None), ("b", None)]),
            ("- the # of users is wrong", [("the # of users is wrong", None)]),
            ("- a\n  # more of a\n- b", [("a\n# more of a", None), ("b", None)]),
            ("## No check ##\nof x", [("No check\nof x", None)]),
            ("## Tests are missing\n- a\n\n## Findings\n- b", [("a", None), ("b", None)]),
            ("## Signup\n- a\n\nand\n- Fix: b", [("a", None), ("Fix: b", None)]),
            ("## 1. Missing validation\n- a\n- b", [("1. Missing validation\na\nb", None)]),
            ("## Reviewers are not told\nof x", [("Reviewers are not told\nof x", None)]),
            ("- a\n```\n```py\n- b\n```", [("a", None)]),
            ("|#|What|\n|---|---|\n| - | a |", [("- a", None)]),
            ("- a\n\n|---|---|\n| b | c |", [("a", None), ("b c", None)]),
            ("Step 2. fails", [("Step 2. fails", None)]),
            ("- a\n - b", [("a", None), ("b", None)]),
            ("## `src/app.py`\n- a\n- b in `c.py`", [("a", "src/app.py"), ("b in", "c.py")]),
            (
                "- Place: `a.py`. Is x.\n- Place: `b.py`. Is y.",
                [("Place", "a.py"), ("Place", "b.py")],
            ),
            ("1. a\n\n   more of a\n\n2. b", [("a\nmore of a", None), ("b", None)]),
            ("- a\nlazily\n- b", [("a\nlazily", None), ("b", None)]),
            ("**1. One**\ntext\n\n**2. Two**\ntext", [("1. One", None), ("2. Two", None)]),
            (
                "## 1. Backend\n### 1.1 One\nx\n### 1.2 Two\ny",
                [("1.1 One", None), ("1.2 Two", None)],
            ),
            ("## 2. Findings\n- a\n- b", [("a", None), ("b", None)]),
            ("- a\n```py\n- b\n", [("a", None)]),
            ("- a\n  ````\n  ```\n  - b\n  ````\n- c", [("a", None), ("c", None)]),
            ("```\nall of it\n```", [("```\nall of it\n```", None)]),
            ("", []),
            (" \n\t\n", []),
        ],
    )
    def test_structures(self, review: str, expected: list[tuple[str, str | None]]) -> None:
        """Items, rows and headings with text are findings; without any, the whole review is one."""
        found = parse_findings(review)
        assert [where for _what, where in expected] == [finding.where for finding in found]
        for (what, _where), finding in zip(expected, found, strict=True):
            assert finding.what.startswith(what)

    def test_details_belong_to_their_finding(self) -> None:
        """Nested items, and all text below a numbered heading, belong to the finding."""
        assert parse_findings(LIST)[0].what.endswith("\nSpec: specs/users.md, section 2")
        assert parse_findings(HEADINGS)[0].what.endswith("accepts anything\nEvidence\nran it")
        assert ["a"] == [finding.what for finding in parse_findings("- a\n\nnot of a")]
        table = "## 1. Forms\n| no |\n|---|\n| test |"
        assert ["1. Forms\nno\ntest"] == [finding.what for finding in parse_findings(table)]
        fields = "## Emails are not validated\n- **File:** a.py\n- **Problem:** any text passes"
        assert [fields.removeprefix("## ").replace("- ", "")] == [
            finding.what for finding in parse_findings(fields)
        ]

    @each(
        "text, expected",
        [
            ("`src/app.py`", "src/app.py"),
            ("in src/app.py:12.", "src/app.py:12"),
            ("(src/app.py:12-20)", "src/app.py:12-20"),
            ("src/app.ts#L10-L12", "src/app.ts#L10-L12"),
            ("./app.py", "app.py"),
            ("`cuggino/stages/`", "cuggino/stages/"),
            ("the Makefile", "Makefile"),
            (".github/workflows/ci.yml", ".github/workflows/ci.yml"),
            ("`data/x.custom`", "data/x.custom"),
            ("data/x.custom", None),
            ("in SRC/APP.PY", "SRC/APP.PY"),
            ("specs/a.md says x, src/b.py does y", "src/b.py"),
            ("docs/a.rst:1 and notes.txt say x, src/b.py does y", "src/b.py"),
            ("src/a.py and src/b.py:3", "src/b.py:3"),
            ("Place: src/a.py, beside src/b.py:3", "src/a.py"),
            ("read/write and/or Node.js, e.g. self.value 1.2.3", None),
            ("https://example.org/a.py", None),
            ("`a.b`", None),
        ],
    )
    def test_places(self, text: str, expected: str | None) -> None:
        """The location is a labeled path, one with a line number, or code, in this order."""
        assert [Finding(text, expected)] == list(parse_findings(f"- {text}"))

    @given(st.lists(SENTENCE, min_size=1, max_size=20))
    def test_a_list_gives_its_items(self, items: list[str]) -> None:
        """A list of any kind gives one finding for each item, in order and verbatim."""
        for mark in ("-", "*", "1.", "2)"):
            review = "\n".join(f"{mark} {item}" for item in items)
            assert items == [finding.what for finding in parse_findings(review)]

    @given(st.one_of(st.text(), MARKDOWN))
    def test_any_text(self, review: str) -> None:
        """Any text gives findings, at least one unless it is blank, and no blank ones."""
        found = parse_findings(review)
        assert bool(review.strip()) == bool(found)
        for finding in found:
            assert finding.what.strip()
            assert finding_as_markdown(finding).startswith("# ")
            assert same(finding, finding)

    def test_findings_are_limited(self) -> None:
        """Only the first items of a very long list count."""
        found = parse_findings("\n".join(f"- item {number}" for number in range(1000)))
        assert MAX_FINDINGS == len(found)
        assert "item 0" == found[0].what


class TestSame:
    @each(
        "first, second, expected",
        [
            (("3 tests of the parser fail", None), ("5 Tests of the Parser fail", None), True),
            (("no check of the input", "a.py:3"), ("no check of the input", "a.py:30-31"), True),
            (("no check of the input", "a.py"), ("no check of the input", "b.py"), False),
            (("no check of the input", "a.py"), ("no check of the input", None), True),
            (("no check of the input", "src/a.py"), ("no check of the input", "a.py:1"), True),
            (("no check of the input", "extra.py"), ("no check of the input", "a.py"), False),
            (
                ("Validation of the email is missing in signup", "src/app.py:3"),
                ("The signup handler does not validate the email", "src/app.py:9"),
                True,
            ),
            (
                ("**Missing test**: parse() of empty input", "p.py"),
                ("Missing documentation of the option for colours", "p.py"),
                False,
            ),
            (
                ("Users are not sorted by name\n" + "one two three four " * 3, "u.py"),
                ("Users are still not sorted by name\nfive six seven eight nine ten", "u.py"),
                True,
            ),
            (
                ("Users are not sorted by name\n" + "one two three four " * 3, "u.py"),
                ("Users are still not sorted by name\nfive six seven eight nine ten", None),
                False,
            ),
            (
                ("Parser loses comments\n" + "one two three four " * 3, "u.py"),
                ("Parser loses comments\nfive six seven eight nine ten", "u.py"),
                True,
            ),
            (
                ("No retries\nthe client gives up at once", "u.py"),
                ("No retries\na test sleeps for seven seconds", "u.py"),
                False,
            ),
            (("no check of the input", "src/a/"), ("no check of the input", "src/a"), True),
            (("loops walks calls", None), ("loop walk call", None), True),
            (("No retries", None), ("no retries!", None), True),
            (("No retries", None), ("No tests", None), False),
            (("???", None), ("???", "a.py"), True),
            (("???", None), ("!!!", None), False),
            (("メールの検証がない", None), ("メールの検証がない。", None), True),
            (("メールの検証がない", None), ("一覧が並んでいません", None), False),
        ],
    )
    def test_same(
        self, first: tuple[str, str | None], second: tuple[str, str | None], expected: bool
    ) -> None:
        """Rewording, numbers and lines keep a finding equal; another file or subject does not."""
        assert expected == same(Finding(*first), Finding(*second))

    @given(st.text(), st.text(), st.sampled_from([None, "a.py", "b.py:3", "src/a.py:9"]))
    def test_it_is_symmetric(self, a: str, b: str, where: str | None) -> None:
        """Equality is symmetric and reflexive."""
        first, second = Finding(a, "a.py"), Finding(b, where)
        assert same(first, second) == same(second, first)
        assert same(first, first)

    @given(st.lists(WORD, min_size=4, max_size=12, unique=True), st.randoms(use_true_random=False))
    def test_the_order_of_words_is_no_matter(self, words: list[str], dice: random.Random) -> None:
        """The same words in another order, in capitals or with numbers are the same finding."""
        shuffled = dice.sample(words, len(words))
        second = " ".join(shuffled).upper() + " 17"
        assert same(Finding(" ".join(words)), Finding(second))


NEUTRAL = (
    *("Summary", "Overall summary", "Verdict", "Conclusion", "Assessment", "Results"),
    *("Overview", "Introduction", "Scope", "Method", "Methodology", "Approach", "Baseline"),
    *("Context", "Background", "Note", "Notes", "Checked", "What I checked", "Verified"),
    *("What was tested", "What matches", "What is fine", "What is right", "What works"),
    *("Works", "OK", "Passed", "Passes", "Passing", "Strengths", "Positive", "Positives"),
    *("Fine", "Test", "Tests run", "Checks", "Commands", "Command run", "Evidence"),
    *("Next steps", "Settled", "Fixed", "Resolved", "2. **Summary**:"),
)
LISTS = (
    *("Findings", "Open issues", "Remaining problem", "New defects", "Other bugs", "Bug"),
    *("Minor gaps", "Gap", "Mismatch", "Mismatches", "Differences", "Deviations", "Changes"),
    *("Required changes", "Requested changes", "Changes required", "Missing", "Blockers"),
    *("What is missing", "Must fix", "Should fix", "Critical", "Major", "Minor", "High"),
    *("Medium", "Low", "Major findings", "Critical issue", "Blocking issues", "Main problems"),
)
NUMBERS = (
    *("1.", "12)", "A1", "1.2.3", "Finding 1", "Issue #2", "Problem 3:", "Bug 4", "Defect 5"),
    *("Blocker 6", "Finding:", "Issue:", "Problem :", "Bug:", "Defect:", "Blocker:", "[F1]"),
)
FIELDS = (
    *("Place", "Where", "Location", "File", "Files", "Spec", "Specs", "Specification"),
    *("Requirement", "Requirements", "Expected", "Actual", "Code", "Found", "Observed"),
    *("Severity", "Priority", "Fix", "Suggestion", "Suggested fix", "Recommendation"),
    *("Impact", "Why", "Reason", "What", "Problem", "Evidence", "Detail", "Details", "Steps"),
    *("Reproduce", "Reproduction", "Proof", "Demands", "Demanded", "Says", "Does"),
    *("Spec says", "Code does", "Code is", "**Place**"),
)


@each(
    "review, expected",
    [
        # Sections on completed or good work have no findings if other sections do.
        *((f"## {title}\n- a\n\n## Findings\n- b", ["b"]) for title in NEUTRAL),
        # A numbered heading that only introduces a list is not a finding itself.
        *((f"## 1. {title}\n- a\n- b", ["a", "b"]) for title in LISTS),
        # A numbered heading includes the items below it.
        *((f"## {number} No check\n- a\n- b", [f"{number} No check\na\nb"]) for number in NUMBERS),
        # An item that adds a field to the previous one belongs to that finding.
        *((f"- a\n- {field}: b", [f"a\n{field}: b"]) for field in FIELDS),
    ],
)
def test_each_word_that_means_something(review: str, expected: list[str]) -> None:
    """Neutral sections, lists of findings, numbers and fields are known by their words."""
    assert expected == [finding.what for finding in parse_findings(review)]


@each(
    "review, where",
    [
        # A labeled location takes precedence over one with a line number.
        *(
            (f"- a, as in src/b.py:3\n  {field}: src/a.py", "src/a.py")
            for field in ("Place", "Where", "Location", "File", "Files", "Code")
        ),
        # Files are recognized by name or extension; products named like files are none.
        *(
            (f"- mend {name} first", name)
            for name in ("Dockerfile", "Jenkinsfile", "Makefile", "go.mod.lock", "x.py")
        ),
        *((f"- mend {name} first", None) for name in ("Node.js", "vue.js", "Next.js", "React.js")),
    ],
)
def test_each_name_of_a_location(review: str, where: str | None) -> None:
    """A location is known by its label, its name or its extension."""
    assert [where] == [finding.where for finding in parse_findings(review)]


def test_a_file_for_a_person() -> None:
    """The file has a title, the location, the reviewer's text, and the next steps."""
    text = finding_as_markdown(Finding("1. **No check**\nof `x`", "src/a.py:3"))
    assert (
        "# No check\n\nWhere: `src/a.py:3`\n\n1. **No check**\nof `x`\n\nReviews requested "
        "this, and no plan resolved it. Decide what is right: fix the code, or change the "
        "specification. Then delete this file.\n"
    ) == text


def test_a_long_title_is_cut() -> None:
    """A first line above 100 characters is truncated in the title and kept whole below it."""
    title, _, rest = finding_as_markdown(Finding("word " * 60)).partition("\n")
    assert "# " + ("word " * 20).strip() + "…" == title
    assert ("word " * 60).strip() in rest
    assert finding_as_markdown(Finding("w" * 100)).startswith("# " + "w" * 100 + "\n")
    assert finding_as_markdown(Finding("w" * 101)).startswith("# " + "w" * 99 + "…\n")


def test_a_line_is_not_repeated() -> None:
    """A finding that fits into its title has no text below it."""
    text = finding_as_markdown(Finding("No help text"))
    assert 1 == text.count("No help text")
    assert "Where" not in text


def test_a_title_without_words() -> None:
    """A finding of nothing but punctuation gets a generic title."""
    assert finding_as_markdown(Finding("***")).startswith("# Finding\n")


def test_an_improvement() -> None:
    """The file of an improvement has neither id nor label, and other next steps."""
    finding = Finding("F3: [improvement] Shorter names", "src/a.py")
    text = finding_as_markdown(finding, is_improvement=True)
    assert text.startswith("# Shorter names\n\nWhere: `src/a.py`\n\nA review suggested this")


def ledgers(
    reviews: list[str], *, patience: int = 3, files: Sequence[NamedFiles | None] | None = None
) -> list[ReviewLedger]:
    """Return the ledger after each review; `files` are those that each names."""
    steps = [ReviewLedger(patience)]
    for review, named in zip(reviews, files or [None] * len(reviews), strict=True):
        steps.append(steps[-1].after(review, files=named))
    return steps[1:]


def stalls(
    reviews: list[str], files: Sequence[NamedFiles] | None = None, *, patience: int = 3
) -> list[int]:
    """Return the reviews, counted from 1, after which the ledger has stalled."""
    steps = enumerate(ledgers(reviews, patience=patience, files=files), start=1)
    return [n for n, ledger in steps if ledger.stalled is not None]


def repeats(reviews: list[str], *, patience: int = 3) -> list[int]:
    """Return how many reviews in a row have each open finding of the last."""
    return [entry.repeats for entry in ledgers(reviews, patience=patience)[-1].open]


A = "- The email is not validated anywhere, `src/app.py:3`"
A2 = "- Emails: validated nowhere still (`src/app.py:17`), anywhere in the code"
B = "- The list of users is not sorted by name, `src/list.py`"
C = "- No help text for the option `--verbose`"

REVIEWS = st.lists(
    st.sampled_from([A, A2, B, C, f"{A}\n{B}", f"{A2}\n- Improvement: {C[2:]}", ""]), max_size=12
)


class TestLedger:
    @each(
        "reviews, expected",
        [
            ([A, A], []),
            ([A, A, A], [3]),
            ([A, A2, A], [3]),
            ([A, A, A, A], [3, 4]),
            ([f"{A}\n{B}", f"{B}\n{A2}", f"{A}\n{B}"], [3]),
            ([f"{A}\n{B}", f"{A}\n{B}", A], []),
            ([f"{A}\n{B}", A, A, A], [4]),
            ([A, A, f"{A}\n{C}"], []),
            ([A, B, A, B, A, B], []),
            ([f"{A}\n{B}", f"{A}\n{C}", f"{A}\n{B}"], []),
            ([A, A, "", A], []),
            (["", "", "", ""], []),
            (["Nothing works here at all."] * 3, [3]),
        ],
    )
    def test_when_it_stalls(self, reviews: list[str], expected: list[int]) -> None:
        """Three reviews with the same findings, none settled and none new, are a stall."""
        assert expected == stalls(reviews)

    def test_the_stall(self) -> None:
        """The stall has the latest text of each finding and the number of reviews with it."""
        first, second, third = ledgers([A, A2, A], patience=2)
        assert first.stalled is None
        assert Stalled(parse_findings(A2), 2) == second.stalled
        assert Stalled(parse_findings(A), 3) == third.stalled

    def test_it_counts_reviews_per_finding(self) -> None:
        """Each open finding has the number of consecutive reviews with it."""
        reviews = [A, f"{B}\n{A}", f"{B}\n{A2}\n{C}"]
        assert [2, 3, 1] == repeats(reviews)
        assert [4] == repeats([*reviews, A])

    def test_the_most_similar_one_matches(self) -> None:
        """Of two findings similar to an earlier one, the closer one matches, in either order."""
        vague = "- The email of a user is nowhere validated, and neither are phone and address"
        exact = "- The email of a user is nowhere validated, neither is the phone"
        for review in (f"{vague}\n{exact}", f"{exact}\n{vague}"):
            ledger = ledgers([exact, review])[-1]
            assert {exact[2:]: ("F1", 2), vague[2:]: ("F2", 1)} == {
                entry.finding.what: (entry.id, entry.repeats) for entry in ledger.open
            }

    def test_two_findings_are_not_one(self) -> None:
        """An earlier finding matches once; a second similar one is new."""
        reviews = [f"{B}\n{A}", f"{A}\n{A2}"]
        assert [] == stalls(reviews, patience=2)
        assert [2, 1] == repeats(reviews)
        assert [3] == repeats([*reviews, A])

    def test_an_approval_settles_all(self) -> None:
        """After an approval no finding is open, and none is repeated."""
        ledger = ledgers([A, A])[-1].approved()
        assert () == ledger.open
        assert ["settled"] == [entry.state for entry in ledger.entries]
        (entry,) = ledger.after(A).open
        assert ("F1", 1) == (entry.id, entry.repeats)

    def test_falling_counts_are_progress(self) -> None:
        """Reviews that count fewer and fewer failures are no stall, however alike."""
        for line in (
            "{n} tests fail",
            "- {n} tests fail in the suite",
            "- `tests/test_app.py`: {n} tests fail",
            "- `src/app.py`: {n} of the calls are not checked",
            "## Failures\n\n{n} tests fail, see the output of the check",
            "1. The suite reports {n}/40 failures (`src/app.py:{n}`)",
            "{n} tests fail:\n\n- `src/other.py`: the title is missing",
            "## {n} findings\n\n1. Nothing is checked.\n2. The title is missing.",
        ):
            reviews = [line.format(n=n) for n in (12, 8, 5, 4, 3, 2, 1)]
            assert [] == stalls(reviews, [{}] * 7)

    @each(
        "reviews, files, expected",
        [
            # The file that they name changes, or it does not.
            ([A, A2, A], ["1", "1", "1"], [3]),
            ([A, A2, A], ["1", "2", "3"], []),
            ([A, A2, A], ["1", "1", "2"], []),
            ([A, A, A, A], ["1", "2", "2", "2"], [4]),
            # A file that is missing, and one that was written.
            ([A, A, A], ["", "", ""], [3]),
            ([A, A, A], ["", "1", "1"], []),
            # Without names the whole text counts.
            ([C, C, C], [""] * 3, [3]),
            ([C, f"{C} at all", C], [""] * 3, []),
            # Lines and the numbers of items are no counts.
            ([f"{A}:{n}" for n in (9, 5, 1)], ["1"] * 3, [3]),
            (
                [f"{n}. No email is checked in line {n}, `src/app.py`" for n in (3, 2, 1)],
                ["1"] * 3,
                [3],
            ),
            # Neither are they beside the findings, nor is what rises there.
            ([f"See line {n} first.\n\n{A}" for n in (9, 5, 1)], ["1"] * 3, [3]),
            ([f"Round {n}\n\n{A}" for n in (1, 2, 3)], ["1"] * 3, [3]),
            # A count that rises is no progress.
            ([f"- {n} emails are wrong, `src/app.py`" for n in (1, 2, 3)], ["1"] * 3, [3]),
        ],
    )
    def test_files_that_are_named(
        self, reviews: list[str], files: list[str], expected: list[int]
    ) -> None:
        """A finding is repeated as long as the files that it names are unchanged."""
        states = [{"src/app.py": {"src/app.py": digest}} for digest in files]
        assert expected == stalls(reviews, states)

    def test_another_name_of_the_same_file(self) -> None:
        """A file that is named without its folder is the same file."""
        short = A.replace("src/", "")
        states = [{name: {"src/app.py": "1"}} for name in ("src/app.py", "app.py", "src/app.py")]
        assert [3] == stalls([A, short, A], states)

    def test_tests_that_fail(self) -> None:
        """A test that is named is where work is seen, not where it is done: other words count."""
        reviews = [
            f"- `tests/test_app.py`: test_{name} fails" for name in ("login", "logout", "add")
        ]
        states = [{"tests/test_app.py": {"tests/test_app.py": "1"}}] * 3
        assert [] == stalls(reviews, states)
        assert [3] == stalls(reviews[:1] * 3, states)

    def test_a_run_of_an_earlier_version(self) -> None:
        """Reviews without files are compared by text; the first with files repeats none."""
        named = {"src/app.py": {"src/app.py": "1"}}
        ledger = ReviewLedger(2)
        for files, is_stalled in ((None, False), (None, True), (named, False), (named, True)):
            ledger = ledger.after(A, files=files)
            assert is_stalled == (ledger.stalled is not None)

    def test_patience_is_positive(self) -> None:
        """A patience below one review is rejected."""
        with pytest.raises(ValueError, match="at least 1"):
            ReviewLedger(0)

    @given(st.one_of(st.text(), MARKDOWN), st.integers(1, 4))
    def test_the_same_review_always_stalls(self, review: str, patience: int) -> None:
        """A repeated review stalls at its `patience`-th time, unless it is blank."""
        expected = [patience] if review.strip() else []
        assert expected == stalls([review] * patience, patience=patience)

    @pytest.mark.real_agent
    @each(
        "line",
        [
            "- {n} the same few words in each of them `a.py`",
            "- w{n}",
            "# a " + "# " * 5000 + "{n}",
            "`" * 3000 + "{n}",
            "a/" * 3000 + "{n}",
            "- " + "x.py:1" * 3000,
            "|" * 3000 + "{n}",
            "**" * 3000 + "{n}",
            "- [ ] " * 1000 + "{n}",
        ],
    )
    def test_a_large_review_is_fast(self, line: str) -> None:
        """Megabytes of findings of any form are compared in linear time."""

        def work(count: int) -> None:
            review = "\n".join(line.format(n=n) for n in range(count))
            assert [2] == stalls([review, review], patience=2)

        assert is_linear(work, small=60, large=500)


FORMAT = """# Review

## Required by the specification

- `src/app.py:3`: the email is not validated
  - Spec: `.specs/users.md`, section 2

## Improvements

- `src/list.py`: the sorting could be faster

### 2. Names

of variables are short, `src/names.py`
"""


def states(ledger: ReviewLedger) -> dict[str, str]:
    return {entry.id: entry.state for entry in ledger.entries}


class TestIds:
    @each(
        "reviews, expected",
        [
            ([f"{A}\n{B}"], {"F1": "open", "F2": "open"}),
            ([A, B, A2], {"F1": "open", "F2": "settled"}),
            ([f"{A}\n{B}", f"{B}\n{C}"], {"F1": "settled", "F2": "open", "F3": "open"}),
            ([A, "", C, A], {"F1": "open", "F2": "settled"}),
            # The id that a finding gives counts, unless it names another file.
            ([A, "- F1: quite other words, `src/app.py`"], {"F1": "open"}),
            ([A, "- **F1** quite other words"], {"F1": "open"}),
            ([A, f"- F1: {B[2:]}"], {"F1": "settled", "F2": "open"}),
            ([A, f"- F7: {B[2:]}"], {"F1": "settled", "F2": "open"}),
            # Short texts about one file are not the same.
            (
                ["- Improvement: `src/a.py`: shorter names", "- `src/a.py`: the loop is odd"],
                {"F1": "kept", "F2": "open"},
            ),
            (
                ["- `src/a.py`: shorter names", B, "- `src/a.py`: the loop is odd"],
                {"F1": "settled", "F2": "settled", "F3": "open"},
            ),
            ([FORMAT], {"F1": "open", "F2": "kept", "F3": "kept"}),
            ([f"- Improvement: {A[2:]}", A], {"F1": "open"}),
            ([A, f"- Improvement: {A[2:]}"], {"F1": "kept"}),
        ],
    )
    def test_ids_and_states(self, reviews: list[str], expected: dict[str, str]) -> None:
        """A finding keeps its id when it comes back; new ones get the next."""
        assert expected == states(ledgers(reviews)[-1])

    @given(REVIEWS)
    def test_ids_are_stable(self, reviews: list[str]) -> None:
        """Ids are in order and never lost, and each stays with one file."""
        before: dict[str, str] = {}
        for ledger in ledgers(reviews):
            files = {
                entry.id: (entry.finding.where or "").partition(":")[0] for entry in ledger.entries
            }
            assert [f"F{n + 1}" for n in range(len(ledger.entries))] == sorted(files)
            assert before.items() <= files.items()
            before = files

    @given(REVIEWS)
    def test_the_latest_review_is_what_is_open(self, reviews: list[str]) -> None:
        """Each finding of the latest review is open or an improvement; no other is open."""
        for review, ledger in zip(reviews, ledgers(reviews), strict=True):
            blocking, improvements, _ = ledger.judgment
            assert ledger.open == blocking
            found = {entry.finding for entry in (*blocking, *improvements)}
            assert set(parse_findings(review)) == found


class TestJudgment:
    """What blocks the work, from the second review on."""

    OLD = ReviewLedger(3).after(A)

    @each(
        "review, changed, blocking, improvements",
        [
            (A2, ["src/app.py"], ["F1"], []),
            (B, ["src/app.py"], [], ["F2"]),
            (B, ["src/app.py", "src/list.py"], ["F2"], []),
            (B, None, ["F2"], []),
            # Nothing was done for F1, so that this may be F1 in other words.
            (B, [], ["F2"], []),
            (B, ["src/other.py"], ["F2"], []),
            (f"{B}\n  Reason: it was hidden by F1", ["src/app.py"], ["F2"], []),
            (f"{B}\n  - Spec: sorted by name", ["src/app.py"], ["F2"], []),
            (f"{B}, against users.md", ["src/app.py"], ["F2"], []),
            (f"{B} (REQ-12)", ["src/app.py"], ["F2"], []),
            (C, ["src/app.py"], ["F2"], []),
            ("- `tests/test_app.py`: test_a fails", ["src/app.py"], ["F2"], []),
            ("- `src/`: the names are odd", ["src/app.py"], ["F2"], []),
            ("- `lib/`: the names are odd", ["src/app.py"], [], ["F2"]),
            ("- `list.py` is not sorted", ["src/app.py", "src/list.py"], ["F2"], []),
            ("The list is not sorted, see src/list.py", ["src/app.py"], ["F2"], []),
            (f"- Improvement: {A2[2:]}", ["src/app.py"], [], ["F1"]),
            (f"{A}\n{B}", ["src/app.py"], ["F1"], ["F2"]),
            ("", ["src/app.py"], [], []),
        ],
    )
    def test_of_a_second_review(
        self, review: str, changed: list[str] | None, blocking: list[str], improvements: list[str]
    ) -> None:
        """New findings on old ground need a clause or a reason; known ones do not."""
        judgment = judged(review, self.OLD, changed=changed)
        assert blocking == [entry.id for entry in judgment.blocking]
        assert improvements == [entry.id for entry in judgment.improvements]
        assert (bool(improvements) and not blocking) == judgment.is_approval

    def test_an_improvement_stays_one(self) -> None:
        """A finding that was put off blocks when its file changes, not when it is repeated."""
        ledger = self.OLD.after(B, changed=["src/app.py"])
        assert judged(B, ledger, changed=[]).is_approval
        assert not judged(B, ledger, changed=["src/list.py"]).is_approval
        assert not judged(f"{B}\n  Reason: users wait", ledger, changed=[]).is_approval

    @each(
        "review, expected",
        [
            ("## Improvements\n\n- `src/a.py`: names", True),
            ("All is done.\n\n## Improvements\n\n- `src/a.py`: names", True),
            ("Two tests fail.\n\n## Improvements\n\n- `src/a.py`: names", False),
            ("F1 still blocks.\n\n- Improvement: names", False),
            ("- [improvement] names", True),
            ("- **Improvement:** names", True),
            ("- **Improvement** \u2014 names", True),
            ("- (improvement) names", True),
            ("- Improvement-related names", False),
            ("- Improvement of the parser is missing", False),
            ("## Minor\n\n- names", False),
            (FORMAT, False),
            ("redo", False),
            ("", False),
        ],
    )
    def test_an_approval_with_improvements(self, review: str, expected: bool) -> None:
        """Improvements alone approve, in the format only, and if nothing else is reported."""
        assert expected == judged(review, ReviewLedger()).is_approval

    def test_improvements_are_no_stall(self) -> None:
        """Improvements neither make a stall nor prevent one."""
        names = "- Improvement: the names are short"
        assert [] == stalls([names] * 4)
        assert [3] == stalls([A, f"{A}\n{names}", A])

    @given(REVIEWS)
    def test_it_is_the_judgment_of_the_ledger(self, reviews: list[str]) -> None:
        """Judging a review first and entering it later agree."""
        ledger = ReviewLedger()
        for review in reviews:
            judgment = judged(review, ledger, changed=["src/list.py"])
            ledger = ledger.after(review, changed=["src/list.py"])
            assert judgment == ledger.judgment


def counts(calls: str) -> list[int]:
    """Return the count after each call; a letter is a tool with its input and result."""
    watch = RepetitionWatch()
    told = []
    for number, call in enumerate(calls):
        watch.called(call, {"of": call}, id=str(number))
        told.append(watch.answered(str(number), f"result of {call}"))
        assert watch.tool == call
    return told


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("aaaa", [1, 2, 3, 4]),
        ("aabaa", [1, 2, 1, 1, 2]),
        ("abababab", [1, 1, 1, 2, 2, 3, 3, 4]),
        ("abcabcabc", [1, 1, 1, 1, 1, 2, 2, 2, 3]),
        ("abcdabcdabcd", [1] * 12),
    ],
)
def test_calls_in_a_row(calls: str, expected: list[int]) -> None:
    """Equal calls in a row count, and up to three different ones in turn."""
    assert expected == counts(calls)


def test_input_and_result_must_be_equal() -> None:
    """Another input or another result starts a new count; the order of keys does not matter."""
    watch = RepetitionWatch()
    told = []
    for called, result in [
        ({"a": 1, "b": 2}, "x"),
        ({"b": 2, "a": 1}, "x"),
        ({"a": 1, "b": 3}, "x"),
        ({"a": 1, "b": 3}, "y"),
        ({"a": 1, "b": 3}, "y"),
    ]:
        watch.called("Read", called, id="1")
        told.append(watch.answered("1", result))
    assert [1, 2, 1, 1, 2] == told


def test_calls_at_once_and_without_ids() -> None:
    """Results find their calls by id, those of calls without one in their order."""
    watch = RepetitionWatch()
    for number in range(3):
        watch.called("Bash", "make", id=f"b{number}")
    assert [1, 2, 3] == [watch.answered(f"b{number}", "ok") for number in (2, 0, 1)]
    for _ in range(2):
        watch.called("Read", "a")
    assert [1, 2] == [watch.answered("unknown", "text") for _ in range(2)]
    assert 1 == watch.answered("unknown", "a result without a call")


def test_the_ending_that_claims_least() -> None:
    """In any order it is the first of this list."""
    kinds = (
        ev.SpecIssue,
        ev.RequestChanges,
        ev.Progress,
        ev.PlanComplete,
        ev.Done,
        ev.NoMoreWork,
        ev.Approved,
    )
    endings = [kind(content="") for kind in kinds]
    for few in permutations(endings, 2):
        assert most_cautious(few) is min(few, key=endings.index)


def test_an_ending_of_another_kind_is_like_a_plan() -> None:
    """Of equals the first one counts."""
    own, plan = ev.Note(content=""), ev.PlanComplete(content="")
    for few in ([own, plan], [plan, own]):
        assert most_cautious(few) is few[0]
    assert most_cautious([ev.Done(content=""), own]) is own
    progress = ev.Progress(content="")
    assert most_cautious([own, progress]) is progress
