"""Parsing the answers of a verifying agent."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.job_verification import (
    NO_ANSWER,
    Check,
    VerificationResult,
    parse_check_answer,
    parse_job_answer,
)
from tests.vectors import each, rows, snake

ROWS = {row["id"]: row for row in rows("lopen_verification")}
CHECKS: tuple[Check, ...] = get_args(Check)
KEYS = ("complete", "testsPass", "documentationExists", "buildSucceeds", "requirementValid")
ALL = {**dict.fromkeys(KEYS, True), "issues": []}


def of_function(*names: str) -> list[str]:
    """Return the IDs of the rows of these functions."""
    return [row["id"] for row in ROWS.values() if row["fn"] in names]


def as_row(result: VerificationResult) -> dict[str, Any]:
    """Return the result in the form of a case."""
    parts: dict[str, Any] = {key: getattr(result, snake(key)) for key in KEYS}
    return {**parts, "issues": list(result.issues)}


@each("case", of_function("job"))
def test_answers_about_a_job(case: str) -> None:
    """Each recorded answer is parsed as its case expects; recommendations take precedence."""
    row = ROWS[case]
    expected = row.get("recommended", row["expected"])
    assert expected == as_row(parse_job_answer(row["response"]))


def test_other_objects_do_not_count() -> None:
    """An object after the answer without a verdict on the job is ignored."""
    assert parse_job_answer(json.dumps(ALL) + ' as in {"name": "x"}').complete


@each("case", of_function(*CHECKS))
def test_answers_about_one_check(case: str) -> None:
    """Each recorded answer is parsed as its case expects."""
    row = ROWS[case]
    assert row["expected"] == as_row(parse_check_answer(row["fn"], row["response"]))


@each("case", of_function("constructor"))
def test_results_match_the_cases(case: str) -> None:
    """Without any facts nothing passes; a failure has one issue."""
    row = ROWS[case]
    issue = row["expected"]["issues"]
    made = VerificationResult.failed(issue[0]) if issue else VerificationResult()
    assert row["expected"] == as_row(made)
    assert ALL == as_row(VerificationResult.passed())


@each("answer", [None, "", " \n"])
def test_no_answer_is_a_failure(answer: str | None) -> None:
    """An empty answer verifies nothing."""
    expected = VerificationResult.failed(NO_ANSWER)
    assert expected == parse_job_answer(answer)
    assert [expected] * 3 == [parse_check_answer(check, answer) for check in CHECKS]


@each(
    "answer, expected",
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
def test_plain_text_replaces_an_object(answer: str, expected: bool) -> None:
    """Without a usable object the keyword counts, unless `false` occurs too; it is reported."""
    result = parse_job_answer(answer)
    assert (expected, True, (answer,)) == (result.complete, result.by_words, result.issues)
    assert not result.tests_pass


@each("length, shown", [(500, 500), (501, 503)])
def test_long_text_is_truncated(length: int, shown: int) -> None:
    """Above five hundred characters the issue is truncated with three dots."""
    (issue,) = parse_job_answer("x" * length).issues
    assert shown == len(issue)
    assert (shown > length) == issue.endswith("...")


@each(
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


def test_nested_objects_are_ignored() -> None:
    """Only the outer object counts."""
    answer = json.dumps({"complete": False, "form": ALL}) + " and {so on}"
    assert VerificationResult() == parse_job_answer(answer)


@pytest.mark.parametrize("value", [None, 1, "true", [], {}])
@pytest.mark.parametrize("check", CHECKS)
def test_only_booleans_are_flags(check: Check, value: object) -> None:
    """A value that is neither true nor false does not answer a check."""
    answer = json.dumps(dict.fromkeys(KEYS, value))
    expected = VerificationResult.failed(f"Could not parse {check} verification response")
    assert expected == parse_check_answer(check, answer)


def test_issues_that_are_no_texts_are_kept_as_json() -> None:
    """Blank and null entries are dropped, others kept."""
    answer = json.dumps(
        {"complete": False, "buildSucceeds": False, "issues": [" ", None, {"a": 1}]}
    )
    assert ('{"a": 1}',) == parse_job_answer(answer).issues
    assert ('{"a": 1}',) == parse_check_answer("build", answer).issues


@each("answer", ["{" * 200_000, '{"a":' * 100_000, "{}" * 100_000])
def test_an_answer_of_braces_is_read_quickly(answer: str) -> None:
    """For any number of braces, only a few are tried."""
    assert not parse_job_answer(answer).complete
    assert not parse_check_answer("tests", answer).complete


PARTS = st.text() | st.sampled_from(["{", "}", '"complete": true', "false", json.dumps(ALL), "```"])


@given(st.lists(PARTS, max_size=6).map("".join))
def test_any_answer_is_parsed(answer: str) -> None:
    """Any answer gives a result; a failed one has an issue or an object."""
    result = parse_job_answer(answer)
    assert result.complete or result.issues or "{" in answer
    for check in CHECKS:
        one = parse_check_answer(check, answer)
        assert one.complete == (one.tests_pass or one.documentation_exists or one.build_succeeds)


@given(st.dictionaries(st.sampled_from(KEYS), st.booleans()), st.text(alphabet="ab \n`'."))
def test_an_object_is_found_in_any_prose(parts: dict[str, bool], prose: str) -> None:
    """Text around an object changes nothing, and missing keys are false."""
    result = parse_job_answer(f"{prose}{json.dumps(parts)}{prose}")
    assert {**dict.fromkeys(KEYS, False), **parts, "issues": []} == as_row(result)
