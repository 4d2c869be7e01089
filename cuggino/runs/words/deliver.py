"""Sentences of the deliver loop, as Autonoe writes them (AUT-028 to AUT-038, AUT-244)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from cuggino import events as ev
from cuggino.domain import cost_of, money
from cuggino.runs.words.amounts import full_duration
from cuggino.runs.words.base import Tone, Words

_ICONS: Final[dict[ev.DeliverStatus, str]] = {
    "passed": "[PASS]",
    "blocked": "[BLOCKED]",
    "pending": "[PENDING]",
}


SESSION_ENDS: Final[dict[ev.DeliverOutcome, tuple[Tone, str]]] = {
    "completed": ("success", "completed"),
    "execution_error": ("failure", "failed"),
    "error": ("failure", "failed"),
    "max_turns": ("caution", "turns used up"),
    "interrupted": ("warning", "interrupted"),
    "budget": ("warning", "budget spent"),
    "quota": ("warning", "usage limit"),
}
"""The tone and the word of each end of a session."""

_ENDINGS: Final[dict[ev.DeliverExit, tuple[Tone, str]]] = {
    "interrupted": ("info", "User interrupted"),
    "quota_exceeded": ("error", "Quota exceeded"),
    "budget_exceeded": ("error", "Budget exceeded"),
    "all_passed": ("info", "All achievable deliverables passed{blocked}"),
    "all_verified": ("info", "All {e.to_verify} deliverables verified"),
    "all_blocked": ("info", "All {e.total} deliverables are blocked"),
    "max_iterations": ("info", "Max iterations ({e.max_iterations}) reached"),
    "max_retries_exceeded": ("error", "Session failed after {e.max_retries} consecutive errors"),
    "stalled": ("error", "No progress: {why}"),
    "failed": ("error", "Another session cannot succeed"),
}
_CLOSINGS: Final[dict[ev.DeliverExit, tuple[Tone, str, str]]] = {
    "interrupted": ("info", "{what} interrupted by user", ""),
    "quota_exceeded": ("error", "{what} stopped: quota exceeded", ""),
    "budget_exceeded": ("error", "{what} stopped: {why}", "budget exceeded"),
    "all_passed": ("info", "Session completed successfully", ""),
    "all_verified": ("info", "Session completed successfully", ""),
    "all_blocked": ("error", "All deliverables blocked", ""),
    "max_iterations": ("info", "{what} stopped: max iterations reached", ""),
    "max_retries_exceeded": ("error", "{what} stopped: {why}", "Unknown error"),
    "stalled": ("error", "{what} stopped: no progress", ""),
    "failed": ("error", "{what} stopped: {why}", "Unknown error"),
}
"""The last line of each end, and what replaces a missing error."""


def deliver_words(event: ev.DeliverEvent) -> Words | None:
    """Return the sentence of an event of the deliver loop; None for an unknown one."""
    match event:
        case ev.DeliverSessionEnded():
            return _joined(_session_ended(event))
        case ev.DeliverableStatusChanged():
            text = f"{_ICONS[event.status]} {event.description} ({event.deliverable_id})"
            return Words("", text, "info")
        case ev.DeliverablesListed():
            return Words("", standing(event), "info", "verbose")
        case ev.DeliverEnded():
            last = closing(event)
            return _joined([ending(event), overall(event), *([last] if last else [])])
        case _:
            return None


def _joined(lines: Sequence[Words]) -> Words | None:
    if not lines:
        return None
    first, *more = lines
    return Words(first.title, first.text, first.tone, first.verbosity, tuple(more))


def _line(tone: Tone, text: str) -> Words:
    return Words("", text, tone)


def standing(event: ev.DeliverablesListed) -> str:
    """Return `Deliverables: 3/7 passed (1 blocked), 2 verified`."""
    verified = f", {event.verified} verified" if event.verified else ""
    passed = f"{event.passed}/{len(event.deliverables)} passed"
    return f"Deliverables: {passed}{_blocked(event)}{verified}"


def quota_wait_words(event: ev.QuotaWaiting) -> Words:
    """Return the words at the start of a wait for a usage limit (AUT-028, AUT-078)."""
    waiting = f"Quota exceeded, waiting {full_duration(event.remaining)} until reset..."
    line = _line("info", waiting)
    return _quota_met(event.message, line) if event.message else line


def ending(event: ev.DeliverEnded) -> Words:
    """Return why the loop ended (AUT-038)."""
    tone, text = _ENDINGS[event.reason]
    return _line(
        tone, text.format(e=event, blocked=_blocked(event), why=event.error or "nothing changes")
    )


def overall(event: ev.DeliverEnded) -> Words:
    """Return the totals of the run (AUT-037, AUT-270)."""
    done = f"{event.passed}/{event.total} deliverables passed{_blocked(event)}"
    if event.sync:
        done = f"{event.verified or 0}/{event.to_verify} verified"
    totals = f"cost={cost_of(event, digits=4)}, duration={full_duration(event.duration)}"
    return _line("info", f"Overall: {event.sessions} session(s), {done}, {totals}")


def closing(event: ev.DeliverEnded) -> Words | None:
    """Return the last line (AUT-244); None if the reason already covers it."""
    if event.sync and event.reason == "all_verified":
        return None
    if event.sync and event.reason == "all_passed":
        return _line("info", "Sync completed: all deliverables verified")
    tone, text, unknown = _CLOSINGS[event.reason]
    what = "Sync" if event.sync else "Session"
    return _line(tone, text.format(what=what, why=event.error or unknown))


def _session_ended(event: ev.DeliverSessionEnded) -> list[Words]:
    cost = cost_of(event, digits=4) or money(0.0, digits=4)
    duration = full_duration(event.duration)
    took = f"Session {event.session}: cost={cost}, duration={duration}"
    totals = _line("info", took)
    match event.outcome:
        case "completed":
            message = Words("", event.message, "info", "normal")
            return [message, totals] if event.message else [totals]
        case "execution_error":
            lines = event.message.splitlines() or ["Unknown error"]
            return [*(_line("error", line) for line in lines), totals]
        case "quota":
            return [_quota_met(event.message), totals]
        case "error":
            return [_line("error", f"Stream error: {event.message or 'Unknown error'}")]
        case "interrupted":
            return []  # its cost is unknown
        case "max_turns":
            return [_line("caution", f"{took}, turn limit reached")]
        case "budget":
            return [_line("caution", f"{took}, budget spent")]
        case _ as never:
            assert_never(never)


def _quota_met(message: str, *more: Words) -> Words:
    return Words("", f"Quota exceeded: {message or 'Unknown'}", "warning", more=more)


def _blocked(event: ev.DeliverEnded | ev.DeliverablesListed) -> str:
    return f" ({event.blocked} blocked)" if event.blocked else ""
