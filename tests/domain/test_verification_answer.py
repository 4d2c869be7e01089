"""What is made of the answers of a verifying agent."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.job_verification import VerificationResult
from cuggino.domain.verification_answer import (
    NO_ANSWER,
    Check,
    parse_check_answer,
    parse_job_answer,
)
from tests.vectors import rows, snake

ROWS = {row["id"]: row for row in rows("lopen_verification")}
CHECKS: tuple[Check, ...] = get_args(Check)
KEYS = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")
ALL = {**dict.fromkeys(KEYS, True), "issues": []}


def of_function(*names: str) -> list[str]:
    """The ids of the rows of these functions."""
    return [row["id"] for row in ROWS.values() if row["fn"] in names]


def as_row(result: VerificationResult) -> dict[str, Any]:
    """The result as a case writes it."""
    parts: dict[str, Any] = {key: getattr(result, snake(key)) for key in KEYS}
    return {**parts, "issues": list(result.issues)}


@pytest.mark.parametrize("case", of_function("job"))
def test_the_answer_on_a_job(case: str) -> None:
    """Each recorded answer is read as its case says; what is recommended goes first."""
    row = ROWS[case]
    expected = row.get("recommended", row["expected"])
    assert expected == as_row(parse_job_answer(row["response"]))


def test_other_objects_do_not_count() -> None:
    """An object behind the answer that does not say whether the job is complete is none."""
    assert parse_job_answer(json.dumps(ALL) + ' as in {"name": "x"}').complete


@pytest.mark.parametrize("case", of_function(*CHECKS))
def test_the_answer_on_one_check(case: str) -> None:
    """Each recorded answer is read as its case says."""
    row = ROWS[case]
    assert row["expected"] == as_row(parse_check_answer(row["fn"], row["response"]))


@pytest.mark.parametrize("case", of_function("constructor"))
def test_results_are_made_as_the_cases_say(case: str) -> None:
    """Without anything known nothing holds; a failure has one issue."""
    row = ROWS[case]
    issue = row["expected"]["issues"]
    made = VerificationResult.failed(issue[0]) if issue else VerificationResult()
    assert row["expected"] == as_row(made)
    assert ALL == as_row(VerificationResult.passed())


@pytest.mark.parametrize("answer", [None, "", " \n"])
def test_no_answer_is_a_failure(answer: str | None) -> None:
    """An agent that says nothing verifies nothing."""
    expected = VerificationResult.failed(NO_ANSWER)
    assert expected == parse_job_answer(answer)
    assert [expected] * 3 == [parse_check_answer(check, answer) for check in CHECKS]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("complete: true", True),
        ('so "Complete": TRUE it is', True),
        ("complete: true, but testsPass: false", False),
        ("complete: true, and nothing is FALSE", False),
        ("incomplete: true", False),
        ("complete: truely", False),
        ("complete:true", False),
        ('{"complete": true, "testsPass": true', True),
        ('{"complete": true, "testsPass": false', False),
        ('{"complete": true, "testsPass": "no"}', True),
        ('{"complete": "true"}', False),
        ('{"complete": true, "issues": "none"}', True),
    ],
)
def test_words_stand_in_for_an_object(answer: str, expected: bool) -> None:
    """Without a usable object the one word counts, unless `false` stands there too; it is told."""
    result = parse_job_answer(answer)
    assert (expected, True, (answer,)) == (result.complete, result.by_words, result.issues)
    assert not result.tests_pass


@pytest.mark.parametrize(("length", "shown"), [(500, 500), (501, 503)])
def test_long_words_are_cut(length: int, shown: int) -> None:
    """Above five hundred characters the issue is cut, and ends with three dots."""
    (issue,) = parse_job_answer("x" * length).issues
    assert shown == len(issue)
    assert (shown > length) == issue.endswith("...")


@pytest.mark.parametrize(
    "text",
    [
        "I ran `f(){ :; }` and saw: {}",
        "The form is {complete: true/false}. Here: {} Done {for now}.",
        'First {{"complete": false}}, then {}',
        "{} with {{curly}} words behind",
    ],
)
def test_the_object_is_found_among_braces(text: str) -> None:
    """Other braces around the object do not hide it."""
    answer = text.replace("{{", "{").replace("}}", "}").replace("{}", json.dumps(ALL))
    assert VerificationResult.passed() == parse_job_answer(answer)
    for check in CHECKS:
        assert parse_check_answer(check, answer).complete


def test_an_object_inside_of_another_is_none() -> None:
    """Only the outer object speaks."""
    answer = json.dumps({"complete": False, "form": ALL}) + " and {so on}"
    assert VerificationResult() == parse_job_answer(answer)


@pytest.mark.parametrize("value", [None, 1, "true", [], {}])
@pytest.mark.parametrize("check", CHECKS)
def test_what_is_no_flag_verifies_nothing(check: Check, value: object) -> None:
    """A value that is neither true nor false is no answer to a check."""
    answer = json.dumps(dict.fromkeys(KEYS, value))
    expected = VerificationResult.failed(f"Could not parse {check} verification response")
    assert expected == parse_check_answer(check, answer)


def test_other_issues_than_texts_are_kept_as_json() -> None:
    """Blank and null entries are dropped, others kept."""
    answer = json.dumps(
        {"complete": False, "buildSucceeds": False, "issues": [" ", None, {"a": 1}]}
    )
    assert ('{"a": 1}',) == parse_job_answer(answer).issues
    assert ('{"a": 1}',) == parse_check_answer("build", answer).issues


@pytest.mark.parametrize("answer", ["{" * 200_000, '{"a":' * 100_000, "{}" * 100_000])
def test_an_answer_of_braces_is_read_quickly(answer: str) -> None:
    """However many braces there are, few are tried."""
    assert not parse_job_answer(answer).complete
    assert not parse_check_answer("tests", answer).complete


PARTS = st.text() | st.sampled_from(["{", "}", '"complete": true', "false", json.dumps(ALL), "```"])


@given(st.lists(PARTS, max_size=6).map("".join))
def test_any_answer_is_read(answer: str) -> None:
    """Whatever an agent says gives a result; one that fails says why, or had an object."""
    result = parse_job_answer(answer)
    assert result.complete or result.issues or "{" in answer
    for check in CHECKS:
        one = parse_check_answer(check, answer)
        assert one.complete == (one.tests_pass or one.documentation_exists or one.build_succeeds)


@given(st.dictionaries(st.sampled_from(KEYS), st.booleans()), st.text(alphabet="ab \n`'."))
def test_an_object_is_read_within_any_prose(parts: dict[str, bool], prose: str) -> None:
    """What stands around an object changes nothing, and missing keys are false."""
    result = parse_job_answer(f"{prose}{json.dumps(parts)}{prose}")
    assert {**dict.fromkeys(KEYS, False), **parts, "issues": []} == as_row(result)
