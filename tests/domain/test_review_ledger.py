"""Detection of reviews that repeat themselves."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.findings import ReviewLedger, Stalled, parse_findings
from tests.domain.test_findings import MARKDOWN
from tests.limits import LIMIT
from tests.vectors import each


def add_all(reviews: list[str], *, patience: int = 3) -> list[int]:
    """Return the reviews, counted from 1, after which the ledger has stalled."""
    ledger = ReviewLedger(patience)
    return [n for n, review in enumerate(reviews, start=1) if ledger.add(review) is not None]


def stalls(reviews: list[str], files: list[dict[str, dict[str, str]]]) -> list[int]:
    """Return the same for reviews with the files that they name."""
    ledger = ReviewLedger(3)
    told = enumerate(zip(reviews, files, strict=True), start=1)
    return [n for n, (review, named) in told if ledger.add(review, named) is not None]


A = "- The email is not validated anywhere, `src/app.py:3`"
A2 = "- Emails: validated nowhere still (`src/app.py:17`), anywhere in the code"
B = "- The list of users is not sorted by name, `src/list.py`"
C = "- No help text for the option `--verbose`"


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
        assert expected == add_all(reviews)

    def test_the_stall(self) -> None:
        """The stall has the latest text of each finding and the number of reviews with it."""
        ledger = ReviewLedger(2)
        assert ledger.add(A) is None
        assert Stalled(parse_findings(A2), 2) == ledger.add(A2)
        assert Stalled(parse_findings(A), 3) == ledger.add(A)

    def test_it_counts_reviews_per_finding(self) -> None:
        """Each open finding has the number of consecutive reviews with it."""
        ledger = ReviewLedger(3)
        for review in (A, f"{B}\n{A}", f"{B}\n{A2}\n{C}"):
            ledger.add(review)
        assert [2, 3, 1] == [count for _finding, count in ledger.open]
        ledger.add(A)
        assert [4] == [count for _finding, count in ledger.open]

    def test_the_most_similar_one_matches(self) -> None:
        """Of two findings similar to an earlier one, the closer one matches, in either order."""
        vague = "- The email of a user is nowhere validated, and neither are phone and address"
        exact = "- The email of a user is nowhere validated, neither is the phone"
        for review in (f"{vague}\n{exact}", f"{exact}\n{vague}"):
            ledger = ReviewLedger(3)
            ledger.add(exact)
            ledger.add(review)
            assert {exact[2:]: 2, vague[2:]: 1} == {
                finding.what: count for finding, count in ledger.open
            }

    def test_two_findings_are_not_one(self) -> None:
        """An earlier finding matches once; a second similar one is new."""
        ledger = ReviewLedger(2)
        ledger.add(f"{B}\n{A}")
        assert ledger.add(f"{A}\n{A2}") is None
        assert [2, 1] == [count for _finding, count in ledger.open]
        ledger.add(A)
        assert [3] == [count for _finding, count in ledger.open]

    def test_an_approval_clears_it(self) -> None:
        """After an approval the ledger is empty."""
        ledger = ReviewLedger(3)
        ledger.add(A)
        ledger.add(A)
        ledger.approved()
        assert ReviewLedger(3) == ledger
        assert ledger.add(A) is None

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
        ledger = ReviewLedger(2)
        assert ledger.add(A) is None
        assert ledger.add(A) is not None
        files = {"src/app.py": {"src/app.py": "1"}}
        assert ledger.add(A, files) is None
        assert ledger.add(A, files) is not None

    def test_patience_is_positive(self) -> None:
        """A patience below one review is rejected."""
        with pytest.raises(ValueError, match="at least 1"):
            ReviewLedger(0)

    @given(st.one_of(st.text(), MARKDOWN), st.integers(1, 4))
    def test_the_same_review_always_stalls(self, review: str, patience: int) -> None:
        """A repeated review stalls at its `patience`-th time, unless it is blank."""
        expected = [patience] if review.strip() else []
        assert expected == add_all([review] * patience, patience=patience)

    @given(
        st.lists(st.sampled_from([A, A2, B, C, f"{A}\n{B}", ""]), max_size=12), st.integers(0, 12)
    )
    def test_a_replay_gives_the_same_ledger(self, reviews: list[str], cut: int) -> None:
        """A ledger restored from recorded reviews behaves like the original."""
        first, second = ReviewLedger(2), ReviewLedger(2)
        answers = [first.add(review) for review in reviews]
        for review in reviews[:cut]:
            second.add(review)
        assert answers[cut:] == [second.add(review) for review in reviews[cut:]]
        assert first == second

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
        """Megabytes of findings of any form take a few seconds at most."""
        review = "\n".join(line.format(n=n) for n in range(500))
        ledger = ReviewLedger(2)
        began = time.monotonic()
        ledger.add(review)
        assert ledger.add(review) is not None
        assert time.monotonic() - began < LIMIT
