"""Sentences of supervision: retries, waits, fallbacks, budgets, protection and commands."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from typing import assert_never

from cuggino import events as ev
from cuggino.domain import (
    BudgetLevel,
    Decision,
    approval_text,
    cost_of,
    cost_unknown,
    money,
    until_text,
)
from cuggino.runs.words.amounts import (
    countdown,
    format_duration,
    format_pause,
    format_time,
    format_tokens,
)
from cuggino.runs.words.base import Words, clip, counted, first_line, listed

_LONGEST_APPROVAL = 100
"""Lines of a plan that are shown."""
_ATTEMPT = re.compile(r"attempt-\d+")
"""The name of an attempt at a run, whose events name it as their item."""


def supervision_words(event: ev.SupervisionEvent) -> Words | None:
    """Return the sentence of an event of supervision; None for an unknown one."""
    match event:
        case ev.ControlEvent():
            return _control(event)
        case ev.AgentRetry():
            again = f"again in {format_pause(event.retry_in)}"
            of = f"retry {event.attempt} of {event.max_retries}"
            reason = event.reason.replace("_", " ")
            return Words("Agent", f"{reason} ({of}, {again}): {event.message}", "warning")
        case ev.QuotaWaiting():
            until = f" until {format_time(event.resets_at)}" if event.resets_at else ""
            wait = f"{until}, {countdown(event.remaining)}"
            what = "" if event.planned else " for the usage limit"
            why = f": {event.message}" if event.message else ""
            return Words("Agent", f"Waiting{what}{wait}{why}", "warning")
        case ev.QuotaLifted():
            return Words("Agent", f"Resuming after {format_duration(event.waited)}", "warning")
        case ev.WaitingStarted():
            end = event.until.deadline
            limit = f", until {format_time(end)} at most" if end else ""
            text = f"Waiting for {until_text(event.until)}{limit}"
            if isinstance(event.until, ev.PersonAnswers) and event.until.approves:
                lines = event.until.question.strip().splitlines()
                more = [Words("", line, "plain") for line in lines[2:] if line.strip()]
                return Words("Wait", text, "caution", more=tuple(more[:_LONGEST_APPROVAL]))
            return Words("Wait", text, "caution")
        case ev.WaitingEnded():
            return Words("Wait", _waited(event), "caution")
        case ev.WaitingRefused():
            return Words("Wait", f"Cannot wait for `{event.asked}`: {event.reason}", "warning")
        case ev.AgentNudged():
            return Words("Agent", f"{_stall(event)}: resuming its session", "warning")
        case ev.AgentReplaced():
            return Words("Agent", f"{_stall(event)}: starting a fresh agent", "warning")
        case ev.AgentFellBack():
            return Words("Agent", _fallen_back(event), "warning")
        case ev.ContradictoryMarkers():
            markers = "; ".join(f"{tag}: {content}" for tag, content in event.markers)
            text = f"Contradictory markers, {event.counted} counts ({clip(markers, 300)})"
            return Words("Agent", text, "warning")
        case ev.ApprovalQuestioned():
            reasons = clip("; ".join(event.objections), 500)
            return Words("Agent", f"The approval is questioned: {reasons}", "warning")
        case ev.NoProgress():
            return Words("Loop", _standstill(event), "caution")
        case ev.RunResumed():
            done = f"{counted(event.stages, 'step')} already done"
            return Words("Loop", f"Resuming run {event.run_id}: {done}", "heading")
        case ev.StageCost():
            return Words(event.phase.capitalize(), _cost(event), "quiet", "normal")
        case ev.BudgetWarning():
            share = f"{event.spent / event.limit:.0%}" if event.limit else "all"
            spent = BudgetLevel.of(event).share
            return Words("Budget", f"{share} of the {event.budget} spent: {spent}", "warning")
        case ev.CostUnknown():
            return Words("Budget", f"Unknown cost: {cost_unknown(event)}", "problem")
        case ev.Forecast():
            text = event.words(format_duration, partial(money, estimated=event.cost_estimated))
            return Words("Forecast", text[:1].upper() + text[1:], "quiet", "normal")
        case _:
            return _project(event)


def _project(event: ev.SupervisionEvent) -> Words | None:
    """Return the sentence about files, commits, checks and the sandbox."""
    match event:
        case ev.SnapshotTaken(left_out=left_out) if left_out:
            files = clip(", ".join(f"{path} ({why})" for path, why in left_out), 300)
            return Words("Snapshot", f"Without {files}", "warning")
        case ev.SnapshotTaken():
            return Words("Snapshot", event.stage, "quiet", "verbose")
        case ev.CheckCannotFail():
            what = f"`{clip(first_line(event.command), 100)}` cannot fail"
            return Words("Check", f"{what}: {clip(event.why, 300)}", "warning")
        case ev.CheckDoesNotDecide():
            what = f"`{clip(first_line(event.command), 100)}` fails"
            return Words("Check", f"An approval counts even if {what} (gate: context)", "warning")
        case ev.SandboxChosen(not_held=()):
            return Words("Sandbox", _confined(event), "quiet", "normal")
        case ev.SandboxChosen():
            return Words("Sandbox", _confined(event), "warning")
        case ev.RoleViolated(void=True):
            return Words("Agent", _violation(event), "failure")
        case ev.RoleViolated():
            return Words("Project", _violation(event), "warning")
        case ev.ProtectedChanged():
            text = f"Changed during {event.role}: {listed(event.paths)}"
            return Words("Project", text, "warning")
        case ev.InstructionsChanged():
            text = f"Instructions for agents changed during {event.role}: {listed(event.paths)}"
            return Words("Project", text, "warning")
        case ev.DirtyFilesKept():
            text = f"Uncommitted before the run, so left out of commits: {listed(event.paths)}"
            return Words("Commit", text, "warning")
        case ev.DirtyFilesCommitted():
            text = f"The next commit will include your uncommitted changes: {listed(event.paths)}"
            return Words("Commit", text, "warning")
        case ev.BranchChanged():
            before, after = event.before or "no branch", event.after or "no branch"
            text = f"The branch changed from {before} to {after}; commits go there from now on"
            return Words("Commit", text, "warning")
        case _:
            return None


def _control(event: ev.ControlEvent) -> Words | None:
    match event:
        case ev.StopAsked():
            when = "now" if event.now else "after this stage"
            return Words("Control", f"Stopping {when}", "caution")
        case ev.SkipAsked():
            return Words("Control", f"Skipping {event.item or 'the current item'}", "caution")
        case ev.RunPaused(until=datetime() as until):
            at = f"{until.astimezone():%a %H:%M}"
            return Words("Control", f"Outside of the hours; waits until {at}", "caution")
        case ev.RunPaused():
            return Words("Control", "Paused; `cuggino continue` resumes it", "caution")
        case ev.PauseEnded():
            return Words("Control", f"Continuing after {format_duration(event.seconds)}", "caution")
        case _:
            return None


def _waited(event: ev.WaitingEnded) -> str:
    after, what = format_duration(event.waited), until_text(event.until)
    if isinstance(event.until, ev.PersonAnswers) and (kind := event.until.approves):
        outcome, text = Decision.of(event)
        verb = "Nobody approved" if outcome == "expired" else f"You {outcome}"
        why = f": {clip(first_line(text), 300)}" if text and outcome != "approved" else ""
        return f"{verb} {approval_text(kind)}, after {after}{why}"
    answer = f": {clip(first_line(event.answer), 300)}" if event.answer else ""
    match event.outcome:
        case "happened":
            return f"Continuing after {after}: {what}{answer}"
        case "deadline":
            return f"Continuing after {after} without {what}{answer}"
        case "failed":
            return f"Continuing after {after}, unable to wait for {what}{answer}"
        case _ as never:
            assert_never(never)


def _stall(event: ev.AgentNudged | ev.AgentReplaced) -> str:
    if isinstance(event, ev.AgentNudged) and event.polling:
        return f"ran the same command with a sleep {event.repeated} times, so it is told to wait"
    if event.no_marker:
        return "Ended without a marker"
    if event.repeated is not None:
        return f"called {event.tool} {event.repeated} times with the same result"
    if event.idle is None:
        return "Stage timeout"
    during = f" while {event.tool} runs" if event.tool else ""
    return f"silent for {format_duration(event.idle)}{during}"


def _fallen_back(event: ev.AgentFellBack) -> str:
    until = f" until {format_time(event.until)}" if event.until else ""
    role = f" as {event.role}" if event.role else ""
    what = f"Falling back from {event.from_agent} to {event.to_agent}{role}"
    return f"{what} ({event.reason.replace('_', ' ')}{until}): {event.message}"


def _standstill(event: ev.NoProgress) -> str:
    what = "changed nothing" if event.kind == "unchanged" else "returned to an earlier state"
    then = "planning again" if event.action == "replan" else "stopping"
    return f"No progress: {event.agents} agents in a row {what}; {then}"


def _cost(event: ev.StageCost) -> str:
    spent = [] if event.duration is None else [format_duration(event.duration)]
    spent += [] if event.cost_usd is None else [cost_of(event)]
    spent += [] if event.usage is None else [format_tokens(event.usage)]
    so_far = money(event.total_cost, estimated=event.total_estimated)
    tokens = "" if event.total_usage is None else format_tokens(event.total_usage)
    is_attempt = event.item is not None and _ATTEMPT.fullmatch(event.item)
    whole = "run" if event.item is None or is_attempt else "watch"
    return f"{', '.join(spent)} ({whole} total {so_far or tokens})"


def _confined(event: ev.SandboxChosen) -> str:
    why = f" ({clip(event.reason, 300)})" if event.reason else ""
    if not event.held:
        return f"Nothing confines the agents; changes beyond their roles are put back{why}"
    rest = f", not {', '.join(event.not_held)}" if event.not_held else ""
    return f"{event.engine} confines {', '.join(event.held)}{rest}{why}"


def _violation(event: ev.RoleViolated) -> str:
    kept = f", the changed version is in {event.kept}" if event.kept else ""
    if not event.void:
        put = "Changed and not all put back" if event.failed else "Put back"
        return f"{put} after {event.role}: {listed(event.paths)}{kept}"
    back = f"not put back: {listed(event.failed)}" if event.failed else "it was put back"
    return f"Changed what {event.role} may not write: {listed(event.paths)} ({back}{kept})"
