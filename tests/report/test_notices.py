"""Notices of a report: unusual events."""

from __future__ import annotations

from cuggino import events as ev
from cuggino.report import build_report
from tests.report.journals import after, entries_of, report_of
from tests.screen.samples import all_event_types, sample
from tests.vectors import each

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
