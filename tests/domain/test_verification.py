"""Jobs, both shapes of their file, and their verification: the answer, the facts, the result."""

from __future__ import annotations

import copy
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
from cuggino.domain.jobs import MOST_JOBS, Job, Jobs
from cuggino.storage.jobs import jobs_of
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


JOB_ROWS = {row["id"]: row for row in rows("lopen_state")}

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=6), below),
    max_leaves=8,
)
TEXTS = ("id", "requirementCode", "requirement", "description", "partialImplementation", "notes")
JOB_KEYS = st.sampled_from([*TEXTS, "status", "priority"])
WORDS = st.sampled_from(["A", "B", "done", "Completed", "blocked", "open", "", "  "])
ENTRY = st.dictionaries(JOB_KEYS | st.text(max_size=5), WORDS | JSON_VALUES, max_size=6)
JSON_OBJECT = st.dictionaries(st.text(max_size=6), JSON_VALUES, max_size=3)
FILE = st.lists(ENTRY | JSON_VALUES, max_size=5).flatmap(
    lambda entries: st.just(entries) | JSON_OBJECT.map(lambda more: {**more, "jobs": entries})
)


def of_kind(kind: str) -> list[str]:
    """Return the IDs of the rows of this kind."""
    return [row["id"] for row in JOB_ROWS.values() if row["kind"] == kind]


def jobs(*entries: object) -> Jobs:
    """Return the jobs of a file in object shape."""
    return jobs_of({"jobs": list(entries)})[0]


@each("case", of_kind("job_is_done"))
def test_the_words_for_done(case: str) -> None:
    """A job is done by the statuses that the case lists, case-insensitively."""
    row = JOB_ROWS[case]
    (job,) = jobs({"id": "A", "status": row["status"]}).items
    assert row["expected"] == job.is_done


@each("case", of_kind("highest_priority"))
def test_the_next_job(case: str) -> None:
    """The lowest priority is next, a missing one last, and ties keep the order of the file."""
    row = JOB_ROWS[case]
    found = jobs(*row["jobs"]).next_open
    assert row["expected"] == (found.id if found else None)


@each("case", of_kind("jobs_limit"))
def test_too_many_jobs(case: str) -> None:
    """More than a hundred jobs are reported, and none is dropped."""
    row = JOB_ROWS[case]
    found, warnings = jobs_of({"jobs": [{"id": str(n)} for n in range(row["count"])]})
    assert row["expected_warning"] == found.is_too_many == bool(warnings)
    assert row["count"] == len(found.items)
    if warnings:
        assert f"there are {row['count']} jobs; at most {MOST_JOBS} should be planned" in warnings


def test_one_is_found_by_its_id() -> None:
    """The first job with the ID is returned, or None."""
    found = jobs({"id": "A"}, {"id": "B", "status": "open"}, {"id": "B"})
    assert found.items[1] is found.get("B")
    assert found.get("C") is None


def test_counts() -> None:
    """Every unfinished job counts as open, including blocked ones."""
    found = jobs(
        {"id": "A", "status": "done"},
        {"id": "B", "status": " Blocked ", "priority": 1},
        {"id": "C", "status": "pending", "priority": 3},
        {"id": "D", "status": None, "priority": 2},
        {"id": "E"},
    )
    assert (1, 4, 1) == (found.count_done, found.count_open, found.count_blocked)
    assert ["D", "C", "E"] == [job.id for job in found.workable]
    assert ["B"] == [job.id for job in found.blocked]


@each("bare", [False, True])
def test_a_change_touches_nothing_else(bare: bool) -> None:
    """A status and a note are written to the keys of the shape, without other changes."""
    code, partial = (
        ("requirement", "notes") if bare else ("requirementCode", "partialImplementation")
    )
    entries = [
        {"x": 1, "status": "done", code: "REQ-1", "id": "A", partial: "There.", "y": None},
        "no job",
        {"id": "B", code: "REQ-2"},
    ]
    raw: Any = entries if bare else {"v": 2, "jobs": entries, "w": []}
    found, _ = jobs_of(copy.deepcopy(raw))
    changed = found.with_status("A", "in-progress").noted("A", "No tests.").noted("B", "New.")
    expected = copy.deepcopy(raw)
    items = expected if bare else expected["jobs"]
    items[0] |= {"status": "in-progress", partial: "There.\nNo tests."}
    items[2][partial] = "New."
    assert json.dumps(expected) == json.dumps(changed.content)
    assert json.dumps(raw) == json.dumps(found.content)


@each(
    "before, after",
    [
        (None, "Text."),
        ("", "Text."),
        ("A.", "A.\nText."),
        (["A."], ["A.", "Text."]),
        ({"a": 1}, [{"a": 1}, "Text."]),
        ("Before. Text.", "Before. Text."),
    ],
)
def test_a_note_loses_nothing(before: object, after: object) -> None:
    """A note is appended to any existing value, once."""
    found = jobs({"id": "A", "partialImplementation": before})
    twice = found.noted("A", "Text.").noted("A", "Text.")
    assert {"jobs": [{"id": "A", "partialImplementation": after}]} == twice.content


def test_no_change_gives_the_same_object() -> None:
    """A change without effect returns the same object."""
    found = jobs({"id": "A", "status": "open", "notes": "Text."})
    assert found is found.with_status("A", "open")
    assert found is found.noted("A", "Text.")


def test_an_unknown_job_cannot_be_changed() -> None:
    """An unknown ID is a `KeyError`."""
    with pytest.raises(KeyError):
        jobs().with_status("A", "done")
    with pytest.raises(KeyError):
        jobs().noted("A", "Text.")


def test_odd_jobs_are_reported_and_kept() -> None:
    """A job with a missing ID or code or odd values is kept, with one message per oddity."""
    found, warnings = jobs_of(
        [
            {"description": ["x"], "status": 5, "priority": "high"},
            7,
            {"id": 3, "requirement": "", "requirementCode": " REQ-1 ", "priority": "2"},
            {"id": "3", "priority": True},
        ]
    )
    assert ["#1", "3", "3"] == [job.id for job in found.items]
    assert ["", "REQ-1", ""] == [job.requirement_code for job in found.items]
    assert [None, 2, None] == [job.priority for job in found.items]
    assert (
        'jobs[0]: "description" is ["x"]: must be a string; ignored',
        'jobs[0]: "status" is 5: must be a string; ignored',
        'jobs[0]: "priority" is "high": must be a number; ignored',
        'jobs[0] has no "id"; it is called #1',
        "jobs[1] is not an object; ignored",
        'jobs[3]: "priority" is true: must be a number or a string; ignored',
        'several jobs have the id "3"',
    ) == warnings


@each("raw", [None, 1, "jobs", {}, {"jobs": {}}, {"jobs": None}, {"Jobs": []}])
def test_other_shapes_are_rejected(raw: object) -> None:
    """A value that is neither a list nor an object with one is rejected."""
    with pytest.raises(ValueError, match='object with a list "jobs"'):
        jobs_of(raw)


def test_a_new_file_is_an_object() -> None:
    """Without a file there are no jobs, and the shape is the object."""
    assert {"jobs": []} == Jobs().content
    assert Jobs() == jobs()


@given(FILE)
def test_whatever_agents_write_is_kept(raw: Any) -> None:
    """Any file of either shape is read and written back unchanged."""
    found, _ = jobs_of(raw)
    assert json.dumps(raw) == json.dumps(found.content)
    assert len(found.items) == found.count_open + found.count_done
    assert len(found.workable) + found.count_blocked == found.count_open


@given(FILE, st.sampled_from(["done", "in-progress"]), st.text(min_size=1, max_size=5))
def test_a_change_of_any_file_is_read_back(raw: Any, status: str, note: str) -> None:
    """A change sets the status and the note, and keeps the number of jobs and entries."""
    found, _ = jobs_of(raw)
    for job in found.items:
        changed, _ = jobs_of(json.loads(json.dumps(found.with_status(job.id, status).content)))
        assert {status} == {item.status for item in changed.items if item.id == job.id}
        noted = found.noted(job.id, note)
        assert (
            note in next(item for item in noted.items if item.id == job.id).partial_implementation
        )
        assert len(noted.entries) == len(changed.entries) == len(found.entries)


@given(JSON_VALUES)
def test_any_value_is_read_or_refused(raw: object) -> None:
    """Random JSON gives jobs or a `ValueError` with a message."""
    try:
        found, _ = jobs_of(raw)
    except ValueError as error:
        assert str(error)
    else:
        assert all(isinstance(job, Job) for job in found.items)


@each(
    "expected, fields",
    [
        ({"partialImplementation": "x"}, {}),
        ({"notes": "x"}, {"requirement": "R"}),
        ({"partialImplementation": "x"}, {"requirement": "R", "requirementCode": "R"}),
        ({"notes": ["one", "two", "x"]}, {"notes": ["one", "two"]}),
    ],
)
def test_a_note_is_in_the_shape_of_its_job(
    expected: dict[str, object], fields: dict[str, object]
) -> None:
    """A note goes to the job's existing key for notes, or to the one of its shape."""
    (job,) = jobs({"id": "A", **fields}).items
    assert {"id": "A", **fields, **expected} == job.noted("x").fields


def test_blank_codes_are_skipped() -> None:
    """A blank requirement code falls back to the other shape's key, and codes are trimmed."""
    (job,) = jobs(
        {"id": "A", "requirementCode": " ", "requirement": "R", "status": " Blocked "}
    ).items
    assert ("R", True, False) == (job.requirement_code, job.is_blocked, job.is_done)
    assert jobs({"id": "A", "status": "Done\n"}).count_done == 1


def test_zero_comes_before_one() -> None:
    """Zero is a valid priority."""
    known = jobs({"id": "A"}, {"id": "B", "priority": 1}, {"id": "C", "priority": 0})
    assert ["C", "B", "A"] == [job.id for job in known.workable]


def test_notes_may_be_a_list() -> None:
    """The texts in a list of notes are joined, one per line."""
    (job,) = jobs({"id": "A", "notes": ["one", 2, "two"]}).items
    assert "one\ntwo" == job.partial_implementation


@each(
    "expected, written",
    [(1.5, 1.5), (7, " 7 "), (None, float("nan")), (None, float("inf")), (None, True), (None, "x")],
)
def test_valid_priorities(expected: float | None, written: object) -> None:
    """A finite number, or its text, is a priority; anything else is reported."""
    found, warnings = jobs_of([{"id": "A", "priority": written}])
    assert expected == found.items[0].priority
    assert (expected is None) == bool(warnings)
