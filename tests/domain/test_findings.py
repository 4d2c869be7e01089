"""Findings of reviews: their structure, words and equality, and the file for a person."""

from __future__ import annotations

import random

from hypothesis import given, strategies as st

from cuggino.domain.findings import MAX_FINDINGS, Finding, finding_as_markdown, parse_findings
from cuggino.domain.review_ledger import same
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
