"""Unusual events of a run, each as a sentence."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from cuggino.domain import BudgetLevel, cost_of, cost_unknown, money, window_text
from cuggino.events import (
    AgentFellBack,
    AgentNudged,
    AgentReplaced,
    AgentRetry,
    ApprovalBlocked,
    ApprovalQuestioned,
    Baseline,
    BranchChanged,
    BudgetWarning,
    BuildVerified,
    CheckCannotFail,
    CheckDoesNotDecide,
    CheckFlaky,
    CheckUnmeasured,
    CheckWeakened,
    CommitFailed,
    ContradictoryMarkers,
    ControlIgnored,
    CostUnknown,
    DeliverEnded,
    DeliverSessionEnded,
    DeliverSessionRetry,
    DeliverWarning,
    DirtyFilesCommitted,
    DirtyFilesKept,
    DoneFileRejected,
    Event,
    Forecast,
    GateChanged,
    HistoryRewritten,
    HookFailed,
    ImprovementsKept,
    InstructionsChanged,
    JobBlocked,
    JobVerified,
    LoopMaxIterations,
    LoopStalled,
    McpServerFailed,
    NoProgress,
    NotificationFailed,
    NotInCommit,
    PauseEnded,
    PlanBuildEnded,
    PlanBuildEvent,
    PlanBuildSessionRetry,
    PlanBuildWarning,
    ProtectedChanged,
    PushFailed,
    QuotaLifted,
    QuotaUsed,
    QuotaWaiting,
    RateLimited,
    RoleViolated,
    RunContinued,
    RunEnded,
    RunResumed,
    RunStarted,
    SandboxChosen,
    SkipAsked,
    SnapshotFailed,
    SnapshotTaken,
    SpecsChanged,
    StageInferred,
    Steered,
    StopAsked,
    TaskLimitReached,
    WatchAuditFailed,
    WatchDiskFull,
    WatchFollowDelayed,
    WatchFollowHealed,
    WatchForgeWaiting,
    WatchIssueAnswered,
    WatchItemHeld,
    WatchItemImported,
    WatchItemParked,
    WatchItemRetry,
    WatchItemSkipped,
    WatchLoopEvent,
    WatchPlaceGone,
    WatchProposal,
    WatchProposed,
    WatchReportFailed,
    WatchSentBack,
    WatchSlotsChanged,
    WatchSourceFailed,
    WatchWorkers,
    WatchWorkKept,
)
from cuggino.report.model import Notice, Tone
from cuggino.report.wording import LONGEST, UNKNOWN, counted, duration, first_line, number
from cuggino.storage.journal import Entry


class Notices:
    """The unusual events; all events of one wait for a usage limit become one notice."""

    def __init__(self) -> None:
        self._notices: list[Notice] = []
        self._waits: dict[tuple[str | None, str | None], int] = {}
        """The index of the current wait of each stage and item."""

    def add(self, entry: Entry) -> None:
        match entry.event:
            case QuotaWaiting() as waiting:
                self._wait(entry, waiting)
            case QuotaLifted(waited=waited):
                place = self._waits.pop((entry.stage, entry.event.item), None)
                if place is not None:
                    known = self._notices[place]
                    text = f"{known.text} It took {duration(waited)}."
                    self._notices[place] = replace(known, until=entry.at, text=text)
            case RunContinued() | RunEnded():
                self._waits.clear()
            case _:
                pass
        said = describe(entry.event)
        if said is not None:
            kind, tone, text = said
            until = _end_of_pause(entry.event, entry.at)
            self._notices.append(
                Notice(
                    at=entry.at,
                    until=until,
                    stage=None if isinstance(entry.event, WatchLoopEvent) else entry.stage,
                    item=_item_of(entry.event),
                    kind=kind,
                    tone=tone,
                    text=text,
                )
            )

    @property
    def count(self) -> int:
        """Return the number of notices."""
        return len(self._notices)

    def result(self) -> tuple[Notice, ...]:
        """Return all of them, in order."""
        return tuple(self._notices)

    def _wait(self, entry: Entry, waiting: QuotaWaiting) -> None:
        place = self._waits.get((entry.stage, waiting.item))
        if place is not None:
            self._notices[place] = replace(self._notices[place], until=entry.at)
            return
        self._waits[entry.stage, waiting.item] = len(self._notices)
        limit = f": {waiting.message}" if waiting.message else ""
        why = waiting.message if waiting.planned else f"A usage limit was met{limit}"
        text = f"{why}. To wait: {duration(waiting.remaining)}."
        self._notices.append(
            Notice(
                at=entry.at,
                until=entry.at,
                stage=entry.stage,
                item=_item_of(waiting),
                kind="Waited for a usage limit",
                tone="warning",
                text=text,
            )
        )


def _item_of(event: Event) -> str:
    """Return the item of an event, unless its own text names it."""
    return "" if isinstance(event, WatchLoopEvent | RunStarted) else event.item or ""


def _end_of_pause(event: Event, at: datetime) -> datetime | None:
    if isinstance(event, AgentRetry | WatchItemRetry):
        return at + timedelta(seconds=min(max(0.0, event.retry_in), LONGEST))
    return None


def describe(event: Event) -> tuple[str, Tone, str] | None:
    """Return kind, tone and a sentence, or None for ordinary events."""
    match event:
        case AgentRetry():
            pause = duration(event.retry_in)
            count = f"Retry {event.attempt} of {event.max_retries} after {pause}"
            return "Agent failed", "warning", f"{event.reason}: {event.message}. {count}."
        case RateLimited(overage=True, limit=limit):
            return "Paid for", "warning", f"extra usage beyond {limit or 'a usage limit'}"
        case QuotaUsed(nearly=True, agent=agent) as used:
            name = f"{agent}: " if agent else ""
            return "Quota nearly used", "warning", f"{name}{window_text(used)}"
        case RateLimited(status=status, limit=limit) if status != "allowed":
            words = " ".join(word for word in (limit, status) if word)
            return "Usage limit", "bad" if status == "rejected" else "warning", words
        case McpServerFailed(server=server):
            return "MCP server", "warning", f"{server} did not start"
        case BudgetWarning(budget=kind) as warning:
            return "Budget nearly spent", "warning", f"{kind}: {BudgetLevel.of(warning).share}"
        case CostUnknown() as unknown:
            return "Cost unknown", "bad", cost_unknown(unknown)
        case AgentNudged() as nudged:
            return "Agent nudged", "warning", _stall(nudged)
        case AgentReplaced() as replaced:
            return "Agent replaced", "warning", _stall(replaced)
        case AgentFellBack() as fallen:
            took_over = f"{fallen.to_agent} took over from {fallen.from_agent}"
            why = f"{fallen.reason.replace('_', ' ')}: {fallen.message}"
            role = f"{fallen.role}: " if fallen.role else ""
            return "Another agent", "warning", f"{role}{took_over}; {why}"
        case ContradictoryMarkers(counted=counts, markers=markers):
            said = "; ".join(f"{tag}: {content}" for tag, content in markers)
            return "Contradictory markers", "warning", f"{counts} counts ({said})"
        case ApprovalQuestioned(objections=objections):
            return "Approval questioned", "warning", "; ".join(objections)
        case StageInferred(counted=counts):
            return "Marker forgotten", "warning", f"{counts} counts, as the files of the stage show"
        case StopAsked(now=now):
            return "Stopped", "neutral", "at once" if now else "after the stage"
        case SkipAsked(item=item):
            return "Skipped", "neutral", item or "the item at work"
        case Steered(text=text, to=to):
            return "Steered", "neutral", f"{text} ({_TOLD[to]})"
        case PauseEnded(seconds=seconds):
            return "Paused", "neutral", f"for {duration(seconds)}"
        case ControlIgnored(source=source, reason=reason):
            return "Command ignored", "warning", f"{source}: {reason}"
        case CheckCannotFail(command=command, why=why):
            return "Check cannot fail", "warning", f"{first_line(command)}: {why}"
        case CheckDoesNotDecide(command=command):
            told = "an approval counts even if it fails"
            return "Check does not decide", "warning", f"{first_line(command)}: {told}"
        case Forecast():
            amount = partial(money, estimated=event.cost_estimated)
            return "Forecast", "neutral", event.words(duration, amount)
        case SandboxChosen() as chosen:
            return "Sandbox", "warning" if chosen.not_held else "neutral", _confined(chosen)
        case RoleViolated(void=False, role=role, paths=paths):
            return "Put back", "warning", f"after {role}: {', '.join(paths)}"
        case RoleViolated(role=role, paths=paths, kept=place, failed=failed):
            where = f"; kept in {place}" if place else ""
            where += f"; not put back: {', '.join(failed)}" if failed else ""
            return "Role violated", "bad", f"{role} changed {', '.join(paths)}{where}"
        case ProtectedChanged(role=role, paths=paths):
            return "Protected files changed", "warning", f"during {role}: {', '.join(paths)}"
        case InstructionsChanged(role=role, paths=paths):
            return "Instructions changed", "warning", f"during {role}: {', '.join(paths)}"
        case NoProgress(kind=kind, agents=agents, action=action):
            then = "planned again" if action == "replan" else "stopped"
            return "No progress", "bad", f"{kind} over {counted(agents, 'agent')}; {then}"
        case RunResumed() as resumed:
            kept = f"{counted(resumed.stages, 'finished stage')} kept"
            spent = cost_of(resumed) or UNKNOWN
            return "Resumed", "neutral", f"{kept}, {spent} spent before"
        case DirtyFilesKept(paths=paths):
            return "Not committed", "neutral", f"uncommitted before the run: {', '.join(paths)}"
        case DirtyFilesCommitted(paths=paths):
            words = f"with uncommitted changes from before the run: {', '.join(paths)}"
            return "Mixed commit", "warning", words
        case BranchChanged(before=before, after=after):
            words = f"from {before or 'none'} to {after or 'none'}, where commits go from now on"
            return "Branch changed", "warning", words
        case HistoryRewritten(base=base, head=head):
            words = f"{base[:12]}, which the run began with, is not part of {(head or '')[:12]}"
            return "History rewritten", "bad", words
        case SnapshotFailed(stage=stage, message=message):
            return "No snapshot", "warning", f"before {stage}: {message}"
        case SnapshotTaken(left_out=left_out) if left_out:
            files = ", ".join(f"{path} ({why})" for path, why in left_out)
            return "Files not kept", "warning", f"in no snapshot: {files}"
        case LoopStalled(message=message):
            return "Stalled", "bad", message
        case LoopMaxIterations(max_iterations=limit):
            return "Iterations used up", "bad", f"{counted(limit, 'iteration')} without an approval"
        case TaskLimitReached(max_tasks=limit):
            return "Task limit", "warning", f"{counted(limit, 'task')} on one plan"
        case GateChanged(paths=paths):
            return "Check changed", "warning", f"changed or removed: {', '.join(paths)}"
        case CheckFlaky(message=message):
            return "Flaky check", "warning", message
        case ImprovementsKept(findings=findings, filenames=names, approves=approves):
            what = f"{counted(len(findings), 'improvement')} that no specification demands"
            then = "; nothing else was left, so the work counts as approved" if approves else ""
            return "Improvements", "neutral", "\n".join((f"{what}{then}", *names))
        case SpecsChanged(paths=paths):
            return "Specs changed", "warning", f"{', '.join(paths)}; planned again"
        case ApprovalBlocked(message=message):
            return "Approval blocked", "warning", message
        case Baseline(message=message, exit_code=code):
            return "Check at the start", "warning" if code else "neutral", message
        case CheckWeakened(message=message):
            return "Check weakened", "warning", message
        case CheckUnmeasured(message=message):
            return "Check not measured", "warning", message
        case NotInCommit(message=message):
            return "Not in the commit", "warning", message
        case CommitFailed(message=message):
            return "Commit failed", "bad", message
        case PushFailed(message=message):
            return "Push failed", "bad", message
        case NotificationFailed(message=message):
            return "Notification failed", "warning", message
        case WatchAuditFailed(message=message):
            return "Audit failed", "warning", message
        case WatchItemRetry():
            count = f"attempt {event.attempt} of {event.max_attempts}"
            return "Item failed", "warning", f"{event.filename}, {count}: {event.message}"
        case WatchItemParked(filename=filename, reason=reason):
            return "Item parked", "bad", f"{filename}: {reason}"
        case WatchItemSkipped(filename=filename, reason=reason):
            return "Item skipped", "warning", f"{filename}: {reason}"
        case WatchItemHeld(filename=filename, reason=reason):
            return "Item held", "warning", f"{filename}: {reason}"
        case WatchItemImported(filename=filename, change="held", reason=reason):
            return "Item held", "warning", f"{filename}: {reason}"
        case WatchSourceFailed(source=source, message=message):
            return "Source failed", "warning", f"{source}: {message}"
        case WatchForgeWaiting(forge=forge, doing=doing, message=message):
            return "Forge waits", "warning", f"{forge}: {doing}: {message}"
        case WatchReportFailed(filename=filename, message=message):
            return "Not reported", "warning", f"{filename}: {message}"
        case WatchIssueAnswered(filename=filename, author=author):
            return "Answered", "good", f"{filename}, by {author}"
        case WatchProposed(filename=filename, number=count, url=url):
            return "Proposed", "neutral", f"{filename} as #{count}: {url}"
        case WatchProposal(filename=filename, state="blocked" | "taken-over", message=message):
            return "Pull request waits", "warning", f"{filename}: {message}"
        case HookFailed(hook=hook, message=message):
            return "Hook failed", "warning", f"{hook}: {message}"
        case WatchSentBack(filename=filename, reason=reason, returns=returns):
            return "Sent back", "warning", f"{filename}: {reason}, return {number(returns)}"
        case WatchPlaceGone(worker=worker, reason=reason):
            return "Worker gone", "warning", f"{worker}: {reason}; the attempt continues elsewhere"
        case WatchWorkers(left=left) if left:
            others = counted(len(event.workers), "worker")
            return "Workers gone", "warning", f"{_named(left)}; of the cluster: {others}"
        case WatchWorkers(joined=joined) if joined:
            count = f"{counted(len(event.workers), 'worker')}, {counted(event.places, 'place')}"
            return "Workers joined", "neutral", f"{_named(joined)}; {count}"
        case WatchWorkKept(ref=ref, reason=reason):
            return "Work kept", "neutral", f"{reason}: {ref}"
        case WatchSlotsChanged(active=active, slots=slots, reason=reason):
            return "Slots", "neutral", f"{number(active)} of {number(slots)}: {reason}"
        case WatchFollowDelayed(branch=branch, reason=reason):
            return "Branch waits", "warning", f"{branch}: {reason}"
        case WatchDiskFull(message=message):
            return "Disk full", "warning", message
        case WatchFollowHealed(branch=branch, restored=restored, kept=kept):
            return "Branch healed", "warning", f"{branch}: {number(restored)} files, kept as {kept}"
        case DeliverSessionEnded() as ended:
            return _session(ended)
        case DeliverSessionRetry(attempt=attempt, max_retries=limit):
            count = f"{counted(attempt, 'failure')} in a row, {number(limit)} allowed"
            return "New session", "neutral", count
        case DeliverWarning(message=message):
            return "Warning", "warning", message
        case DeliverEnded() as ended:
            return _end(ended)
        case PlanBuildEvent():
            return of_building(event)
        case _:
            return None


_MOST_NAMES = 20


def _named(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES])
    return f"{shown} and {number(more)} more" if more > 0 else shown


_TOLD = {"session": "to the running agent", "prompt": "in the next prompt"}


def _confined(event: SandboxChosen) -> str:
    why = f"; {event.reason}" if event.reason else ""
    if not event.held:
        return f"nothing confines the agents{why}"
    rest = f", not {', '.join(event.not_held)}" if event.not_held else ""
    return f"{event.engine} confines {', '.join(event.held)}{rest}{why}"


def _session(ended: DeliverSessionEnded) -> tuple[str, Tone, str] | None:
    said = f"session {number(ended.session)}" + (f": {ended.message}" if ended.message else "")
    match ended.outcome:
        case "error" | "execution_error":
            return "Session failed", "warning", said
        case "max_turns":
            return "Turns used up", "warning", said
        case "budget":
            return "Session budget spent", "warning", said
        case "completed" | "interrupted" | "quota":
            return None  # ordinary, or covered by the end of the run or a wait
        case _ as never:
            assert_never(never)


def _end(ended: DeliverEnded) -> tuple[str, Tone, str] | None:
    match ended.reason:
        case "all_blocked":
            return (
                "All blocked",
                "bad",
                f"{counted(ended.total, 'deliverable')}, none to go on with",
            )
        case "max_iterations":
            limit = ended.sessions if ended.max_iterations is None else ended.max_iterations
            return "Sessions used up", "bad", counted(limit, "session")
        case "max_retries_exceeded":
            return "Gave up", "bad", f"too many failed sessions in a row: {ended.error}"
        case "stalled":
            return "Stalled", "bad", ended.error
        case "all_passed" | "all_verified" | "interrupted":
            return None
        case "quota_exceeded" | "budget_exceeded" | "failed":
            return None  # the run's own message
        case _ as never:
            assert_never(never)


def _stall(event: AgentNudged | AgentReplaced) -> str:
    if event.no_marker:
        return "ended without a marker"
    if event.repeated is not None:
        return f"called {event.tool} {counted(event.repeated, 'time')} with the same result"
    if event.idle is None:
        return "its time ran out"
    during = f" in the tool {event.tool}" if event.tool else ""
    return f"silent for {duration(event.idle)}{during}"


def of_building(event: Event) -> tuple[str, Tone, str] | None:
    """Return kind, tone and a sentence, or None for ordinary events."""
    match event:
        case PlanBuildWarning(message=message):
            return "Warning", "warning", message
        case PlanBuildSessionRetry(attempt=attempt, max_retries=limit, message=message):
            return "Session failed", "warning", f"{attempt} in a row, {limit} allowed: {message}"
        case DoneFileRejected(reason=reason):
            return "Done file removed", "warning", reason
        case PlanBuildEnded(success=False, reason=reason, error=error):
            return "Ended", "bad", f"{reason.replace('_', ' ')}: {error}".removesuffix(": ")
        case _:
            return None


def finding_of_building(event: Event) -> tuple[str, Tone, str] | None:
    """Return the finding of a verification, or None for other events."""
    match event:
        case BuildVerified(passed=False, issues=issues):
            return "Build not verified", "warning", "\n".join(issues)
        case JobVerified(passed=False, issues=issues):
            return "Job sent back", "warning", "\n".join((f"{event.job_id}:", *issues))
        case JobBlocked(failures=failures):
            said = f"{event.description} ({event.job_id}), after {failures} verifications"
            return "Job blocked", "bad", said
        case _:
            return None
