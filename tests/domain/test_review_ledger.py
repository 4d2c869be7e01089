"""Detection of reviews that repeat themselves."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.findings import ReviewLedger, Stalled, parse_findings
from tests.domain.test_findings import MARKDOWN
from tests.vectors import each


def add_all(reviews: list[str], *, patience: int = 3) -> list[int]:
    """Return the reviews, counted from 1, after which the ledger has stalled."""
    ledger = ReviewLedger(patience)
    return [n for n, review in enumerate(reviews, start=1) if ledger.add(review) is not None]


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
        assert time.monotonic() - began < 20
