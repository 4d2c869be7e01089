"""Notices of a report: unusual events."""

from __future__ import annotations

from cuggino import events as ev
from cuggino.report import build_report
from cuggino.report.notices import describe
from tests.report.journals import after, entries_of, report_of
from tests.vectors import each

TWO = (ev.ClusterWorker(name="w1", places=4, busy=1), ev.ClusterWorker(name="w2", places=2))
RETRY = ev.AgentRetry(reason="server", message="500", attempt=1, max_retries=3, retry_in=90)
SAID: tuple[tuple[ev.Event, str, str], ...] = (
    (RETRY, "Agent failed", "server: 500. Retry 1 of 3 after 1 m 30 s."),
    (ev.RateLimited(status="rejected", limit="five_hour"), "Usage limit", "five_hour rejected"),
    (
        ev.RateLimited(status="rejected", limit="five_hour", overage=True),
        "Paid for",
        "extra usage beyond five_hour",
    ),
    (
        ev.QuotaUsed(window="five_hour", used=0.85, agent="claude", nearly=True),
        "Quota nearly used",
        "claude: five_hour 85 % used",
    ),
    (ev.BudgetWarning(budget="cost", spent=8, limit=10), "Budget nearly spent", "cost: $8.00 of"),
    (
        ev.BudgetWarning(budget="cost", spent=0.8, limit=1, estimated=True),
        "Budget nearly spent",
        "cost: ~$0.8000 of $1.00",
    ),
    (
        ev.BudgetWarning(budget="tokens", spent=8, limit=10, count_tokens="weighted"),
        "Budget nearly spent",
        "8 of 10 weighted tokens",
    ),
    (
        ev.CostUnknown(agent="codex", model="gpt-x"),
        "Cost unknown",
        'codex reports no dollars, and the price of its model "gpt-x" is unknown',
    ),
    (
        ev.CostUnknown(agent="acp:kimi", reports="nothing"),
        "Cost unknown",
        "acp:kimi reports neither dollars nor tokens",
    ),
    (
        ev.BudgetWarning(budget="tokens", spent=8e3, limit=1e4),
        "Budget nearly spent",
        "8,000 of 10,000 tokens",
    ),
    (
        ev.BudgetWarning(budget="duration", spent=3600, limit=7200),
        "Budget nearly spent",
        "1:00:00 of 2:00:00",
    ),
    (
        ev.AgentNudged(tool="Bash", repeated=20),
        "Agent nudged",
        "called Bash 20 times with the same result",
    ),
    (ev.AgentNudged(idle=600, tool="Bash"), "Agent nudged", "silent for 10 m in the tool Bash"),
    (ev.AgentReplaced(), "Agent replaced", "its time ran out"),
    (ev.AgentReplaced(idle=60), "Agent replaced", "silent for 1 m"),
    (ev.AgentReplaced(no_marker=True), "Agent replaced", "ended without a marker"),
    (ev.ApprovalQuestioned(objections=("a", "b")), "Approval questioned", "a; b"),
    (
        ev.StageInferred(phase="planning", counted="PLAN_COMPLETE"),
        "Marker forgotten",
        "PLAN_COMPLETE counts, as the files of the stage show",
    ),
    (
        ev.AgentFellBack(role="r", from_agent="a", to_agent="b", reason="not_found", message="why"),
        "Another agent",
        "r: b took over from a; not found: why",
    ),
    (
        ev.ContradictoryMarkers(
            phase="reviewing",
            counted="SPEC_ISSUE",
            markers=(("APPROVED", "ok"), ("SPEC_ISSUE", "which?")),
        ),
        "Contradictory markers",
        "SPEC_ISSUE counts (APPROVED: ok; SPEC_ISSUE: which?)",
    ),
    (
        ev.NoProgress(kind="unchanged", agents=3, action="stop"),
        "No progress",
        "over 3 agents; stop",
    ),
    (ev.NoProgress(kind="oscillating", agents=1, action="replan"), "No progress", "planned again"),
    (ev.RunResumed(run_id="x", stages=1, cost_usd=2), "Resumed", "1 finished stage kept, $2.00"),
    (ev.StopAsked(), "Stopped", "after the stage"),
    (ev.StopAsked(now=True), "Stopped", "at once"),
    (ev.SkipAsked(), "Skipped", "the item at work"),
    (ev.SkipAsked(item="a.md"), "Skipped", "a.md"),
    (ev.Steered(text="use flask", to="session"), "Steered", "use flask (to the running agent)"),
    (ev.Steered(text="use flask", to="prompt"), "Steered", "use flask (in the next prompt)"),
    (ev.PauseEnded(seconds=60), "Paused", "for 1 m"),
    (ev.ControlIgnored(source="x.json", reason="why"), "Command ignored", "x.json: why"),
    (
        ev.CheckCannotFail(command="make || true\n", why="`|| true` hides the failure of `make`"),
        "Check cannot fail",
        "make || true: `|| true` hides the failure of `make`",
    ),
    (
        ev.Forecast(
            loop="item", runs=4, duration=90, worst_duration=7200, cost_usd=0.5, worst_cost_usd=2
        ),
        "Forecast",
        "an item usually takes 1 m 30 s and costs $0.5000; at most 2 h and $2.00 in the last 4",
    ),
    (
        ev.CheckDoesNotDecide(command="make"),
        "Check does not decide",
        "make: an approval counts even if it fails",
    ),
    (
        ev.SandboxChosen(engine="bubblewrap+overlay", held=("planning", "implementing")),
        "Sandbox",
        "bubblewrap+overlay confines planning, implementing",
    ),
    (
        ev.SandboxChosen(engine="landlock", held=("a",), not_held=("b",), reason="why"),
        "Sandbox",
        "landlock confines a, not b; why",
    ),
    (
        ev.SandboxChosen(engine="none", held=(), not_held=("a", "b"), reason="why"),
        "Sandbox",
        "nothing confines the agents; why",
    ),
    (
        ev.RoleViolated(role="reviewing", paths=("a.py",), kept="refs/x"),
        "Role violated",
        "reviewing changed a.py; kept in refs/x",
    ),
    (
        ev.RoleViolated(role="reviewing", paths=("a.xml",), void=False),
        "Put back",
        "after reviewing: a.xml",
    ),
    (ev.ProtectedChanged(role="build", paths=("a",)), "Protected files changed", "during build: a"),
    (ev.InstructionsChanged(role="build", paths=("a",)), "Instructions changed", "during build: a"),
    (ev.DirtyFilesKept(paths=("a", "b")), "Not committed", "uncommitted before the run: a, b"),
    (ev.DirtyFilesCommitted(paths=("a",)), "Mixed commit", "changes from before the run: a"),
    (ev.BranchChanged(before="main", after=None), "Branch changed", "from main to none, where"),
    (ev.HistoryRewritten(base="1" * 40, head="2" * 40), "History rewritten", "111, which the run"),
    (ev.SnapshotFailed(stage="coding-1", message="why"), "No snapshot", "before coding-1: why"),
    (
        ev.SnapshotTaken(stage="a-1", ref="r", commit="c", left_out=(("video", "60 MB"),)),
        "Files not kept",
        "in no snapshot: video (60 MB)",
    ),
    (ev.LoopStalled(iteration=1, reason="no_progress", message="why"), "Stalled", "why"),
    (ev.LoopMaxIterations(iteration=3, max_iterations=3), "Iterations used up", "3 iterations"),
    (
        ev.ImprovementsKept(iteration=1, findings=("x", "y"), filenames=("a.md",), approves=True),
        "Improvements",
        "2 improvements that no specification demands; nothing else was left",
    ),
    (ev.TaskLimitReached(iteration=1, max_tasks=9), "Task limit", "9 tasks on one plan"),
    (ev.ApprovalBlocked(iteration=1, exit_code=2), "Approval blocked", "exited with 2"),
    (ev.Baseline(iteration=1, exit_code=0, seconds=2), "Check at the start", "in 2 s"),
    (ev.Baseline(iteration=1, exit_code=3), "Check at the start", "in 0 s: exit code 3"),
    (
        ev.CheckWeakened(iteration=1, id="C1", paths=("tests/a.py",), failing=("a", "b")),
        "Check weakened",
        "C1: fails with the versions of the start of tests/a.py: a, b",
    ),
    (ev.CheckUnmeasured(iteration=1, paths=("a.sh",)), "Check not measured", "a.sh"),
    (
        ev.NotInCommit(iteration=1, reason="missing", paths=("a",), mended=True),
        "Not in the commit",
        "HEAD lacks a; put right",
    ),
    (ev.CheckFlaky(iteration=1), "Flaky check", "failed, then passed on the same files"),
    (
        ev.CheckFlaky(iteration=1, tests=tuple("abcdefg"), times=3),
        "Flaky check",
        "files: a, b, c, d, e and 2 more; 3 times lately",
    ),
    (ev.CommitFailed(iteration=1, message="no name"), "Commit failed", "no name"),
    (ev.PushFailed(iteration=1, message="no remote"), "Push failed", "no remote"),
    (ev.NotificationFailed(message="HTTP 500"), "Notification failed", "HTTP 500"),
    (ev.WatchAuditFailed(message="crash"), "Audit failed", "crash"),
    (
        ev.WatchItemRetry(filename="a", message="m", attempt=1, max_attempts=2, retry_in=5),
        "Item failed",
        "a, attempt 1 of 2: m",
    ),
    (ev.WatchItemParked(filename="a", reason="why"), "Item parked", "a: why"),
    (ev.WatchItemSkipped(filename="a", reason="why"), "Item skipped", "a: why"),
    (ev.WatchItemHeld(filename="a", reason="after b"), "Item held", "a: after b"),
    (ev.WatchSentBack(filename="a", reason="check", returns=2), "Sent back", "a: check, return 2"),
    (
        ev.WatchItemImported(filename="a", source="github", change="held", reason="edited by eve"),
        "Item held",
        "a: edited by eve",
    ),
    (
        ev.WatchSourceFailed(source="s", message="no login", retry_in=60),
        "Source failed",
        "s: no login",
    ),
    (
        ev.WatchForgeWaiting(forge="f", doing="comment", message="limit", retry_in=60),
        "Forge waits",
        "f: comment: limit",
    ),
    (ev.WatchIssueAnswered(filename="a", issue="i.md", author="bob"), "Answered", "a, by bob"),
    (ev.WatchReportFailed(filename="a", url="u", message="gone"), "Not reported", "a: gone"),
    (
        ev.WatchProposed(filename="a", number=7, url="u", branch="b", commit="1", candidate="2"),
        "Proposed",
        "a as #7: u",
    ),
    (
        ev.WatchProposal(filename="a", number=7, state="blocked", message="review it"),
        "Pull request waits",
        "a: review it",
    ),
    (
        ev.HookFailed(hook="item.landed", message="exit code 1"),
        "Hook failed",
        "item.landed: exit code 1",
    ),
    (ev.WatchWorkKept(ref="refs/k", slot=1, reason="left"), "Work kept", "left: refs/k"),
    (
        ev.WatchWorkers(workers=TWO, joined=("w1", "w2")),
        "Workers joined",
        "w1, w2; 2 workers, 6 places",
    ),
    (
        ev.WatchWorkers(workers=TWO[:1], left=("w2",)),
        "Workers gone",
        "w2; of the cluster: 1 worker",
    ),
    (
        ev.WatchPlaceGone(filename="a.md", slot=1, worker="w1", reason="killed"),
        "Worker gone",
        "w1: killed; the attempt continues elsewhere",
    ),
    (ev.WatchSlotsChanged(active=2, slots=4, reason="busy"), "Slots", "2 of 4: busy"),
    (ev.WatchDiskFull(message="no room", retry_in=60), "Disk full", "no room"),
    (
        ev.WatchFollowDelayed(branch="main", commit="1", reason="files in the way"),
        "Branch waits",
        "main: files in the way",
    ),
    (
        ev.WatchFollowHealed(branch="main", restored=3, kept="refs/k"),
        "Branch healed",
        "main: 3 files, kept as refs/k",
    ),
)


@each("event, kind, words", SAID)
def test_words(event: ev.Event, kind: str, words: str) -> None:
    """Each notice has a name and a sentence."""
    said = describe(event)
    assert said is not None
    assert kind == said[0]
    assert words in said[2]


def test_every_policy_event_is_a_notice() -> None:
    """Every policy event is a notice, except costs, merged waits, and starts that have an end."""
    told_of = {type(event) for event, _, _ in SAID}
    policies = {cls for cls in ev.event_types().values() if issubclass(cls, ev.SupervisionEvent)}
    merged = {ev.QuotaWaiting, ev.QuotaLifted, ev.StageCost}
    begun = {ev.PauseAsked, ev.ContinueAsked, ev.RunPaused, ev.SteerAsked}
    assert merged | begun == policies - told_of


def test_agent_text_is_no_notice() -> None:
    """Agent text is not a notice."""
    assert describe(ev.AgentMessage(text="error")) is None


def test_wait_is_one_notice() -> None:
    """All events about a wait for a usage limit are one notice until its reset."""
    notices = [n for n in report_of("resumed").notices if n.kind.startswith("Waited")]
    (wait,) = notices
    assert wait.until is not None
    assert 180 == (wait.until - wait.at).total_seconds()
    assert "A usage limit was met: resets 11pm. To wait: 3 m. It took 3 m." == wait.text


def test_a_planned_wait_says_why() -> None:
    """A wait for what the configuration keeps is not called a limit that was met."""
    waiting = ev.QuotaWaiting(remaining=60, message="20 % are kept", planned=True)
    (wait,) = build_report(entries_of(waiting, ev.QuotaLifted(waited=60))).notices
    assert wait.text.startswith("20 % are kept. To wait: 1 m.")


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
