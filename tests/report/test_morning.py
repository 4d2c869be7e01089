"""What a report tells in the morning: proof, notices, what was given up, and the night."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from cuggino import events as ev
from cuggino.report import (
    RunReport,
    build_report,
    load_report,
    render_night,
    render_report,
    report_json,
)
from cuggino.report.morning import compared, proof_of, unusual
from cuggino.report.night import NightReport
from cuggino.storage import Workspace
from tests.git_project import isolate_git
from tests.report.journals import STARTED, after, entries_of, report_of
from tests.report.nights import Item, name_at, write_night
from tests.report.slots import LOGIN, write_slots
from tests.report.test_page import Page, rendered
from tests.screen.samples import all_event_types, sample
from tests.vectors import each

ZONE = timezone.utc  # noqa: UP017
HEADINGS = ["Done", "Waiting for you", "Given up", "Cost", "Unusual"]


def headings(page: str) -> list[str]:
    """Return the headings of a page's sections, without their numbers."""
    found = re.findall(r"<h2>([A-Z][a-z ]+)", page)
    return [one.strip() for one in found]


def approved(*events: ev.Event, checked: bool | None = None) -> RunReport:
    """Return the report of an approved run."""
    end = ev.RunEnded(state="approved", checked=checked)
    return build_report(entries_of(*events, ev.LoopApproved(iteration=1, checked=checked), end))


CHECK = ev.CheckCommandStarted(iteration=1, command="make test", on="commit")
GREEN = ev.CheckCommandOutput(iteration=1, exit_code=0)
RED = ev.CheckCommandOutput(iteration=1, exit_code=1)


@each(
    "events, checked, text, tone",
    [
        ((CHECK, RED, CHECK, GREEN), True, "`make test` passed on a clean checkout", "good"),
        ((CHECK, GREEN), False, "approvals do not depend on it", "warning"),
        ((CHECK, GREEN, CHECK, RED), False, "failed on a clean checkout: only the", "bad"),
        ((), False, "No check: only the reviewer approved it", "warning"),
    ],
)
def test_proof(events: tuple[ev.Event, ...], checked: bool, text: str, tone: str) -> None:
    """An approval names the check behind it, or that there was none."""
    proof = proof_of(approved(*events, checked=checked))
    assert proof is not None
    assert text in proof.text
    assert tone == proof.tone
    told = {"proven": tone == "good", "text": proof.text}
    assert told == report_json(approved(*events, checked=checked))["proof"]


def test_no_proof_without_an_approval() -> None:
    """A run that was not approved proves nothing."""
    report = build_report(entries_of(CHECK, GREEN, ev.RunEnded(state="stalled")))
    assert proof_of(report) is None
    assert report_json(report)["proof"] is None


@each(
    "given, text, tone",
    [
        ({"cost_usd": 2.0, "items": 2}, "2 items usually take $2.00 and 2 m; the c", "neutral"),
        ({"cost_usd": 9.0, "items": 1}, "the cost is 9.0 times the usual", "warning"),
        ({"cost_usd": None, "items": 1}, "1 item usually takes 1 m; it took 5 m", "warning"),
    ],
)
def test_forecast(given: dict[str, Any], text: str, tone: str) -> None:
    """The cost is compared with that of as many items, or the duration without a cost."""
    usual = ev.Forecast(
        loop="item", runs=3, duration=60, worst_duration=90, cost_usd=1.0, worst_cost_usd=3.0
    )
    found = compared(usual, seconds=300, **given)
    assert found is not None
    assert text in found.text
    assert tone == found.tone
    assert compared(None, seconds=1, **given) is None


def test_forecast_in_json() -> None:
    """A script gets the figures of the forecast."""
    usual = ev.Forecast(loop="run", runs=3, duration=60, worst_duration=90, cost_usd=1.0)
    found = report_json(build_report(entries_of(usual, ev.RunEnded(state="stalled"))))
    assert (3, 60, 90, 1.0) == tuple(
        found["forecast"][name] for name in ("runs", "duration", "worst_duration", "cost_usd")
    )
    assert report_json(approved())["forecast"] is None


def test_unusual_events_are_counted() -> None:
    """Equal warnings are one; what is neutral is left out."""
    retry = ev.AgentRetry(attempt=1, max_retries=2, reason="overloaded", message="", retry_in=1)
    report = build_report(entries_of(retry, ev.StopAsked(), retry))
    (one,) = unusual(("", notice) for notice in report.notices)
    assert 2 == one.count


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a question and a parked item."""
    isolate_git(monkeypatch, tmp_path)
    folder = tmp_path / "project"
    workspace = Workspace(folder)
    folder.mkdir()
    workspace.open()
    parked = workspace.parked / "002-cart.md"
    parked.write_text("# Fix the `cart` total\n", encoding="utf-8")
    parked.with_name("002-cart.md.reason.txt").write_text("no progress\n", encoding="utf-8")
    return folder


def test_order_of_a_night(project: Path) -> None:
    """The night answers five questions in order; each item is told once."""
    items = [Item("001-login.md", "Login"), Item("002-cart.md", "Fix the `cart` total", "stalled")]
    write_night(project, items)
    Workspace(project).write_spec_issue("# CSV?", name=name_at(items_start(project), 1) + ".md")
    night = load_report(project)
    assert isinstance(night, NightReport)
    page = render_night(night, zone=ZONE)
    assert HEADINGS == headings(page)[:5]
    assert ["002-cart.md"] == [one.item for one in night.given_up]
    words = Page(page).words
    assert "1 of 2 items done, 1 waiting for you, 1 given up" in words
    assert "cuggino backlog retry 002-cart.md" in words
    assert "cuggino watch" in words
    assert "`" not in words.partition("Timeline")[0]


def items_start(project: Path) -> datetime:
    """Return the start of the night."""
    report = load_report(project)
    assert isinstance(report, NightReport)
    return report.start


def test_what_landed_is_proven_by_its_landing(project: Path) -> None:
    """The check of the landing is the proof of an item that landed, and slots have no timeline."""
    write_slots(project)
    night = load_report(project)
    assert isinstance(night, NightReport)
    (login,) = (item for item in night.done if item.item.name == LOGIN)
    proof = night.proof(login)
    assert proof is not None
    assert ("`make test` passed", "good") == proof[:2]
    page = render_night(night, zone=ZONE)
    assert 'id="w-slots"' in page
    assert 'id="timeline"' not in page


def test_order_of_a_run() -> None:
    """The report of a run answers in the same order."""
    spent = ev.SessionEnded(outcome="completed", cost_usd=0.5)
    changes = ev.RequestChanges(content="Round `once`.")
    retry = ev.AgentRetry(attempt=1, max_retries=2, reason="overloaded", message="", retry_in=1)
    events = (spent, retry, changes, ev.RunEnded(state="max_iterations"))
    report = build_report(entries_of(*events))
    page = render_report(report, zone=ZONE)
    assert ["Done", "Given up", "Cost", "Unusual"] == headings(page)[:4]
    assert 1 == Page(page).words.count("Round once.")


RETRY = ev.AgentRetry(reason="server", message="500", attempt=1, max_retries=3, retry_in=90)

NOTICED = (
    *(ev.AgentFellBack, ev.AgentNudged, ev.AgentReplaced, ev.AgentRetry, ev.McpServerFailed),
    *(ev.ApprovalQuestioned, ev.ContradictoryMarkers, ev.StageInferred),
    *(ev.Baseline, ev.CheckCannotFail, ev.CheckDoesNotDecide, ev.CheckFlaky, ev.CheckUnmeasured),
    *(ev.GateChanged, ev.NotInCommit, ev.SpecsChanged, ev.ImprovementsKept),
    *(ev.BudgetWarning, ev.CostUnknown, ev.Forecast, ev.RateLimited, ev.QuotaWaiting),
    *(ev.BranchChanged, ev.CommitFailed, ev.PushFailed, ev.HistoryRewritten),
    *(ev.DirtyFilesCommitted, ev.DirtyFilesKept, ev.SnapshotFailed),
    *(ev.InstructionsChanged, ev.ProtectedChanged, ev.RoleViolated, ev.SandboxChosen),
    *(ev.WaitingEnded, ev.WaitingRefused),
    *(ev.ControlIgnored, ev.PauseEnded, ev.RunResumed, ev.SkipAsked, ev.Steered, ev.StopAsked),
    *(ev.HandsEnded, ev.HandsStarted, ev.NoProgress, ev.TaskLeft, ev.TaskLimitReached),
    *(ev.DeliverSessionRetry, ev.DeliverWarning, ev.DoneFileRejected),
    *(ev.PlanBuildSessionRetry, ev.PlanBuildWarning),
    *(
        ev.ChatAnswered,
        ev.ChatRefused,
        ev.HookFailed,
        ev.NotificationFailed,
        ev.WatchAuditFailed,
        ev.WatchDiskFull,
    ),
    ev.AttemptLost,
    *(ev.WatchFollowDelayed, ev.WatchFollowHealed, ev.WatchForgeWaiting, ev.WatchIssueAnswered),
    *(ev.WatchItemRetry, ev.WatchItemSkipped),
    *(ev.WatchPlaceGone, ev.WatchPolling, ev.WatchProposal, ev.WatchProposed),
    *(ev.WatchReportFailed, ev.WatchSentBack, ev.WatchSlotsChanged, ev.WatchSourceFailed),
    *(ev.WatchWorkers, ev.WatchWorkKept),
)


@each("cls", all_event_types())
def test_unusual_events_are_notices(cls: type[ev.Event]) -> None:
    """Whatever went wrong is a notice, and what a person wants to know of a night."""
    if issubclass(cls, ev.QuotaLifted):
        return  # part of the notice of its wait
    assert (cls in NOTICED) == bool(build_report(entries_of(sample(cls))).notices)


@each(
    "event",
    [
        ev.RateLimited(status="allowed"),
        ev.SnapshotTaken(stage="a-1", ref="r", commit="c"),
        ev.WatchCandidate(filename="a", slot=1, commit="1", base="2", attempt=1),
        ev.WatchItemImported(filename="a", source="s", change="new"),
        ev.WatchProposal(filename="a", number=7, state="green"),
        ev.WatchWorkers(workers=()).model_copy(
            update={"workers": (ev.ClusterWorker(name="w", places=1),)}
        ),
        ev.PlanBuildEnded(reason="complete"),
        ev.DeliverEnded(reason="all_passed"),
        ev.AgentMessage(text="error"),
    ],
)
def test_usual_events_are_no_notices(event: ev.Event) -> None:
    """What is as it should be is no notice."""
    assert () == build_report(entries_of(event)).notices


@each(
    "event, tone",
    [
        (ev.NotificationFailed(message="why"), "warning"),
        (RETRY, "warning"),
        (ev.StopAsked(), "neutral"),
        (ev.WatchIssueAnswered(filename="a", issue="i.md", author="bob"), "neutral"),
        (ev.PlanBuildSessionRetry(attempt=1, max_retries=3, message="lost"), "bad"),
        (ev.DeliverEnded(reason="all_blocked", total=3), "bad"),
    ],
)
def test_tones(event: ev.Event, tone: str) -> None:
    """A failure is bad, an obstacle a warning, and what a person has asked for is neither."""
    (notice,) = build_report(entries_of(event)).notices
    assert tone == notice.tone


def test_wait_is_one_notice() -> None:
    """All events about a wait for a usage limit are one notice until its reset."""
    notices = [n for n in report_of("resumed").notices if n.text.startswith("Waiting")]
    (wait,) = notices
    assert wait.until is not None
    assert 180 == (wait.until - wait.at).total_seconds()
    assert "Waiting for the usage limit, 3m 0s left: resets 11pm\nResuming after 3m 0s" == wait.text


def test_a_planned_wait_says_why() -> None:
    """A wait for what the configuration keeps is not called a limit that was met."""
    waiting = ev.QuotaWaiting(remaining=60, message="20 % are kept", planned=True)
    (wait,) = build_report(entries_of(waiting, ev.QuotaLifted(waited=60))).notices
    assert "Waiting, 1m 0s left: 20 % are kept\nResuming after 1m 0s" == wait.text


def test_two_waits() -> None:
    """A wait left open by a killed process ends with its last event; the next is another."""
    waiting = ("a#1", ev.QuotaWaiting(remaining=60))
    lifted = ("a#1", ev.QuotaLifted(waited=1))
    entries = entries_of(waiting, waiting, ev.RunContinued(), waiting, lifted, lifted)
    waits = [(notice.at, notice.until) for notice in build_report(entries).notices]
    assert [(after(1), after(2)), (after(4), after(5))] == waits


def test_retry_has_its_duration() -> None:
    """A retry lasts until the agent is started again."""
    (notice,) = build_report(entries_of(RETRY)).notices
    assert after(91) == notice.until


def test_endless_pause() -> None:
    """A delay beyond the range of dates is not an error."""
    event = RETRY.model_copy(update={"retry_in": float("inf")})
    (notice,) = build_report(entries_of(event)).notices
    assert notice.until is not None


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
