"""Sentences of the coding loop: phases, checks, commits and the outcome."""

from __future__ import annotations

from cuggino import events as ev
from cuggino.runs.words.base import Words, counted, first_line


def coding_words(event: ev.LoopPhaseEvent) -> Words | None:
    """Return the sentence of an event of the coding loop; None for an unknown one."""
    match event:
        case ev.IterationStart(iteration=n, max_iterations=last):
            return Words("Loop", f"=== Iteration {n}/{last} ===", "heading")
        case ev.PlanningStart():
            return Words("Planning", "Starting...")
        case ev.ImplementingStart():
            return Words("Implementing", "Starting...")
        case ev.ReviewingStart():
            return Words("Reviewing", "Starting...")
        case ev.PlanWritten():
            return Words("", event.text, "quiet", "verbose")
        case ev.CommandStartedEvent():
            text = f"Running: {first_line(event.title)}"
            return Words(_command(event), text, "quiet", "normal")
        case ev.CommandOutputEvent():
            code = event.exit_code
            end = f"{'Failed' if code else 'Completed'}{'' if code is None else f' (exit {code})'}"
            return Words(_command(event), end, "quiet", "normal")
        case ev.CommitPerformed():
            return Words("Commit", f"{event.commit_hash}: {event.message}", "commit", "normal")
        case ev.CommitFailed():
            return Words("Commit", f"Failed: {event.message}", "failure")
        case ev.PushPerformed():
            return Words("Push", f"{event.commit_hash} → {event.remote}", "commit", "normal")
        case ev.PushFailed():
            return Words("Push", f"Failed: {event.message}", "failure")
        case ev.NotInCommit():
            return Words("Commit", event.message, "warning")
        case ev.Baseline():
            return Words(
                "Check", event.message, "caution" if event.exit_code else "quiet", "normal"
            )
        case ev.CheckVerdict():
            return Words("Check", event.message, "quiet", "normal")
        case ev.CheckWeakened() | ev.CheckUnmeasured():
            return Words("Check", event.message, "warning")
        case ev.CheckFlaky():
            return Words("Check", f"Flaky: {event.message}", "warning")
        case ev.GateChanged():
            changed = ", ".join(event.paths)
            return Words("Loop", f"Files that approvals depend on changed: {changed}", "warning")
        case ev.SpecsChanged():
            changed = ", ".join(event.paths)
            return Words("Loop", f"Specifications changed: {changed}; replanning", "warning")
        case ev.ImprovementsKept():
            return Words("Loop", _improvements(event), "warning")
        case ev.TaskLimitReached():
            return Words("Loop", f"Task limit ({event.max_tasks}) reached", "warning")
        case _:
            return _outcome(event)


def _outcome(event: ev.LoopPhaseEvent) -> Words | None:
    match event:
        case ev.ApprovalBlocked():
            return Words("Loop", f"Approval does not count: {event.message}", "warning")
        case ev.LoopApproved(checked=False):
            return Words("Loop", "Implementation approved, unchecked", "caution")
        case ev.LoopApproved():
            return Words("Loop", "Implementation approved!", "success")
        case ev.LoopMaxIterations():
            return Words("Loop", f"Max iterations ({event.max_iterations}) reached", "caution")
        case ev.LoopSpecIssue():
            saved = Words("", f"Saved to: {event.filename}", "plain")
            return Words("Loop", f"Spec issue: {event.content}", "problem", more=(saved,))
        case ev.LoopStalled():
            return Words("Loop", f"Stalled: {event.message}", "problem")
        case _:
            return None


def _command(event: ev.CommandStartedEvent | ev.CommandOutputEvent) -> str:
    setup = isinstance(event, ev.SetupCommandStarted | ev.SetupCommandOutput)
    return "Setup" if setup else "Check"


def _improvements(event: ev.ImprovementsKept) -> str:
    kept = f"{counted(len(event.findings), 'improvement')} that no specification demands"
    where = f", kept in .cuggino/tbd: {', '.join(event.filenames)}" if event.filenames else ""
    return f"{kept}{where}{'; the review counts as an approval' if event.approves else ''}"
