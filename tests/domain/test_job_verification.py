"""The gate: the agent's verdict, the loop's own facts, and the resulting job."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from hypothesis import given, strategies as st

from cuggino.domain.job_verification import (
    FINDINGS_HEADING,
    CommandRun,
    FailureCounts,
    JobFacts,
    VerificationResult,
    commit_issues,
    is_conventional,
    parse_job_answer,
    with_facts,
    with_findings,
)
from cuggino.domain.jobs import Jobs
from cuggino.storage.jobs import jobs_of
from tests.vectors import each

PASSED = VerificationResult.passed()
VALID = VerificationResult(complete=True, requirement_valid=True)
UNKNOWN = VerificationResult.failed("Requirement code R not found in any SPECIFICATION.md file")
BUILD = CommandRun(check="build", command="make", exit_code=0)
TESTS = CommandRun(check="tests", command="make test", exit_code=0, output="12 passed")
PARTS = ("complete", "tests_pass", "documentation_exists", "build_succeeds", "requirement_valid")


def facts(
    *runs: CommandRun, requirement: VerificationResult = VALID, commits: tuple[str, ...] = ()
) -> JobFacts:
    return JobFacts(requirement=requirement, runs=runs, commits=commits)


def one_job(status: str = "done", partial: str = "") -> Jobs:
    """Return the jobs of a file with one job in it."""
    return jobs_of([{"id": "J1", "status": status, "notes": partial}])[0]


def test_agent_and_facts_agree() -> None:
    """A job is done when the agent and all facts agree."""
    assert PASSED == with_facts(PASSED, facts(BUILD, TESTS))
    assert PASSED == with_facts(PASSED, facts())
    assert facts(BUILD, TESTS).refutation is None


@each("part", PARTS[1:])
def test_a_part_that_the_agent_denies_counts(part: str) -> None:
    """A failed part overrides the agent's claim that the job is complete."""
    others: Any = {part: False}
    result = with_facts(replace(PASSED, **others), facts(BUILD, TESTS))
    assert not result.complete
    assert 1 == len(result.issues)
    assert result.issues[0].startswith("Not verified that ")


def test_a_part_that_the_agent_denies_is_not_proven_by_an_exit_code() -> None:
    """Passing tests do not prove that there are tests of this job."""
    judged = replace(PASSED, tests_pass=False, issues=("No tests of the cart",))
    result = with_facts(judged, facts(TESTS))
    assert (False, False, ("No tests of the cart",)) == (
        result.complete,
        result.tests_pass,
        result.issues,
    )


def test_command_results_are_reported() -> None:
    """The exit code is reported, after a failure with the end of the output."""
    assert "`make test` exited with 0" == TESTS.text
    failed = replace(TESTS, exit_code=2, output="x" * 2000 + " the end\n")
    assert "`make test` exited with 2:\n" + "x" * 992 + " the end" == failed.text
    assert "`make` exited with 1" == replace(BUILD, exit_code=1, output=" \n").text


def test_findings_are_a_list() -> None:
    """Each finding is a trimmed item, with its further lines indented below it."""
    prompt = with_findings("Build.", [" one\ntwo \n", "three"])
    assert prompt.endswith("\n\n- one\n  two\n- three\n\nBuild.")


def test_an_exit_code_refutes_the_agent() -> None:
    """A nonzero exit code fails the job despite the agent's answer; the output is reported."""
    failed = replace(TESTS, exit_code=2, output=f"{'x' * 2000}\n1 failed\n")
    result = with_facts(PASSED, facts(BUILD, failed))
    assert (False, False, True) == (result.complete, result.tests_pass, result.build_succeeds)
    (issue,) = result.issues
    assert issue.startswith("`make test` exited with 2:\nx")
    assert issue.endswith("x\n1 failed")
    assert 1000 < len(issue) < 1100
    assert result == facts(BUILD, failed).refutation
    assert not with_facts(PASSED, facts(replace(BUILD, exit_code=-9))).build_succeeds


def test_an_invented_code_refutes_the_agent() -> None:
    """A job with an unknown requirement fails without asking the agent."""
    result = with_facts(PASSED, facts(requirement=UNKNOWN))
    assert (False, False, UNKNOWN.issues) == (
        result.complete,
        result.requirement_valid,
        result.issues,
    )
    assert result == facts(requirement=UNKNOWN).refutation


def test_a_command_alone_is_the_answer_to_its_check() -> None:
    """The result of a run replaces the agent's answer to that check."""
    assert VerificationResult(complete=True, build_succeeds=True) == BUILD.result
    assert VerificationResult(complete=True, tests_pass=True) == TESTS.result
    assert VerificationResult.failed("`make` exited with 1") == replace(BUILD, exit_code=1).result


def test_an_agent_without_a_reason() -> None:
    """A failed job always has an issue."""
    result = with_facts(replace(PASSED, complete=False), facts())
    assert ("The verifying agent does not call the job complete, and does not say why",) == (
        result.issues
    )


def test_words_count_as_a_whole() -> None:
    """A plain-text answer has no parts: it passes if the facts do, and is reported as such."""
    judged = parse_job_answer("complete: true")
    assert replace(PASSED, by_words=True, issues=("complete: true",)) == with_facts(judged, facts())
    assert not with_facts(judged, facts(replace(BUILD, exit_code=1))).complete
    assert not with_facts(parse_job_answer("Looks good"), facts()).complete


def test_a_commit_message_is_an_issue_and_no_failure() -> None:
    """An unconventional message is reported and does not fail the job."""
    result = with_facts(PASSED, facts(commits=("feat: a", "Add the cart\n\nfeat: no subject")))
    assert result.complete
    assert ('Commit message is not conventional, "type(scope): text": "Add the cart"',) == (
        result.issues
    )


@each(
    "message",
    [
        "feat: add",
        "fix(cart): keep",
        "refactor(cart)!: drop",
        "chore!: drop Python 3.10\n\nBREAKING CHANGE: yes",
        "Docs: say more",
        "build-deps(a/b, c): x",
        "\nfeat: after a blank line",
        "Merge branch 'main' into feature/x",
        'Revert "feat: add"',
    ],
)
def test_conventional(message: str) -> None:
    """These are conventional or generated by git."""
    assert is_conventional(message)
    assert () == commit_issues([message])


@each(
    "message",
    ["", "Add it", "feat add", "feat:add", "feat :x", "feat(): x", "feat: ", "feat(a: x", "!: x"],
)
def test_not_conventional(message: str) -> None:
    """These are not conventional."""
    assert not is_conventional(message)
    assert 1 == len(commit_issues([message]))


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
    """Findings are a list under their heading, followed by the unchanged prompt."""
    text = with_findings("Build it.\n", ["One:\nmore", "Two"])
    head, _, rest = text.partition("\n\n")
    assert f"# {FINDINGS_HEADING}" == head
    assert rest.endswith("\n- One:\n  more\n- Two\n\nBuild it.\n")
    assert "Build it.\n" == with_findings("Build it.\n", [])


RESULT = st.builds(
    VerificationResult,
    **{field.name: st.booleans() for field in fields(VerificationResult) if field.name in PARTS},
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
    all_parts = all(getattr(judged, part) for part in PARTS)
    assert result.complete == (all_parts and valid and all(run.succeeded for run in runs))
    assert result.complete or result.issues
    assert set(judged.issues) <= set(result.issues)
    assert (known.refutation is None) == (valid and all(run.succeeded for run in runs))
