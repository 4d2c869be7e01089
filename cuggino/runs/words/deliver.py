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


def deliver_words(event: ev.DeliverEvent) -> Words | None:
    """Return the sentence of an event of the deliver loop; None for an unknown one."""
    match event:
        case ev.DeliverWarning():
            return Words("", event.message, "warning")
        case ev.DeliverSessionStarted():
            return Words("", f"Session {event.session} started", "info")
        case ev.DeliverSessionEnded():
            return _joined(_session_ended(event))
        case ev.DeliverSessionRetry(attempt=k, max_retries=limit):
            return Words("", f"Session error ({k}/{limit}), starting new session...", "warning")
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
    blocked = f" ({event.blocked} blocked)" if event.blocked else ""
    verified = f", {event.verified} verified" if event.verified else ""
    return f"Deliverables: {event.passed}/{len(event.deliverables)} passed{blocked}{verified}"


def quota_wait_words(event: ev.QuotaWaiting) -> Words:
    """Return the words at the start of a wait for a usage limit (AUT-028, AUT-078)."""
    waiting = f"Quota exceeded, waiting {full_duration(event.remaining)} until reset..."
    line = _line("info", waiting)
    return _quota_met(event.message, line) if event.message else line


def ending(event: ev.DeliverEnded) -> Words:
    """Return why the loop ended (AUT-038)."""
    match event.reason:
        case "interrupted":
            return _line("info", "User interrupted")
        case "quota_exceeded":
            return _line("error", "Quota exceeded")
        case "budget_exceeded":
            return _line("error", "Budget exceeded")
        case "all_passed":
            return _line("info", f"All achievable deliverables passed{_blocked(event)}")
        case "all_verified":
            return _line("info", f"All {event.to_verify} deliverables verified")
        case "all_blocked":
            return _line("info", f"All {event.total} deliverables are blocked")
        case "max_iterations":
            return _line("info", f"Max iterations ({event.max_iterations}) reached")
        case "max_retries_exceeded":
            return _line("error", f"Session failed after {event.max_retries} consecutive errors")
        case "stalled":
            return _line("error", f"No progress: {event.error or 'nothing changes'}")
        case "failed":
            return _line("error", "Another session cannot succeed")
        case _ as never:
            assert_never(never)


def overall(event: ev.DeliverEnded) -> Words:
    """Return the totals of the run (AUT-037, AUT-270)."""
    done = f"{event.passed}/{event.total} deliverables passed{_blocked(event)}"
    if event.sync:
        done = f"{event.verified or 0}/{event.to_verify} verified"
    totals = f"cost={cost_of(event, digits=4)}, duration={full_duration(event.duration)}"
    return _line("info", f"Overall: {event.sessions} session(s), {done}, {totals}")


def closing(event: ev.DeliverEnded) -> Words | None:
    """Return the last line (AUT-244); None if the reason already covers it."""
    what = "Sync" if event.sync else "Session"
    match event.reason:
        case "interrupted":
            return _line("info", f"{what} interrupted by user")
        case "quota_exceeded":
            return _line("error", f"{what} stopped: quota exceeded")
        case "budget_exceeded":
            return _line("error", f"{what} stopped: {event.error or 'budget exceeded'}")
        case "all_verified" if event.sync:
            return None
        case "all_passed" if event.sync:
            return _line("info", "Sync completed: all deliverables verified")
        case "all_passed" | "all_verified":
            return _line("info", "Session completed successfully")
        case "all_blocked":
            return _line("error", "All deliverables blocked")
        case "max_iterations":
            return _line("info", f"{what} stopped: max iterations reached")
        case "max_retries_exceeded" | "failed":
            return _line("error", f"{what} stopped: {event.error or 'Unknown error'}")
        case "stalled":
            return _line("error", f"{what} stopped: no progress")
        case _ as never:
            assert_never(never)


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


def _blocked(event: ev.DeliverEnded) -> str:
    return f" ({event.blocked} blocked)" if event.blocked else ""
