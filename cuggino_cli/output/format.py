"""Events as labelled text: the one place that words what a person sees of a run."""

from __future__ import annotations

from cuggino.events import (
    AgentMessage,
    ApprovalBlocked,
    Approved,
    CheckCommandOutput,
    CommandOutputEvent,
    CommitFailed,
    CommitPerformed,
    DeliverEvent,
    Done,
    Event,
    GuardDenied,
    ImplementingStart,
    IterationStart,
    LlmMarkerEvent,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    PlanBuildEvent,
    PlanComplete,
    PlanningStart,
    PolicyEvent,
    Progress,
    PushFailed,
    PushPerformed,
    RateLimited,
    ReviewingStart,
    SessionEnded,
    SetupCommandOutput,
    SpecIssue,
    SystemMessage,
    TaskLimitReached,
    Thinking,
    ToBeDiscussed,
    ToolCall,
    ToolResult,
    UserMessage,
    WatchLoopEvent,
)
from cuggino_cli.output.deliver import deliver_shown
from cuggino_cli.output.durations import format_duration
from cuggino_cli.output.plan_build import plan_build_shown
from cuggino_cli.output.policies import policy_line
from cuggino_cli.output.shown import Shown, always, line_of, normal, verbose
from cuggino_cli.output.theme import Fragment, Label
from cuggino_cli.output.tools import cut, denied_line, numbered_lines, tool_line
from cuggino_cli.output.verbosity import Verbosity
from cuggino_cli.output.watching import watch_shown

_OUTPUT_LIMIT = 500

_MARKER_LABELS: dict[type[LlmMarkerEvent], Label] = {
    SpecIssue: "problem",
    Progress: "progress",
    Done: "success",
    Approved: "success",
    PlanComplete: "success",
    ToBeDiscussed: "discussion",
}
"""The others are `caution`: NOTE, REQUEST_CHANGES, NO_MORE_WORK (CUG-132)."""

_SAID = (AgentMessage, SystemMessage, Thinking, ToolResult, UserMessage)
"""Shown with `--verbose` only, and so many that nothing is worded that is not shown."""

_SESSION_ENDINGS = {
    "failed": "Session failed",
    "interrupted": "Session interrupted",
    "max_turns": "Session ended: turn limit reached",
    "budget": "Session ended: budget spent",
    "quota": "Session ended: usage limit reached",
}


def format_event(event: Event, *, verbosity: Verbosity) -> list[Fragment] | None:
    """What a person sees of the event, without the newline that ends it; None for nothing.

    Pure (CUG-130). `VERBOSE` is the wording of CUG-131 to CUG-133; `NORMAL` and `QUIET` leave out
    whole events and word the output of commands as one line (CUG-136). Pings and events that this
    version does not know show nothing.
    """
    shown = _show(event, verbosity)
    return shown.fragments if shown is not None and verbosity >= shown.least else None


def _show(event: Event, verbosity: Verbosity) -> Shown | None:
    if verbosity < Verbosity.VERBOSE and isinstance(event, _SAID):
        return None
    match event:
        # What the agent says
        case SystemMessage(text=text):
            return verbose("prose", f"[System] {text}")
        case UserMessage(text=text):
            return verbose("prose", f"[User] {text}")
        case Thinking(text=text):
            return verbose("prose", f"[Thinking] {text}")
        case AgentMessage(text=text):
            return verbose("prose", text)
        case ToolCall(name=name, input=tool_input):
            return normal("tool", tool_line(name, tool_input))
        case GuardDenied(tool=tool, part=part, reason=reason):
            return always("warning", denied_line(tool, part, reason))
        case ToolResult(output=output):
            return verbose("prose", numbered_lines(output))
        case RateLimited():
            return always("warning", _rate_limit(event))
        case SessionEnded():
            return _session_ended(event)
        case LlmMarkerEvent():
            return Shown(Verbosity.NORMAL, _marker(event))
        # The course of the coding loop
        case IterationStart(iteration=n, max_iterations=last):
            return always("round", f"[Loop] === Iteration {n}/{last} ===", above=True)
        case PlanningStart():
            return always("phase", "[Planning] Starting...", above=True)
        case ImplementingStart():
            return always("phase", "[Implementing] Starting...", above=True)
        case ReviewingStart():
            return always("phase", "[Reviewing] Starting...", above=True)
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
        case TaskLimitReached(max_tasks=limit):
            return always("warning", f"[Loop] Task limit ({limit}) reached", above=True)
        case ApprovalBlocked(exit_code=code):
            reason = "the check failed" if code is None else f"the check exited with {code}"
            return always("warning", f"[Loop] Approval does not count: {reason}", above=True)
        case LoopApproved():
            return always("success", "[Loop] Implementation approved!", above=True)
        case LoopMaxIterations(max_iterations=limit):
            return always("caution", f"[Loop] Max iterations ({limit}) reached", above=True)
        case LoopSpecIssue(content=content, filename=filename):
            issue = always("problem", f"[Loop] Spec issue: {content}", above=True)
            issue.fragments.append(Fragment("plain", f"\nSaved to: {filename}"))
            return issue
        case LoopStalled(message=message):
            return always("problem", f"[Loop] Stalled: {message}", above=True)
        case PolicyEvent():
            return _policy(event)
        # The course of the other loops
        case WatchLoopEvent():
            return watch_shown(event)
        case DeliverEvent():
            return deliver_shown(event, verbosity)
        case PlanBuildEvent():
            return plan_build_shown(event)
        case _:
            return None


def _policy(event: PolicyEvent) -> Shown | None:
    line = policy_line(event)
    if line is None:
        return None
    least = Verbosity.QUIET if line.always else Verbosity.NORMAL
    return Shown(least, line_of(line.label, line.text))


def _marker(event: LlmMarkerEvent) -> list[Fragment]:
    label = _MARKER_LABELS.get(type(event), "caution")
    return [
        Fragment("plain", "\n"),
        Fragment(label, f"[{event.tag_name()}]"),
        Fragment("plain", f" {event.content}\n"),
    ]


def _rate_limit(event: RateLimited) -> str:
    state = "reached" if event.status == "rejected" else "near"
    limit = f" ({event.limit})" if event.limit else ""
    resets = f", resets {event.resets_at:%Y-%m-%d %H:%M %Z}".rstrip() if event.resets_at else ""
    return f"[Agent] Usage limit {state}{limit}{resets}"


def _session_ended(event: SessionEnded) -> Shown:
    """A failure always shows; of a good end `StageCost` tells by default what it took."""
    took = _took(event)
    if event.outcome != "completed":
        detail = f" ({took})" if took else ""
        return always("warning", f"[Agent] {_SESSION_ENDINGS[event.outcome]}{detail}")
    return verbose("prose", f"[Agent] {took or 'Session completed'}")


def _took(event: SessionEnded) -> str:
    """`$0.0123, 3 turns, 12s`, as far as it is known."""
    parts = []
    if event.cost_usd is not None:
        parts.append(f"${event.cost_usd:.4f}")
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
    shown = verbose("command", f"[{name}] Output:\n{cut(event.output, _OUTPUT_LIMIT)}")
    if event.exit_code:
        shown.fragments.extend(line_of("failure", _command_end(name, event.exit_code), above=True))
    return shown


def _command_end(name: str, exit_code: int | None) -> str:
    if exit_code is None:
        return f"[{name}] Completed"
    return f"[{name}] {'Failed' if exit_code else 'Completed'} (exit {exit_code})"
