"""Events as labeled text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from pydantic import JsonValue

from cuggino.events import (
    AgentFellBack,
    AgentMessage,
    AgentNudged,
    AgentReplaced,
    AgentRetry,
    ApprovalBlocked,
    ApprovalQuestioned,
    Baseline,
    BranchChanged,
    BudgetWarning,
    CheckCannotFail,
    CheckCommandOutput,
    CheckDoesNotDecide,
    CheckFlaky,
    CheckUnmeasured,
    CheckVerdict,
    CheckWeakened,
    CommandOutputEvent,
    CommandStartedEvent,
    CommitFailed,
    CommitPerformed,
    ContinueAsked,
    ContradictoryMarkers,
    ControlEvent,
    ControlIgnored,
    CostUnknown,
    DeliverEvent,
    DirtyFilesCommitted,
    DirtyFilesKept,
    Event,
    Forecast,
    GateChanged,
    GuardDenied,
    HistoryRewritten,
    ImplementingStart,
    ImprovementsKept,
    InstructionsChanged,
    IterationStart,
    LlmAgentEvent,
    LlmMarkerEvent,
    LoopApproved,
    LoopMaxIterations,
    LoopPhaseEvent,
    LoopSpecIssue,
    LoopStalled,
    McpServerFailed,
    MessageDelta,
    NoProgress,
    NotInCommit,
    PauseAsked,
    PauseEnded,
    PingEvent,
    PlanBuildEvent,
    PlanningStart,
    PlanWritten,
    ProtectedChanged,
    PushFailed,
    PushPerformed,
    QuotaLifted,
    QuotaUsed,
    QuotaWaiting,
    RateLimited,
    ReviewingStart,
    RoleViolated,
    RunPaused,
    RunResumed,
    SandboxChosen,
    SessionEnded,
    SetupCommandOutput,
    SetupCommandStarted,
    SkipAsked,
    SnapshotFailed,
    SnapshotTaken,
    SpecsChanged,
    StageCost,
    StageInferred,
    SteerAsked,
    Steered,
    StopAsked,
    SupervisionEvent,
    SystemMessage,
    TaskLimitReached,
    Thinking,
    ToolCall,
    ToolResult,
    UsageUpdate,
    UserMessage,
    WatchLoopEvent,
)
from cuggino.runs import BudgetLevel, cost_of, cost_unknown, money, tool_target, window_text
from cuggino_cli.screen.deliver_text import deliver_shown
from cuggino_cli.screen.fragments import (
    Fragment,
    Label,
    Shown,
    Verbosity,
    always,
    line_of,
    normal,
    verbose,
)
from cuggino_cli.screen.plan_build_text import plan_build_shown
from cuggino_cli.screen.text import (
    clip,
    countdown,
    first_line,
    format_duration,
    format_pause,
    format_tokens,
    inert,
)
from cuggino_cli.screen.watch_text import watch_shown

_OUTPUT_LIMIT = 500

_MARKER_LABELS: dict[str, Label] = {
    "SpecIssue": "problem",
    "Progress": "progress",
    "Done": "success",
    "Approved": "success",
    "PlanComplete": "success",
    "ToBeDiscussed": "discussion",
}
"""The others are `caution` (CUG-132)."""

_SESSION_ENDINGS = {
    "failed": "Session failed",
    "interrupted": "Session interrupted",
    "max_turns": "Session ended: turn limit reached",
    "budget": "Session ended: budget spent",
    "quota": "Session ended: usage limit reached",
}


def format_event(event: Event, *, verbosity: Verbosity) -> list[Fragment] | None:
    """Return the event as fragments, without the final newline; None shows nothing (CUG-130).

    `VERBOSE` is the wording of CUG-131 to CUG-133. `NORMAL` and `QUIET` leave out events and reduce
    the output of commands to one line (CUG-136). Pings and unknown events show nothing.
    """
    shown = _show(event, verbosity)
    return shown.fragments if shown is not None and verbosity >= shown.least else None


def _show(event: Event, verbosity: Verbosity) -> Shown | None:
    match event:
        case LlmAgentEvent():
            return _agent_shown(event)
        case LlmMarkerEvent():
            return Shown(Verbosity.NORMAL, _marker(event))
        case LoopPhaseEvent():
            return _phase_shown(event, verbosity)
        case SupervisionEvent():
            return supervision_shown(event)
        case _:
            return _of_another_loop(event, verbosity)


def _agent_shown(event: LlmAgentEvent) -> Shown | None:
    match event:
        case MessageDelta() | PingEvent() | UsageUpdate():
            return None
        case ToolCall(name=name, input=given):
            return normal("tool", tool_line(name, given))
        case ToolResult(output=output):
            return verbose("prose", numbered_lines(output))
        case AgentMessage(text=text):
            return verbose("prose", text)
        case Thinking(text=text):
            return verbose("prose", f"[Thinking] {text}")
        case SystemMessage(text=text):
            return verbose("prose", f"[System] {text}")
        case UserMessage(text=text):
            return verbose("prose", f"[User] {text}")
        case GuardDenied(tool=tool, part=part, reason=reason):
            return always("warning", denied_line(tool, part, reason))
        case McpServerFailed(server=server):
            return always("warning", f"[Agent] MCP server {server} did not start")
        case RateLimited(status="allowed"):
            return verbose("prose", _rate_limit(event))
        case RateLimited():
            return always("warning", _rate_limit(event))
        case QuotaUsed(nearly=nearly):
            return normal("prose", _quota(event)) if nearly else verbose("prose", _quota(event))
        case SessionEnded():
            return _session_ended(event)
        case Steered():
            return normal("success", _steered(event))
        case _:
            return None


def _phase_shown(event: LoopPhaseEvent, verbosity: Verbosity) -> Shown | None:
    """Return the lines of an event of the coding loop."""
    match event:
        case IterationStart(iteration=n, max_iterations=last):
            return always("heading", f"[Loop] === Iteration {n}/{last} ===", above=True)
        case PlanningStart():
            return always("phase", "[Planning] Starting...", above=True)
        case ImplementingStart():
            return always("phase", "[Implementing] Starting...", above=True)
        case ReviewingStart():
            return always("phase", "[Reviewing] Starting...", above=True)
        case PlanWritten(text=text):
            return verbose("prose", text)
        case CommandStartedEvent(title=title):
            name = "Setup" if isinstance(event, SetupCommandStarted) else "Check"
            return normal("command", f"[{name}] Running: {first_line(title)}")
        case SetupCommandOutput():
            return _command("Setup", event, verbosity)
        case CheckCommandOutput():
            return _command("Check", event, verbosity)
        case CommitPerformed(commit_hash=commit, message=message):
            return normal("commit", f"[Commit] {commit}: {message}", above=True)
        case CommitFailed(message=message):
            return always("failure", f"[Commit] Failed: {message}", above=True)
        case PushPerformed(commit_hash=commit, remote=remote):
            return normal("commit", f"[Push] {commit} → {remote}", above=True)
        case PushFailed(message=message):
            return always("failure", f"[Push] Failed: {message}", above=True)
        case ImprovementsKept():
            return always("warning", _improvements(event))
        case TaskLimitReached(max_tasks=limit):
            return always("warning", f"[Loop] Task limit ({limit}) reached", above=True)
        case GateChanged(paths=paths):
            return always(
                "warning", f"[Loop] Files that approvals depend on changed: {', '.join(paths)}"
            )
        case Baseline(message=message) as baseline:
            return normal("command" if baseline.exit_code == 0 else "caution", f"[Check] {message}")
        case CheckWeakened(message=message) | CheckUnmeasured(message=message):
            return always("warning", f"[Check] {message}", above=True)
        case NotInCommit(message=message):
            return always("warning", f"[Commit] {message}", above=True)
        case CheckVerdict(message=message):
            return normal("command", f"[Check] {message}")
        case CheckFlaky(message=message):
            return always("warning", f"[Check] Flaky: {message}")
        case SpecsChanged(paths=paths):
            return always(
                "warning", f"[Loop] Specifications changed: {', '.join(paths)}; replanning"
            )
        case ApprovalBlocked(message=message):
            return always("warning", f"[Loop] Approval does not count: {message}", above=True)
        case LoopApproved(checked=False):
            return always("caution", "[Loop] Implementation approved, unchecked", above=True)
        case LoopApproved():
            return always("success", "[Loop] Implementation approved!", above=True)
        case LoopMaxIterations(max_iterations=limit):
            return always("caution", f"[Loop] Max iterations ({limit}) reached", above=True)
        case LoopSpecIssue(content=content, filename=filename):
            issue = always("problem", f"[Loop] Spec issue: {content}", above=True)
            issue.fragments.append(Fragment("plain", f"\nSaved to: {filename}"))
            if event.item is not None:  # other items go on, so nothing else calls a person
                issue.fragments.append(Fragment("bell", ""))
            return issue
        case LoopStalled(message=message):
            return always("problem", f"[Loop] Stalled: {message}", above=True)
        case _:
            return None


def _of_another_loop(event: Event, verbosity: Verbosity) -> Shown | None:
    """Show an event of another loop than the coding loop."""
    match event:
        case WatchLoopEvent():
            return watch_shown(event)
        case DeliverEvent():
            return deliver_shown(event, verbosity)
        case PlanBuildEvent():
            return plan_build_shown(event)
        case _:
            return None


def _steered(event: Steered) -> str:
    who = "the running agent has" if event.to == "session" else "the next agent gets"
    return f"[Agent] {who} your message: {event.text}"


def _marker(event: LlmMarkerEvent) -> list[Fragment]:
    label = _MARKER_LABELS.get(event.tag, "caution")
    return [
        Fragment("plain", "\n"),
        Fragment(label, f"[{event.tag_name()}]"),
        Fragment("plain", f" {event.content}\n"),
    ]


def _rate_limit(event: RateLimited) -> str:
    state = {"rejected": "reached", "allowed": "not reached"}.get(event.status, "near")
    limit = f" ({event.limit})" if event.limit else ""
    overage = ", extra usage is paid for" if event.overage else ""
    return f"[Agent] Usage limit {state}{limit}{overage}{_resets(event.resets_at)}"


def _quota(event: QuotaUsed) -> str:
    agent = f"{event.agent}: " if event.agent else ""
    return f"[Agent] {agent}{window_text(event)}{_resets(event.resets_at)}"


def _resets(at: datetime | None) -> str:
    return f", resets {at:%Y-%m-%d %H:%M %Z}".rstrip() if at is not None else ""


def _session_ended(event: SessionEnded) -> Shown:
    """Show failures always; `StageCost` covers the cost of a completed session."""
    facts = _session_facts(event)
    if event.outcome != "completed":
        detail = f" ({facts})" if facts else ""
        return always("warning", f"[Agent] {_SESSION_ENDINGS[event.outcome]}{detail}")
    return verbose("prose", f"[Agent] {facts or 'Session completed'}")


def _session_facts(event: SessionEnded) -> str:
    """Return `$0.0123, 3 turns, 12s`, as far as known."""
    parts = []
    if event.cost_usd is not None:
        parts.append(cost_of(event))
    if event.num_turns is not None:
        parts.append("1 turn" if event.num_turns == 1 else f"{event.num_turns} turns")
    if event.duration is not None:
        parts.append(format_duration(event.duration))
    return ", ".join(parts)


def _command(name: str, event: CommandOutputEvent, verbosity: Verbosity) -> Shown:
    if verbosity < Verbosity.VERBOSE:
        return normal("command", _command_end(name, event.exit_code))
    if event.output or (event.exit_code is None and event.file_path is None):
        return _command_output(name, event)
    if event.file_path is None:
        return verbose("command", _command_end(name, event.exit_code))
    exit_code = "" if event.exit_code is None else f" (exit {event.exit_code})"
    return verbose("command", f"[{name}] Output: {event.file_path}{exit_code}")


def _command_output(name: str, event: CommandOutputEvent) -> Shown:
    shown = verbose("command", f"[{name}] Output:\n{clip(event.output, _OUTPUT_LIMIT)}")
    if event.exit_code:
        shown.fragments.extend(line_of("failure", _command_end(name, event.exit_code), above=True))
    return shown


def _command_end(name: str, exit_code: int | None) -> str:
    if exit_code is None:
        return f"[{name}] Completed"
    return f"[{name}] {'Failed' if exit_code else 'Completed'} (exit {exit_code})"


_PARAMETER_LIMIT = 100
_PART_LIMIT = 100
_REASON_LIMIT = 500
_SHOWN = 5
_RESULT_LINES = 5
_NUMBERS = tuple(f"{number:5}→" for number in range(1, _RESULT_LINES + 1))


def denied_line(tool: str, part: str, reason: str) -> str:
    """Return the denied part and the first line of the reason."""
    what = clip(" ".join(part.split()), _PART_LIMIT)
    if not what.startswith(tool):
        what = f"{tool}: {what}" if what else tool
    why = reason.strip().split("\n")[0]
    return f"[Guard] Denied {what} ({clip(why, _REASON_LIMIT)})"


def tool_line(
    name: str, tool_input: JsonValue, shown: Callable[[str], str] = lambda text: text
) -> str:
    """Return `▶ Name: parameter`, or only the name if no input is text (CUG-131).

    `shown` shortens the parameter before it is cut.
    """
    parameter = tool_target(name, tool_input)
    return f"▶ {name}: {clip(shown(parameter), _PARAMETER_LIMIT)}" if parameter else f"▶ {name}"


def numbered_lines(output: str) -> str:
    """Number the first five lines, and count the lines if there are more."""
    lines = output.split("\n", _RESULT_LINES)
    if len(lines) > _RESULT_LINES:
        lines[-1] = ""  # the rest is only counted
    lines = inert("\n".join(lines)).split("\n")[:_RESULT_LINES]
    shown = [number + line for number, line in zip(_NUMBERS, lines, strict=False)]
    if (count := output.count("\n") + 1) > _RESULT_LINES:
        shown += ["  ...", f"  (showing {_RESULT_LINES} of {count} lines)"]
    return "\n".join(shown)


def supervision_shown(event: SupervisionEvent) -> Shown | None:
    """Return the line of the event; None for an unknown one. The early ones come first."""
    match event:
        case SnapshotTaken(left_out=left_out) if left_out:
            files = ", ".join(f"{path} ({why})" for path, why in left_out)
            return always("warning", f"[Snapshot] Without {clip(files, 300)}")
        case SnapshotTaken(stage=stage):
            return verbose("prose", f"[Snapshot] {stage}")
        case SnapshotFailed(stage=stage, message=message):
            return always("warning", f"[Snapshot] None before {stage}: {inert(message)}")
        case CheckCannotFail(command=command, why=why):
            told = f"`{clip(inert(first_line(command)), 100)}` cannot fail: {clip(inert(why), 300)}"
            return always("warning", f"[Check] {told}")
        case CheckDoesNotDecide(command=command):
            told = f"An approval counts even if `{clip(inert(first_line(command)), 100)}` fails"
            return always("warning", f"[Check] {told} (gate: context)")
        case Forecast():
            words = event.words(format_duration, partial(money, estimated=event.cost_estimated))
            return normal("prose", f"[Forecast] {words[:1].upper()}{words[1:]}")
        case SandboxChosen(not_held=()):
            return normal("prose", f"[Sandbox] {_confined(event)}")
        case SandboxChosen():
            return always("warning", f"[Sandbox] {_confined(event)}")
        case RoleViolated(void=void):
            return always("failure" if void else "warning", _violation(event))
        case ProtectedChanged():
            changed = _some(event.paths)
            return always("warning", f"[Project] Changed during {inert(event.role)}: {changed}")
        case InstructionsChanged(paths=paths):
            told = f"Instructions for agents changed during {inert(event.role)}: {_some(paths)}"
            return always("warning", f"[Project] {told}")
        case DirtyFilesKept(paths=paths):
            told = f"Uncommitted before the run, so left out of commits: {_some(paths)}"
            return always("warning", f"[Commit] {told}")
        case DirtyFilesCommitted(paths=paths):
            told = f"The next commit will include your uncommitted changes: {_some(paths)}"
            return always("warning", f"[Commit] {told}")
        case BranchChanged(before=before, after=after):
            was, now = (inert(name) if name else "no branch" for name in (before, after))
            told = f"The branch changed from {was} to {now}; commits go there from now on"
            return always("warning", f"[Commit] {told}")
        case HistoryRewritten(base=base):
            told = f"The commit that the run began with, {base[:12]}, is no longer in the history"
            return always("warning", f"[Loop] {told}")
        case StageCost():
            return normal("prose", _cost(event))
        case BudgetWarning():
            share = f"{event.spent / event.limit:.0%}" if event.limit else "all"
            spent = BudgetLevel.of(event).share
            return always("warning", f"[Budget] {share} of the {event.budget} spent: {spent}")
        case CostUnknown():
            return always("warning", f"[Budget] Unknown cost: {inert(cost_unknown(event))}")
        case ControlEvent():
            return _control(event)
        case AgentRetry():
            again = f"again in {format_pause(event.retry_in)}"
            of = f"retry {event.attempt} of {event.max_retries}"
            text = f"[Agent] {event.reason.replace('_', ' ')} ({of}, {again}): {event.message}"
            return always("warning", text)
        case QuotaWaiting(resets_at=at, remaining=remaining):
            until = f" until {at:%Y-%m-%d %H:%M %Z}".rstrip() if at else ""
            if event.planned:
                waiting = f"[Agent] Waiting{until}, {countdown(remaining)}: {event.message}"
                return always("warning", waiting)
            waiting = f"[Agent] Waiting for the usage limit{until}, {countdown(remaining)}"
            return always("warning", waiting)
        case QuotaLifted(waited=waited):
            return always("warning", f"[Agent] Resuming after {format_duration(waited)}")
        case AgentNudged(no_marker=True):
            return always("warning", "[Agent] Ended without a marker: resuming its session")
        case AgentNudged(repeated=int(times), tool=str(tool)):
            return always("warning", f"[Agent] {_repeated(tool, times)}: resuming its session")
        case AgentNudged(idle=None):
            return always("warning", "[Agent] Stage timeout: resuming its session")
        case AgentNudged(idle=float(idle), tool=tool):
            silent = f"silent for {format_duration(idle)}{_during(tool)}"
            return always("warning", f"[Agent] {silent}: resuming its session")
        case AgentReplaced(no_marker=True):
            return always("warning", "[Agent] Ended without a marker: starting a fresh agent")
        case AgentReplaced(repeated=int(times), tool=str(tool)):
            return always("warning", f"[Agent] {_repeated(tool, times)}: starting a fresh agent")
        case AgentReplaced(idle=None):
            return always("warning", "[Agent] Stage timeout: starting a fresh agent")
        case AgentReplaced(idle=float(idle), tool=tool):
            silent = f"silent for {format_duration(idle)}{_during(tool)}"
            return always("warning", f"[Agent] {silent}: starting a fresh agent")
        case AgentFellBack():
            return always("warning", _fallen_back(event))
        case ContradictoryMarkers():
            return always("warning", _contradiction(event))
        case ApprovalQuestioned(objections=objections):
            reasons = clip(inert(" ".join("; ".join(objections).split())), 500)
            return always("warning", f"[Agent] The approval is questioned: {reasons}")
        case StageInferred(counted=counted):
            text = f"[Agent] Ended without a marker; its files count as {inert(counted)}"
            return always("warning", text)
        case NoProgress():
            return always("caution", _standstill(event))
        case RunResumed():
            return always("heading", _resumed(event))
        case _:
            return None


def _control(event: ControlEvent) -> Shown | None:
    match event:
        case PauseAsked():
            return always("caution", "[Control] Pausing after this stage")
        case ContinueAsked():
            return verbose("prose", "[Control] Asked to continue")
        case StopAsked(now=now):
            return always("caution", f"[Control] Stopping {'now' if now else 'after this stage'}")
        case SkipAsked(item=item):
            return always("caution", f"[Control] Skipping {inert(item or 'the current item')}")
        case SteerAsked(text=text):
            return always("success", f"[Control] Message: {text}")
        case RunPaused():
            return always("caution", "[Control] Paused; `cuggino continue` goes on")
        case PauseEnded(seconds=seconds):
            return always("caution", f"[Control] Continuing after {format_duration(seconds)}")
        case ControlIgnored(source=source, reason=reason):
            return always("warning", f"[Control] Ignored {inert(source)}: {inert(reason)}")
        case _:
            return None


def _fallen_back(event: AgentFellBack) -> str:
    until = f" until {event.until:%Y-%m-%d %H:%M %Z}".rstrip() if event.until else ""
    what = f"Falling back from {event.from_agent} to {event.to_agent}"
    role = f" as {event.role}" if event.role else ""
    return f"[Agent] {what}{role} ({event.reason.replace('_', ' ')}{until}): {event.message}"


def _some(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return inert(", ".join(paths[:_SHOWN]) + more)


def _confined(event: SandboxChosen) -> str:
    why = f" ({clip(inert(event.reason), 300)})" if event.reason else ""
    if not event.held:
        return f"Nothing confines the agents; changes beyond their roles are put back{why}"
    rest = f", not {inert(', '.join(event.not_held))}" if event.not_held else ""
    return f"{inert(event.engine)} confines {inert(', '.join(event.held))}{rest}{why}"


def _violation(event: RoleViolated) -> str:
    back = f"not put back: {_some(event.failed)}" if event.failed else "it was put back"
    kept = f", the changed version is in {inert(event.kept)}" if event.kept else ""
    if not event.void:
        put = "Changed and not all put back" if event.failed else "Put back"
        return f"[Project] {put} after {inert(event.role)}: {_some(event.paths)}{kept}"
    return (
        f"[Agent] Changed what {inert(event.role)} may not write: "
        f"{_some(event.paths)} ({back}{kept})"
    )


def _contradiction(event: ContradictoryMarkers) -> str:
    said = "; ".join(f"{tag}: {' '.join(content.split())}" for tag, content in event.markers)
    return (
        f"[Agent] Contradictory markers, {inert(event.counted)} counts ({clip(inert(said), 300)})"
    )


def _cost(event: StageCost) -> str:
    name = event.phase.capitalize()
    spent = [] if event.duration is None else [format_duration(event.duration)]
    if event.cost_usd is not None:
        spent.append(cost_of(event))
    if event.usage is not None:
        spent.append(format_tokens(event.usage))
    so_far = money(event.total_cost, estimated=event.total_estimated)
    total = [so_far] if so_far else []
    if event.total_usage is not None:
        total.append(format_tokens(event.total_usage))
    return f"[{name}] {', '.join(spent)} (run total {', '.join(total)})"


def _repeated(tool: str, times: int) -> str:
    return f"called {tool} {times} times with the same result"


def _during(tool: str | None) -> str:
    return f" while {tool} runs" if tool else ""


def _standstill(event: NoProgress) -> str:
    what = "changed nothing" if event.kind == "unchanged" else "returned to an earlier state"
    then = "planning again" if event.action == "replan" else "stopping"
    return f"[Loop] No progress: {event.agents} agents in a row {what}; {then}"


def _improvements(event: ImprovementsKept) -> str:
    count = len(event.findings)
    kept = f"{count} improvement{'s' * (count != 1)} that no specification demands"
    where = f", kept in .cuggino/tbd: {', '.join(event.filenames)}" if event.filenames else ""
    then = "; the review counts as an approval" if event.approves else ""
    return f"[Loop] {kept}{where}{then}"


def _resumed(event: RunResumed) -> str:
    steps = "1 step" if event.stages == 1 else f"{event.stages} steps"
    return f"[Loop] Resuming run {event.run_id}: {steps} already done"
