"""Reports on plan/build runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cuggino import events as ev
from cuggino.report import RunReport, build_report
from tests.report.journals import STARTED, entries_of
from tests.report.test_page import rendered
from tests.vectors import each


def building(*said: Any) -> RunReport:
    """Return the report on a run of the loop with these events."""
    first, *rest = entries_of(*said)
    event = STARTED.model_copy(update={"kind": "loop", "focus": ""})
    return build_report((replace(first, event=event), *rest))


@each(
    "event, words",
    [
        (ev.PlanBuildWarning(message="odd jobs"), ["odd jobs"]),
        (
            ev.PlanBuildSessionRetry(attempt=2, max_retries=3, message="boom"),
            ["Session error (2/3)", "boom"],
        ),
        (
            ev.DoneFileRejected(reason="2 jobs are not done"),
            ["lopen.loop.done removed", "2 jobs are not"],
        ),
        (
            ev.PlanBuildEnded(reason="stalled", error="3 iterations"),
            ["no progress: 3 iterations"],
        ),
        (
            ev.BuildVerified(passed=False, issues=("it fails",)),
            ["verification failed", "it fails"],
        ),
        (
            ev.JobVerified(job_id="J1", description="a page", passed=False, issues=("no tests",)),
            ["Job verification failed: J1: a page", "no tests"],
        ),
        (
            ev.JobBlocked(job_id="J1", description="a page", failures=3),
            ["Job blocked: J1: a page (its verification failed 3 times)", '"badge bad">blocked'],
        ),
        (ev.CommitSeen(commit_hash="abc1234", subject="feat: page"), ["abc1234", "feat: page"]),
    ],
)
def test_failures_and_commits_are_shown(event: ev.Event, words: list[str]) -> None:
    """Failures, findings and commits are on the page."""
    page = rendered(building(event))
    assert [] == [word for word in words if word not in page]


def test_good_run_has_no_notices() -> None:
    """Verified jobs and a good end are neither notices nor findings."""
    good = ev.JobVerified(job_id="J1", description="a page", passed=True)
    report = building(ev.BuildVerified(passed=True), good, ev.PlanBuildEnded(reason="complete"))
    assert ((), ()) == (report.notices, report.findings)
