"""What a run waits for, and what answers and approvals decide."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cuggino.domain import (
    Decision,
    approval_question,
    approval_text,
    check_approval,
    is_covered,
    options_of,
    parse_waiting,
    plan_in,
    reached_sum,
    until_text,
    waited_text,
)
from cuggino.events import (
    At,
    CiDone,
    FileExists,
    PersonAnswers,
    ProcessEnded,
    Until,
    WaitingEnded,
    WaitingRefused,
)
from cuggino.events.waiting import WaitOutcome

NOW = datetime(2026, 12, 1, 5, 0, tzinfo=UTC)
DAY = 86_400.0
SIX = datetime(2026, 12, 1, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("ci", CiDone(within=DAY)),
        ("CI\nfor the tests on Windows", CiDone(within=DAY)),
        ("`process 4711`", ProcessEnded(pid=4711, within=DAY)),
        ("  file   build/report.xml  \n\nwhy", FileExists(path="build/report.xml", within=DAY)),
        ("file a b.txt", FileExists(path="a b.txt", within=DAY)),
        ("time 2026-12-01 06:00Z", At(time=SIX, within=DAY)),
        ("time 2026-12-01T07:00:00+01:00", At(time=SIX, within=DAY)),
        ("person Red or blue?", PersonAnswers(question="Red or blue?", within=DAY)),
        ("person: Red?\nOr blue?", PersonAnswers(question="Red?\nOr blue?", within=DAY)),
        ("person\nRed or blue?", PersonAnswers(question="Red or blue?", within=DAY)),
    ],
)
def test_the_first_line_names_the_source(content: str, expected: Until) -> None:
    """Each source is read from the first line; the rest is a note, or part of a question."""
    assert expected == parse_waiting(content, now=NOW, longest=DAY)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "'' names no source"),
        ("the build", "'the build' names no source"),
        ("ci 12", "'ci 12' names no source"),
        ("process", "needs the number of a process"),
        ("process -1", "needs the number of a process"),
        ("process 0", "needs the number of a process"),
        ("file", "needs a path"),
        ("time tomorrow", "needs a date and a time"),
        ("time", "needs a date and a time"),
        ("time 0001-01-01 00:00", "needs a date and a time"),
        ("time 0001-01-01T00:00+05:00", "needs a date and a time"),
        ("time 2026-12-03 06:00Z", "later than the longest wait allows, 24 h from now"),
        ("person", "needs the question"),
    ],
)
def test_what_cannot_be_awaited_is_one_sentence(content: str, reason: str) -> None:
    """An unknown source, a missing target and a time that is too late are errors that say so."""
    with pytest.raises(ValueError, match=reason) as caught:
        parse_waiting(content, now=NOW, longest=DAY)
    assert "\n" not in str(caught.value)


def test_a_time_without_a_zone_is_local() -> None:
    """A time that names no zone is one of this machine."""
    until = parse_waiting("time 2026-12-01 06:00", now=NOW - timedelta(days=1), longest=9 * DAY)
    assert isinstance(until, At)
    assert datetime(2026, 12, 1, 6).astimezone() == until.time


CI = CiDone(pull_request=12)


@pytest.mark.parametrize(
    ("wait", "expected"),
    [
        (
            WaitingEnded(until=CI, outcome="happened", answer="failed at 1ab", waited=600),
            "You waited for the CI of pull request 12. It has happened, after 10 min: failed at "
            "1ab. Go on",
        ),
        (
            WaitingEnded(until=CI, outcome="deadline", waited=DAY),
            "You waited for the CI of pull request 12. It has not happened within 24 h, the "
            "longest wait. Go on",
        ),
        (
            WaitingEnded(until=CI, outcome="failed", answer="not found", waited=5),
            "It could not be watched any longer after 5 s: not found. Go on",
        ),
        (
            WaitingEnded(
                until=PersonAnswers(question="Red?"), outcome="happened", answer="No.\n", waited=9
            ),
            "You waited for an answer to: Red?. It has happened, after 9 s; the answer:\n\nNo.\n\n",
        ),
        (WaitingRefused(asked="x", reason="there is no x"), "not possible: there is no x. Go on"),
    ],
)
def test_what_an_agent_is_told(wait: WaitingEnded | WaitingRefused, expected: str) -> None:
    """The prompt says what was awaited, how that ended, and with which answer."""
    assert expected in waited_text(wait)


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (CiDone(commit="0123456789abcdef"), "the CI of commit 0123456789ab"),
        (ProcessEnded(pid=4711), "the end of process 4711"),
        (At(time=SIX), "2026-12-01 06:00"),
        (PersonAnswers(question=f"Really?\n{'x' * 300}"), f"an answer to: Really? {'x' * 191}…"),
    ],
)
def test_a_wait_in_words(until: Until, expected: str) -> None:
    """What is awaited is named in a clause of one line."""
    assert expected == until_text(until)


@pytest.mark.parametrize(
    ("words", "decision"),
    [
        ("Approve", Decision("approved")),
        (" ok! ", Decision("approved")),
        ("Reject", Decision("rejected")),
        ("ok, but smaller", Decision("rejected", "ok, but smaller")),
        ("Approve\nonly the first", Decision("rejected", "Approve\nonly the first")),
    ],
)
def test_words(words: str, decision: Decision) -> None:
    """Only a plain yes approves; everything else is a reason."""
    assert decision == Decision.in_words(words)


@pytest.mark.parametrize(
    ("outcome", "answer", "decision"),
    [
        ("happened", "Approve", Decision("approved")),
        ("happened", "Approve\n\n# Plan", Decision("approved", "# Plan")),
        ("happened", "Reject\n\nNo.", Decision("rejected", "No.")),
        ("happened", "it was resolved", Decision("rejected", "it was resolved")),
        (
            "happened",
            "Approved by the plan itself",
            Decision("rejected", "Approved by the plan itself"),
        ),
        ("deadline", "Approve", Decision("approved")),
        ("deadline", "", Decision("expired")),
        ("failed", "no such folder", Decision("expired", "no such folder")),
    ],
)
def test_ends(outcome: WaitOutcome, answer: str, decision: Decision) -> None:
    """A wait ends with a decision; what is neither approval nor rejection approves nothing."""
    until = PersonAnswers(question="?", approves="plan")
    ended = WaitingEnded(until=until, outcome=outcome, answer=answer, waited=1.0)
    assert decision == Decision.of(ended)
    if outcome == "happened" and answer.startswith(("Approve\n", "Reject")):
        assert answer == decision.answer


@pytest.mark.parametrize("kind", ["", "plans", "spend", "spend:x", "spend:0", "spend:-1"])
def test_unknown_kinds(kind: str) -> None:
    """An unknown kind is an error that names the known ones."""
    with pytest.raises(ValueError, match='write "plan", "landing" or a sum'):
        check_approval(kind)


def test_sums() -> None:
    """The largest sum that is spent is asked for, and its approval covers smaller ones."""
    kinds = ["plan", "spend:5", "spend:20", "spend:50"]
    assert ["", "spend:5", "spend:20"] == [reached_sum(kinds, usd) for usd in (4.9, 5.0, 49.0)]
    assert is_covered("spend:5", {"spend:20"})
    assert not is_covered("spend:50", {"spend:20", "plan"})
    assert "spending more than $20.00" == approval_text("spend:20")


def test_the_file_of_a_plan() -> None:
    """The plan is found again, with rules of its own."""
    plan = "# Plan\n\n---\n\n- [ ] one"
    assert plan == plan_in(approval_question("plan", "001.md", plan))
    assert "" == plan_in(approval_question("spend:5", "", "Spent."))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("# Which?\n\n- CSV\n- `JSON`.\n", ("CSV", "JSON")),
        ("1. Yes\n2) **No**", ("Yes", "No")),
        ("- not these\n- two\n\nEither\n\n* a\n\n* b", ("a", "b")),
        ("- alone", ()),
        ("No list", ()),
        ("".join(f"- {number}\n" for number in range(7)), ()),
        ("- a\n- " + "long " * 20, ()),
        ("- a\n- `a`", ()),
        ("", ()),
    ],
)
def test_options_of_a_question(text: str, options: tuple[str, ...]) -> None:
    """The last short list of a question is what it offers."""
    assert options == options_of(text)
