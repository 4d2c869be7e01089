"""The gate of the plan/build loop: no job is done without verification (LOP-096, LOP-097)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, concat, defer, just

from cuggino import events as ev
from cuggino.errors import AgentFailed, QuotaExceeded, StorageError
from cuggino.storage import scan_journal
from cuggino.storage.jobs import JobStore
from tests.loops.coding_loop import fails
from tests.loops.plan_build_loop import (
    JOBS,
    PlanBuildLoop,
    RecordedBuild,
    Turn,
    crash,
    has,
    jobs,
    plan_build_marbles,
    says,
    verdict,
)
from tests.loops.session_loop import replayed
from tests.loops.supervised_loop import limited

OPEN = has(J1="open")
DONE = Turn(has(J1="done"))
LAST = Turn(has(True, J1="done"))
YES = verdict()


def cannot(outcome: Any) -> Turn:
    return Turn(events=(ev.AgentMessage(text="{}"), ev.SessionEnded(outcome=outcome)))


def note_of(project: PlanBuildLoop) -> str:
    return str(project.jobs[0].get("partialImplementation", ""))


def test_the_agent_says_yes(tmp_path: Path) -> None:
    """The job stays done, and is not verified again."""
    project = PlanBuildLoop(tmp_path, [DONE, LAST], files=OPEN)
    story = project.run()
    assert [("J1", True)] == story.verdicts
    assert "complete" == story.ended.reason
    assert (tmp_path / JOBS).read_text() == jobs(J1="done")


@pytest.mark.parametrize(
    ("answer", "issue"),
    [
        (verdict(False, "no tests"), "no tests"),
        (verdict(True, testsPass=False), "Not verified that tests pass"),
        (verdict(False), "Not verified that tests pass"),
        (says("well"), "well"),
        (says("complete: true, though the tests are false"), "though the tests are false"),
        (says(""), "No response from verification agent"),
        (says('{"complete": "yes"}'), "yes"),
    ],
)
def test_the_agent_says_no(answer: Turn, issue: str, tmp_path: Path) -> None:
    """The job is reopened with the reasons, which only the next session receives."""
    project = PlanBuildLoop(tmp_path, [DONE, Turn()], [YES, answer, YES], files=OPEN)
    story = project.run(max_sessions=2)
    assert [("J1", False)] == story.verdicts
    assert {"J1": "in-progress"} == project.statuses
    assert issue in note_of(project)
    assert issue in project.prompts[1]
    assert [{"J1": 1}, {"J1": 1}] == [e.failures for e in story.of(ev.VerificationEnded)]
    assert "kitchen" == project.jobs[0]["owner"]
    assert 7 == json.loads((tmp_path / JOBS).read_text())["version"]


def test_the_next_session_alone_is_told(tmp_path: Path) -> None:
    """A finding is in the prompt of the next session, including a retry of it."""
    turns = [DONE, crash(), Turn(), LAST]
    project = PlanBuildLoop(tmp_path, turns, [YES, verdict(False, "no"), YES, YES, YES], files=OPEN)
    assert "complete" == project.run().ended.reason
    told = ["Verification findings" in prompt for prompt in project.prompts]
    assert [False, True, True, False] == told
    assert "Build.\n" == (tmp_path / "BUILD.PROMPT.md").read_text()


def test_words_alone(tmp_path: Path) -> None:
    """A clear answer in words counts, with a warning that it was no object."""
    project = PlanBuildLoop(tmp_path, [LAST], [YES, says("complete: true")], files=OPEN)
    story = project.run()
    assert [("J1", True)] == story.verdicts
    assert ["the verifying agent returned no JSON object"] == story.warnings


@pytest.mark.parametrize(
    "answer",
    [crash(), cannot("failed"), cannot("max_turns"), Turn(events=(), error=ValueError("own"))],
)
def test_the_agent_cannot_answer(answer: Turn, tmp_path: Path) -> None:
    """A job without an answer is neither done nor failed; another session follows."""
    project = PlanBuildLoop(tmp_path, [DONE, LAST], [YES, answer, YES, YES], files=OPEN)
    story = project.run()
    assert [("J1", False), ("J1", True)] == story.verdicts
    assert [{}, {}] == [event.failures for event in story.of(ev.VerificationEnded)]
    assert 1 == len([w for w in story.warnings if w.startswith("Verification error: ")])
    assert "J1: It could not be verified" in project.prompts[1]


def test_the_login_is_gone(tmp_path: Path) -> None:
    """A failed login ends the loop during a verification too."""
    project = PlanBuildLoop(tmp_path, [DONE], [YES, crash("log in", reason="auth")], files=OPEN)
    story = project.run()
    assert ("failed", "log in") == (story.ended.reason, story.ended.error)
    assert isinstance(story.error, AgentFailed)
    project.assert_released()


@pytest.mark.parametrize("failing", ["make", "test"])
def test_own_commands_fail(failing: str, tmp_path: Path) -> None:
    """A failing command is proof: no agent verifies the job."""
    shells = {"make": 0, "test": 0, failing: 2}
    project = PlanBuildLoop(tmp_path, [DONE], [], files=OPEN, shells=shells)
    story = project.run(max_sessions=1, verify_build="make", verify_test="test")
    assert [("J1", False)] == story.verdicts
    assert [failing != "make"] == [event.passed for event in story.of(ev.BuildVerified)]
    assert f"`{failing}` exited with 2" in note_of(project)
    assert f"{failing} says 2" in note_of(project)


def test_own_commands_succeed(tmp_path: Path) -> None:
    """The agent receives the results of the commands and verifies the rest."""
    shells = {"make": 0, "test": 0}
    project = PlanBuildLoop(tmp_path, [LAST], [YES], files=OPEN, shells=shells)
    story = project.run(verify_build="make", verify_test="test")
    assert "complete" == story.ended.reason
    assert ["make", "test"] == [event.command for event in story.of(ev.CheckCommandStarted)]
    (asked,) = project.agent.of("judge")
    assert "`make` exited with 0" in asked.prompt
    assert "`test` exited with 0" in asked.prompt


def flaky(codes: Iterable[int], output: bytes = b"FAILED a.py::test_a") -> Observable[bytes]:
    """A command that prints this and exits with the next of the codes each time it runs."""
    left = iter(codes)

    def run(_scheduler: object) -> Observable[bytes]:
        code = next(left)
        return just(output) if code == 0 else concat(just(output), fails(code))

    return defer(run)


def test_a_flaky_command(tmp_path: Path) -> None:
    """A command that passes when it is repeated has passed, and no job is sent back."""
    project = PlanBuildLoop(tmp_path, [LAST], files=OPEN, shells={"test": flaky([2, 0])})
    story = project.run(verify_after_iteration=False, verify_test="test")
    assert [("J1", True)] == story.verdicts
    assert [("a.py::test_a",)] == [event.tests for event in story.of(ev.CheckFlaky)]
    assert 1 == len(story.of(ev.CheckCommandStarted))


def test_the_same_failure_is_not_repeated(tmp_path: Path) -> None:
    """A command that failed in the same way after the iteration before runs once."""
    shells = {"test": flaky([2, 2, 2, 0])}
    project = PlanBuildLoop(tmp_path, [DONE, DONE, LAST], files=OPEN, shells=shells)
    story = project.run(verify_after_iteration=False, verify_test="test")
    assert [("J1", False), ("J1", False), ("J1", True)] == story.verdicts
    assert [] == story.of(ev.CheckFlaky)


def test_without_verifying_agents(tmp_path: Path) -> None:
    """Without verifying agents only the facts decide, and no needless command is run."""
    project = PlanBuildLoop(tmp_path, [Turn(), DONE, LAST], [], files=OPEN, shells={"make": 0})
    story = project.run(verify_after_iteration=False, verify_build="make", max_sessions=1)
    assert ([], []) == (story.verdicts, story.of(ev.BuildVerified))
    failing = PlanBuildLoop(tmp_path, [DONE], [], files=OPEN, shells={"make": 1})
    story = failing.run(verify_after_iteration=False, verify_build="make", max_sessions=1)
    assert [("J1", False)] == story.verdicts
    passing = PlanBuildLoop(tmp_path, [LAST], [], files=OPEN)
    story = passing.run(verify_after_iteration=False)
    assert [("J1", True)] == story.verdicts
    assert "complete" == story.ended.reason


def test_a_journal_with_both_commands_in_one_stage(tmp_path: Path) -> None:
    """A run of 0.1.0, which ran its commands in one stage, is resumed without running them."""
    first = PlanBuildLoop(tmp_path, [LAST], files=OPEN, shells={"make": 0, "test": 0})
    options: Any = {"verify_build": "make", "verify_test": "test", "journal": True}
    assert "complete" == first.run(**options).ended.reason
    (path,) = first.workspace.journal.iterdir()
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    stages = [str(entry["stage"]) for entry in entries]
    begin = next(n for n, stage in enumerate(stages) if stage.startswith("verify-start#"))
    name = f"verify-commands#{stages[begin].partition('#')[2]}"
    both = [
        {"_tag": "StageStarted", "name": "verify-commands"},
        {"_tag": "StageFinished", "outcome": {"value": [[0, "made"], [1, "a test failed"]]}},
    ]
    added = [
        {**entries[begin], "seq": begin + n, "stage": name, "event": event}
        for n, event in enumerate(both, 1)
    ]
    lines = [json.dumps(entry) for entry in (*entries[:begin], *added)]
    path.write_text("".join(f"{line}\n" for line in lines))
    second = PlanBuildLoop(tmp_path, [], files=has(True, J1="done"), shells={"test": 1})
    stream = second.service.run(
        second.options(**options, max_sessions=1), resume=scan_journal(path)
    )
    story = RecordedBuild(second.marbles.record(stream))
    assert [("J1", False)] == story.verdicts
    assert "a test failed" in story.of(ev.JobVerified)[0].issues[0]
    assert [] == story.of(ev.CheckCommandStarted)


def test_the_done_file_without_verification(tmp_path: Path) -> None:
    """The done file ends the loop, with a warning if jobs are open; a failed command does not."""
    last = Turn(has(True, J1="open"))
    project = PlanBuildLoop(tmp_path, [Turn(), last], [], files=OPEN)
    story = project.run(verify_after_iteration=False)
    assert ("complete", 2, 1) == (story.ended.reason, story.ended.iterations, story.ended.open)
    assert (tmp_path / "lopen.loop.done").exists()
    said = "lopen.loop.done ends the loop without verification, although 1 job is not done"
    assert [said] == story.warnings
    checked = PlanBuildLoop(tmp_path, [LAST, Turn()], [], files=OPEN, shells={"make": 1})
    options: Any = {"verify_after_iteration": False, "verify_build": "make", "fresh": True}
    assert "complete" != checked.run(**options, max_sessions=2).ended.reason
    assert not (tmp_path / "lopen.loop.done").exists()


def test_three_failures(tmp_path: Path) -> None:
    """After three failures a job is blocked; if no other is open the loop names it."""
    no = verdict(False, "no tests")
    project = PlanBuildLoop(tmp_path, [DONE] * 3, [YES, no] * 3, files=OPEN)
    story = project.run()
    assert [("J1", False)] * 3 == story.verdicts
    assert [("J1", 3)] == [(event.job_id, event.failures) for event in story.of(ev.JobBlocked)]
    assert ("blocked", 1, 0) == (story.ended.reason, story.ended.blocked, story.ended.open)
    assert "every open job is blocked: J1: bake J1" == story.ended.error
    assert {"J1": "blocked"} == project.statuses
    assert 1 == note_of(project).count("no tests")


def test_a_job_that_passes_is_forgiven(tmp_path: Path) -> None:
    """Failures count in a row, and a blocked job can still pass."""
    no, done = verdict(False, "no"), Turn(has(J1="done", J2="open"))
    answers = [no, no, YES, no, no, no, YES]
    builds = [done] * 3 + [Turn(has(J1="open", J2="open"))] + [done] * 4
    judged = [x for answer in answers for x in (YES, answer)]
    judged.insert(6, YES)  # the iteration that takes it up again has no job to verify
    project = PlanBuildLoop(tmp_path, builds, judged, files=has(J1="open", J2="open"))
    story = project.run(max_sessions=8)
    assert [False, False, True, False, False, False, True] == [ok for _, ok in story.verdicts]
    assert [("J1", 3)] == [(event.job_id, event.failures) for event in story.of(ev.JobBlocked)]
    assert {"J1": "done", "J2": "open"} == project.statuses


@pytest.mark.parametrize("content", [None, "{", jobs(J2="open")])
def test_the_job_vanishes(content: str | None, tmp_path: Path) -> None:
    """A job removed before its verdict is not restored, and a broken file is not overwritten."""
    no = verdict(False, "no")
    answers = [YES, Turn({JOBS: content}, no.events)]
    project = PlanBuildLoop(tmp_path, [DONE], answers, files=OPEN)
    story = project.run(max_sessions=1)
    assert [("J1", False)] == story.verdicts
    path = tmp_path / JOBS
    assert content == (path.read_text() if path.exists() else None)
    assert (content == "{") == any("cannot be sent back" in w for w in story.warnings)
    assert ["J1: no"] == list(story.of(ev.VerificationEnded)[0].findings)
    project.assert_released()


def test_the_job_is_marked_otherwise_meanwhile(tmp_path: Path) -> None:
    """A status set by a person is kept, and the reasons are added."""
    no = Turn(has(J1="paused"), verdict(False, "no").events)
    project = PlanBuildLoop(tmp_path, [DONE], [YES, no], files=OPEN)
    project.run(max_sessions=1)
    assert {"J1": "paused"} == project.statuses
    assert "no" in note_of(project)


def test_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict that cannot be written is an error, and the job does not count as done."""
    project = PlanBuildLoop(tmp_path, [DONE], [YES, verdict(False)], files=OPEN)

    def refuse(_store: object, _step: object) -> Any:
        raise StorageError("write jobs", "no space")

    monkeypatch.setattr(JobStore, "change", refuse)
    story = project.run()
    assert "failed" == story.ended.reason
    assert isinstance(story.error, StorageError)
    project.assert_released()


# -- failures and interruptions of what only plan/build has: verifications, commands, commits


def test_jobs_are_counted_after_a_crash(tmp_path: Path) -> None:
    """The result counts the jobs as they are."""
    project = PlanBuildLoop(tmp_path, [crash(leaves=has(J1="open", J2="open"))])
    story = project.run(max_retries=0)
    assert ("max_retries_exceeded", 2) == (story.ended.reason, story.ended.open)
    assert [] == story.of(ev.PlanBuildIterationEnded)


def test_the_usage_limit_of_a_verification(tmp_path: Path) -> None:
    """A usage limit of a verification ends the loop with its error."""
    limit = Turn(events=(ev.SessionEnded(outcome="quota"),), error=limited())
    project = PlanBuildLoop(tmp_path, [Turn()], [limit])
    story = project.run()
    assert "quota_exceeded" == story.ended.reason
    assert isinstance(story.error, QuotaExceeded)
    assert story.error.message == story.ended.error
    assert 1 == len(project.agent.of("judge"))
    project.assert_released()


@pytest.mark.parametrize("stop", [None, 100.0])
def test_a_verification_waits_for_the_usage_limit(stop: float | None, tmp_path: Path) -> None:
    """With `wait_for_quota` it waits for the end of the limit, or of the run."""
    t = plan_build_marbles(q=ev.SessionEnded(outcome="quota"))
    t.error = limited(3600.0)
    judge = [Turn(stream=t.cold("-q#")), verdict()]
    project = PlanBuildLoop(tmp_path, [Turn(has(True))], judge, marbles=t)
    interrupt = replayed(t, stop or 1e6)
    story = project.run(interrupt=interrupt, wait_for_quota=True, quota_margin=60.0)
    assert 2 == story.times(ev.QuotaWaiting)[0]
    expected = ("interrupted", 100.0) if stop else ("complete", 3660.0)
    assert expected == (story.ended.reason, story.ended.duration)
    assert [] == story.of(ev.PlanBuildSessionRetry)


def test_the_time_of_a_run(tmp_path: Path) -> None:
    """The time limit applies to the project's commands too."""
    t = plan_build_marbles()
    make = t.cold("- 1h |")
    project = PlanBuildLoop(tmp_path, [Turn()], marbles=t, shells={"make": make})
    story = project.run(max_duration=60.0, verify_build="make")
    assert ("budget_exceeded", 60.0) == (story.ended.reason, story.ended.duration)
    assert [(0, 60)] == make.subscriptions
    project.assert_released()


@pytest.mark.parametrize("slow", ["commits", "head", "commit"])
def test_interrupted_in_git(slow: str, tmp_path: Path) -> None:
    """Reading many commits, and a commit whose hook hangs, are canceled."""
    t = plan_build_marbles()
    look = t.cold("- 1h -")
    project = PlanBuildLoop(tmp_path, [Turn()], marbles=t)
    if slow == "head":
        project.head = look
    elif slow == "commit":
        project.committing = look
    else:
        calls: list[str | None] = []
        commits = project.service.services.commits

        def looked(cwd: Path, base: str | None) -> Any:
            calls.append(base)
            return look if len(calls) > 1 else commits(cwd, base)

        project.replace(commits=looked)
    story = project.run(interrupt=replayed(t, 5.0), auto_commit=slow == "commit")
    assert ("interrupted", 5.0) == (story.ended.reason, story.ended.duration)
    t.check_subscriptions(look, "^----!")
    project.assert_released()


def test_no_verification_behind_an_interruption(tmp_path: Path) -> None:
    """A session that reported a result is completed; its verification is not started."""
    t = plan_build_marbles()
    project = PlanBuildLoop(tmp_path, [Turn(stream=t.cold("-ad 9s |"))], [], marbles=t)
    story = project.run(interrupt=replayed(t, 5.0))
    assert (["completed"], "interrupted") == (story.outcomes, story.ended.reason)
    assert 5.0 == story.ended.duration
    project.assert_released()
