"""The verification of jobs: the agent's answer, the loop's own facts, and the resulting job."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

from cuggino.domain.job_verification import (
    FINDINGS_HEADING,
    NO_ANSWER,
    Check,
    CommandRun,
    FailureCounts,
    JobFacts,
    VerificationResult,
    commit_issues,
    is_conventional,
    parse_check_answer,
    parse_job_answer,
    with_facts,
    with_findings,
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


PASSED = VerificationResult.passed()
VALID = VerificationResult(complete=True, requirement_valid=True)
UNKNOWN = VerificationResult.failed("Requirement code R not found in any SPECIFICATION.md file")
BUILD = CommandRun(check="build", command="make", exit_code=0)
TESTS = CommandRun(check="tests", command="make test", exit_code=0, output="12 passed")
ALL_PARTS = (
    "complete",
    "tests_pass",
    "documentation_exists",
    "build_succeeds",
    "requirement_valid",
)


def facts(
    *runs: CommandRun, requirement: VerificationResult = VALID, commits: tuple[str, ...] = ()
) -> JobFacts:
    return JobFacts(requirement=requirement, runs=runs, commits=commits)


BROKEN = CommandRun(check="tests", command="make test", exit_code=2, output="1 failed")
AS_WORDS = parse_job_answer("complete: true")


@each(
    "judged, known, expected",
    [
        (PASSED, facts(BUILD, TESTS), PASSED),
        (PASSED, facts(), PASSED),
        # Passing tests do not prove that there are tests of this job.
        (
            replace(PASSED, tests_pass=False, issues=("No tests of the cart",)),
            facts(TESTS),
            replace(PASSED, complete=False, tests_pass=False, issues=("No tests of the cart",)),
        ),
        (
            replace(PASSED, complete=False),
            facts(),
            replace(
                PASSED,
                complete=False,
                issues=(
                    "The verifying agent does not call the job complete, and does not say why",
                ),
            ),
        ),
        # A nonzero exit code and an unknown requirement refute the agent.
        (
            PASSED,
            facts(BUILD, BROKEN),
            replace(PASSED, complete=False, tests_pass=False, issues=(BROKEN.text,)),
        ),
        (
            PASSED,
            facts(replace(BUILD, exit_code=-9)),
            replace(
                PASSED,
                complete=False,
                build_succeeds=False,
                issues=("`make` exited with -9",),
            ),
        ),
        (
            PASSED,
            facts(requirement=UNKNOWN),
            replace(PASSED, complete=False, requirement_valid=False, issues=UNKNOWN.issues),
        ),
        # An answer in words has no parts: it passes if the facts do, and is reported as such.
        (AS_WORDS, facts(), replace(PASSED, by_words=True, issues=("complete: true",))),
        # An unconventional message is reported, and does not fail the job.
        (
            PASSED,
            facts(commits=("feat: a", "Add the cart\n\nfeat: no subject")),
            replace(
                PASSED,
                issues=('Commit message is not conventional, "type(scope): text": "Add the cart"',),
            ),
        ),
    ],
)
def test_the_agents_answer_and_the_facts(
    judged: VerificationResult, known: JobFacts, expected: VerificationResult
) -> None:
    """A job is done when the agent and all facts agree; a failed one always has an issue."""
    result = with_facts(judged, known)
    assert expected == result
    if known.refutation is not None:
        assert known.refutation == result


def test_words_do_not_help_against_facts() -> None:
    """Neither words nor prose complete a job that the facts refute."""
    assert not with_facts(AS_WORDS, facts(replace(BUILD, exit_code=1))).complete
    assert not with_facts(parse_job_answer("Looks good"), facts()).complete


@each("part", ALL_PARTS[1:])
def test_a_part_that_the_agent_denies_counts(part: str) -> None:
    """A failed part overrides the agent's claim that the job is complete."""
    others: Any = {part: False}
    result = with_facts(replace(PASSED, **others), facts(BUILD, TESTS))
    assert not result.complete
    assert 1 == len(result.issues)
    assert result.issues[0].startswith("Not verified that ")


def test_command_results_are_reported() -> None:
    """The exit code is reported, after a failure with the end of the output."""
    assert "`make test` exited with 0" == TESTS.text
    failed = replace(TESTS, exit_code=2, output="x" * 2000 + " the end\n")
    assert "`make test` exited with 2:\n" + "x" * 992 + " the end" == failed.text
    assert "`make` exited with 1" == replace(BUILD, exit_code=1, output=" \n").text


def test_a_long_output_is_cut() -> None:
    """The issue of a failed command has the end of its output."""
    failed = replace(BROKEN, output=f"{'x' * 2000}\n1 failed\n")
    (issue,) = with_facts(PASSED, facts(BUILD, failed)).issues
    assert issue.startswith("`make test` exited with 2:\nx")
    assert issue.endswith("x\n1 failed")
    assert 1000 < len(issue) < 1100


def test_a_command_alone_is_the_answer_to_its_check() -> None:
    """The result of a run replaces the agent's answer to that check."""
    assert VerificationResult(complete=True, build_succeeds=True) == BUILD.result
    assert VerificationResult(complete=True, tests_pass=True) == TESTS.result
    assert VerificationResult.failed("`make` exited with 1") == replace(BUILD, exit_code=1).result


@each(
    "expected, message",
    [
        *(
            (True, message)
            for message in (
                "feat: add",
                "fix(cart): keep",
                "refactor(cart)!: drop",
                "chore!: drop Python 3.10\n\nBREAKING CHANGE: yes",
                "Docs: say more",
                "build-deps(a/b, c): x",
                "\nfeat: after a blank line",
                "Merge branch 'main' into feature/x",
                'Revert "feat: add"',
            )
        ),
        *((False, message) for message in ("", "Add it", "feat add", "feat:add", "feat :x")),
        *((False, message) for message in ("feat(): x", "feat: ", "feat(a: x", "!: x")),
    ],
)
def test_conventional_messages(expected: bool, message: str) -> None:
    """A message is conventional if it begins with a type, or is generated by git."""
    assert expected == is_conventional(message)
    assert (0 if expected else 1) == len(commit_issues([message]))


def test_the_facts_reach_the_agent() -> None:
    """Each run with its exit code and each commit problem is a list item."""
    known = facts(
        BUILD, replace(TESTS, exit_code=1, output="1 failed\n2 passed"), commits=("Cart",)
    )
    assert [
        "- `make` exited with 0",
        "- `make test` exited with 1:",
        "  1 failed",
        "  2 passed",
        '- Commit message is not conventional, "type(scope): text": "Cart"',
    ] == known.as_list.splitlines()
    assert "- nothing\n" == facts().as_list


def test_counts_are_of_each_job_and_never_change_in_place() -> None:
    """Counts are per job and immutable."""
    none = FailureCounts()
    two = none.failed("A").failed("A")
    three = two.failed("A")
    assert not two.is_exhausted("A")
    assert (True, False) == (three.is_exhausted("A"), three.is_exhausted("B"))
    assert not three.passed("A").is_exhausted("A")
    assert FailureCounts() == none == none.passed("A")


def test_findings_precede_the_prompt() -> None:
    """Findings are a list under their heading, trimmed, followed by the unchanged prompt."""
    text = with_findings("Build it.\n", [" One:\nmore \n", "Two"])
    head, _, rest = text.partition("\n\n")
    assert f"# {FINDINGS_HEADING}" == head
    assert rest.endswith("\n\n- One:\n  more\n- Two\n\nBuild it.\n")
    assert "Build it.\n" == with_findings("Build it.\n", [])


RESULT = st.builds(
    VerificationResult,
    **{
        field.name: st.booleans() for field in fields(VerificationResult) if field.name in ALL_PARTS
    },
    issues=st.lists(st.text(min_size=1, max_size=5), max_size=3).map(tuple),
)
RUNS = st.lists(
    st.builds(
        CommandRun,
        check=st.sampled_from(["build", "tests"]),
        command=st.just("make"),
        exit_code=st.integers(-2, 2),
    ),
    max_size=2,
)


@given(RESULT, RUNS, st.booleans(), st.lists(st.text(), max_size=2))
def test_it_is_complete_only_when_all_agree(
    judged: VerificationResult, runs: list[CommandRun], valid: bool, commits: list[str]
) -> None:
    """A missing fact or part cannot be compensated; failures have an issue."""
    known = facts(*runs, requirement=VALID if valid else UNKNOWN, commits=tuple(commits))
    result = with_facts(judged, known)
    all_parts = all(getattr(judged, part) for part in ALL_PARTS)
    assert result.complete == (all_parts and valid and all(run.succeeded for run in runs))
    assert result.complete or result.issues
    assert set(judged.issues) <= set(result.issues)
    assert (known.refutation is None) == (valid and all(run.succeeded for run in runs))
