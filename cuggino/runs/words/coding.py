"""Sentences of the coding loop: phases, checks, commits and the outcome."""

from __future__ import annotations

from cuggino import events as ev
from cuggino.runs.words.base import Tone, Words, counted, first_line


def coding_words(event: ev.LoopPhaseEvent) -> Words | None:
    """Return the sentence of an event of the coding loop; None for an unknown one."""
    match event:
        case ev.CommandStartedEvent():
            text = f"Running: {first_line(event.title)}"
            return Words(_command(event), text, "quiet", "normal")
        case ev.CommandOutputEvent():
            code = event.exit_code
            end = f"{'Failed' if code else 'Completed'}{'' if code is None else f' (exit {code})'}"
            return Words(_command(event), end, "quiet", "normal")
        case ev.Baseline():
            tone: Tone = "caution" if event.exit_code else "quiet"
            return Words("Check", event.message, tone, "normal")
        case ev.CheckWeakened() | ev.CheckUnmeasured():
            return Words("Check", event.message, "warning")
        case ev.GateChanged():
            changed = ", ".join(event.paths)
            return Words("Loop", f"Files that approvals depend on changed: {changed}", "warning")
        case ev.SpecsChanged():
            changed = ", ".join(event.paths)
            return Words("Loop", f"Specifications changed: {changed}; replanning", "warning")
        case ev.HandsStarted():
            text = f"{counted(event.hands, 'hand')} for {counted(event.tasks, 'task')}"
            notes = tuple(Words("Loop", note, "warning") for note in event.notes)
            return Words("Loop", text, "heading", more=notes)
        case ev.HandsEnded():
            return _hands(event)
        case ev.ImprovementsKept():
            return Words("Loop", _improvements(event), "warning")
        case ev.LoopApproved(checked=False):
            return Words("Loop", "Implementation approved, unchecked", "caution")
        case ev.LoopApproved():
            return Words("Loop", "Implementation approved!", "success")
        case ev.LoopSpecIssue():
            saved = Words("", f"Saved to: {event.filename}", "plain")
            return Words("Loop", f"Spec issue: {event.content}", "problem", more=(saved,))
        case _:
            return None


def _command(event: ev.CommandStartedEvent | ev.CommandOutputEvent) -> str:
    setup = isinstance(event, ev.SetupCommandStarted | ev.SetupCommandOutput)
    return "Setup" if setup else "Check"


def _hands(event: ev.HandsEnded) -> Words:
    left = "; ".join(f"{name} did not: {reason}" for name, reason in event.undone.items())
    landed = f"{len(event.landed)} {'task' if len(event.landed) == 1 else 'tasks'} landed"
    return Words("Loop", f"{landed}; {left}" if left else landed, "warning" if left else "heading")


def _improvements(event: ev.ImprovementsKept) -> str:
    kept = f"{counted(len(event.findings), 'improvement')} that no specification demands"
    where = f", kept in .cuggino/tbd: {', '.join(event.filenames)}" if event.filenames else ""
    return f"{kept}{where}{'; the review counts as an approval' if event.approves else ''}"
