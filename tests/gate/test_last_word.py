"""When an approval is the last word of its session."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from cuggino.gate import LastWord, has_findings, objections, question, requested_changes
from cuggino.gate.last_word import is_contradictory, is_draft
from tests.vectors import each

CLEAN = LastWord(contents=("The work matches the specification.",), before="I read all of it.")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"contents": ("NOT approved: 9 tests fail",)}, 'contradicts itself: "NOT approved'),
        ({"contents": ("ok", "not yet approved")}, 'contradicts itself: "not yet approved"'),
        ({"before": "If the tests passed I would write:"}, "introduced as a draft"),
        ({"before": "I did not look.\n\nHuman: now answer"}, 'draft: "Human: now answer"'),
        ({"after": "But they do not."}, 'more text follows the approval: "But they do not."'),
        ({"error": "failed"}, 'ended with an error: "failed"'),
        ({"exit_code": 1}, "ended with exit code 1"),
        ({"is_cut": True}, "cut at the token limit"),
        ({"review": "BLOCKING: login is missing"}, 'review file has findings: "BLOCKING'),
        ({"unticked": 5, "reported": 1}, "5 tasks of the plan not ticked, and 1 session reported"),
        ({"unticked": 1}, "1 task of the plan not ticked, and 0 sessions reported"),
    ],
)
def test_objections(change: dict[str, object], words: str) -> None:
    """Each contradiction is one objection; the question and the review contain it."""
    (reason,) = objections(replace(CLEAN, **change))  # type: ignore[arg-type]
    assert words in reason
    assert f"- {reason}\n" in question([reason])
    review = "BLOCKING: login is missing" if "review" in change else ""
    assert (review or reason) in requested_changes([reason], review=review)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"contents": ()},
        {"contents": ("",)},
        {"before": ""},
        {"before": "My verdict:"},
        {"after": "```\n---\n."},
        {"exit_code": 0},
        {"review": "# Review\n\nNo findings.\n"},
        {"unticked": 3, "reported": 3},
        {"unticked": 1, "reported": 2},
    ],
)
def test_no_objections(change: dict[str, object]) -> None:
    """A plain approval counts, and so does one whose record agrees."""
    assert () == objections(replace(CLEAN, **change))  # type: ignore[arg-type]


def test_all_objections_are_listed() -> None:
    """Several contradictions are all named."""
    word = replace(CLEAN, after="no", exit_code=3, review="- a.py: wrong")
    assert 3 == len(objections(word))


def test_the_question_names_the_review_file() -> None:
    """The reviewer may delete findings that no longer stand."""
    assert "Delete the review file wip/review.md if" in question(["x"], review="wip/review.md")
    assert "review file" not in question(["x"])


@each(
    "content",
    [
        *("NOT approved: 9 tests fail", "Not yet approved.", "9 tests fail", "3 failures remain"),
        *("the tests still fail", "tests are failing", "I cannot approve this", "I do not approve"),
        *("rejected", "Approved, but 2 tests fail", "Login is missing", "Work is incomplete"),
        *("ok except that login is still missing", "Not approved", "the build is broken", "NOT OK"),
        *("The work does not match the specification", "Not ready", "isn't complete", "pending"),
        *(
            "Approved once the tests pass? No: they fail",
            "tests don\u2019t pass",
            "It doesn't work",
        ),
        *("The implementation is not complete", "changes requested", "one blocker left", "no"),
        *("I would approve if login worked", "Approve once the tests are fixed", "failing"),
        *("conditionally approved: fix login first", "needs work", "partially implemented"),
        *("Do NOT merge", "hold off merging", "LGTM once the tests pass", "Needs changes", "NACK"),
        *("0/10 tests pass", "9 of 10 tasks are done", "Half of the tasks are done", "false"),
        *("1 critical issue remains", "there are still open issues", "could not run the tests"),
        *("crashes on start", "exit code 1", "not quite there", "\u274c", "no go", "-1"),
        *("nicht genehmigt", "non approuvé", "No apruebo", "не одобрено", "未批准", "refusé"),
    ],
)
def test_contradictory_contents(content: str) -> None:
    """The text of an approval says that it is none, or that the work fails."""
    assert is_contradictory(content)


@each(
    "content",
    [
        *("", "ok", "Fine.", "All tests pass", "No tests fail", "0 tests fail", "0 failures"),
        *("None of the tests fail", "Nothing is missing", "No findings.", "12 passed, 0 failed"),
        *("All requirements are met; no findings.", "The tests that failed before now pass"),
        *("Adds handling of missing files", "Invalid input is rejected", "No changes needed"),
        *("There is nothing that does not match the specification", "Not a single test fails"),
        *("Matches. No blocking findings", "The check no longer fails", "No blockers"),
        *("Error handling is complete", "Rejects invalid input with exit code 2", "Done."),
        *("The parser handles not found cases", "Looks good, not a trivial change"),
        *("Not only good but complete", "Nothing needs work", "Users are approved once they pay"),
        *("10 of 10 tests pass", "no open issues remain", "exit code 1 on bad input, as specified"),
        *("-1 is returned for an empty list", "does not accept empty names", "unable to break it"),
        *("crashes no longer occur", "no approvals are lost", "I could not find any problem"),
        "The tests fail if the input is negative, as specified",
    ],
)
def test_contents_of_honest_approvals(content: str) -> None:
    """Words of failure about something else, or denied, contradict nothing."""
    assert not is_contradictory(content)


@each(
    "before,expected",
    [
        ("If the tests passed I would write:", True),
        ("It could be\n\nFor example:", True),
        ("I would not answer ...", True),
        ("The format is:", True),
        ("User: say", True),
        ("", False),
        ("As soon as it is fixed, I will answer:", True),
        ("I can\u2019t write this yet:", True),
        ("The file REVIEW.md contains:", True),
        ("**User:** please", True),
        ("$ cat prompt.md", True),
        ("My verdict:", False),
        ("So my verdict, as the prompt asks:", False),
        ("I checked if it works.", False),
        ("For example: a.py\n\nAll is well:", False),
    ],
)
def test_drafts(before: str, expected: bool) -> None:
    """Only the last line before the marker introduces it."""
    assert expected == is_draft(before)


@each(
    "review,expected",
    [
        ("", False),
        ("\n\n", False),
        ("# Review\n", False),
        ("# Review\n\nNo findings.\n", False),
        ("None", False),
        ("- All good.", False),
        ("There are no findings.", False),
        ("The work matches the specification.", False),
        ("## Blocking\n\nNone.\n\n## Improvements\n\n- rename x", False),
        ("- [x] login works\n- [x] export works", False),
        ("Everything is fine. (none)\n[]", False),
        ("BLOCKING: login is missing, 9 tests fail\n", True),
        ("# BLOCKING: login is missing", True),
        ("No findings except: login", True),
        ("None of the requirements are met", True),
        ("No error handling in login", True),
        ("All good apart from login", True),
        ("## Improvements\n\n- rename x\n\n## Blocking\n\n- login", True),
        ("- a.py: wrong", True),
        ("# Review\nNo findings.\n- b.py:3 is wrong", True),
        ("No findings, but 2 tests fail", True),
    ],
)
def test_findings(review: str, expected: bool) -> None:
    """Any text is a finding, but a heading and the statement that there is none."""
    assert expected == has_findings(review)


@given(st.builds(LastWord, contents=st.tuples(st.text()), after=st.text(), review=st.text()))
def test_an_objection_never_goes_away(word: LastWord) -> None:
    """More contradictions add objections."""
    worse = replace(word, exit_code=1, is_cut=True, unticked=2)
    assert {*objections(word)} < {*objections(worse)}
