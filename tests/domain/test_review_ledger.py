"""Detection of reviews and of tool calls that repeat themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given, strategies as st

from cuggino import events as ev
from cuggino.domain import RepetitionWatch, most_cautious
from cuggino.domain.findings import parse_findings
from cuggino.domain.review_ledger import NamedFiles, ReviewLedger, Stalled, judged
from tests.domain.test_findings import MARKDOWN
from tests.growth import is_linear
from tests.vectors import each


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
