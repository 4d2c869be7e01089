"""What the deliverables loop says of its course, line by line (AUT-028 to AUT-038, AUT-244)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, assert_never

from cuggino.events import (
    DeliverablesListed,
    DeliverableStatusChanged,
    DeliverEnded,
    DeliverEvent,
    DeliverSessionEnded,
    DeliverSessionRetry,
    DeliverSessionStarted,
    DeliverStatus,
    DeliverWarning,
    QuotaWaiting,
)
from cuggino_cli.output.durations import full_duration
from cuggino_cli.output.shown import Shown
from cuggino_cli.output.theme import Fragment
from cuggino_cli.output.verbosity import Verbosity

Level = Literal["info", "debug", "warning", "error"]

_ICONS: dict[DeliverStatus, str] = {
    "passed": "[PASS]",
    "blocked": "[BLOCKED]",
    "pending": "[PENDING]",
}


class Line(NamedTuple):
    """A line, or more, and how serious it is; warnings and errors go to standard error."""

    level: Level
    text: str

    @property
    def fragments(self) -> list[Fragment]:
        """The line as a person sees it; one for debugging says that it is."""
        text = f"[debug] {self.text}" if self.level == "debug" else self.text
        return [Fragment(self.level if text else "plain", text)]

    @property
    def is_complaint(self) -> bool:
        """Whether it goes to standard error (AUT-251)."""
        return self.level in ("warning", "error")


def deliver_shown(event: DeliverEvent, verbosity: Verbosity) -> Shown | None:
    """The lines of the event as one piece; None for nothing."""
    fragments: list[Fragment] = []
    for line in deliver_lines(event, verbosity):
        fragments += ([Fragment("plain", "\n")] if fragments else []) + line.fragments
    return Shown(Verbosity.QUIET, fragments) if fragments else None


def deliver_lines(event: DeliverEvent, verbosity: Verbosity) -> list[Line]:
    """What the event shows at this verbosity: sessions, status changes and endings always."""
    match event:
        case DeliverWarning(message=message):
            return [Line("warning", message)]
        case DeliverSessionStarted(session=session):
            return [Line("info", f"Session {session} started")]
        case DeliverSessionEnded():
            return list(_session_ended(event, verbosity))
        case DeliverSessionRetry(attempt=k, max_retries=limit):
            return [Line("warning", f"Session error ({k}/{limit}), starting new session...")]
        case DeliverableStatusChanged(status=status, description=description, deliverable_id=name):
            return [Line("info", f"{_ICONS[status]} {description} ({name})")]
        case DeliverablesListed():
            return [Line("info", standing(event))] if verbosity >= Verbosity.VERBOSE else []
        case DeliverEnded():
            closing = closing_line(event)
            last = [Line("info", ""), closing] if closing is not None else []
            return [reason_line(event), overall_line(event), *last]
        case _:
            return []


def waiting_lines(event: QuotaWaiting) -> Iterator[Line]:
    """What is said when a wait for a usage limit begins (AUT-028, AUT-078)."""
    if event.message:
        yield _quota_met(event.message)
    duration = full_duration(event.remaining)
    yield Line("info", f"Quota exceeded, waiting {duration} until reset...")


def standing(event: DeliverablesListed) -> str:
    """`Deliverables: 3/7 passed (1 blocked)`, and how many are verified when some are."""
    blocked = f" ({event.blocked} blocked)" if event.blocked else ""
    verified = f", {event.verified} verified" if event.verified else ""
    return f"Deliverables: {event.passed}/{len(event.deliverables)} passed{blocked}{verified}"


def reason_line(event: DeliverEnded) -> Line:
    """Why it is over (AUT-038)."""
    match event.reason:
        case "interrupted":
            return Line("info", "User interrupted")
        case "quota_exceeded":
            return Line("error", "Quota exceeded")
        case "budget_exceeded":
            return Line("error", "Budget exceeded")
        case "all_passed":
            return Line("info", f"All achievable deliverables passed{_blocked(event)}")
        case "all_verified":
            return Line("info", f"All {event.to_verify} deliverables verified")
        case "all_blocked":
            return Line("info", f"All {event.total} deliverables are blocked")
        case "max_iterations":
            return Line("info", f"Max iterations ({event.max_iterations}) reached")
        case "max_retries_exceeded":
            return Line("error", f"Session failed after {event.max_retries} consecutive errors")
        case "stalled":
            return Line("error", f"No progress: {event.error or 'nothing changes'}")
        case "failed":
            return Line("error", "No further session can do better")
        case _ as never:
            assert_never(never)


def overall_line(event: DeliverEnded) -> Line:
    """What it came to and what it took (AUT-037, AUT-270)."""
    done = f"{event.passed}/{event.total} deliverables passed{_blocked(event)}"
    if event.sync:
        done = f"{event.verified or 0}/{event.to_verify} verified"
    took = f"cost=${event.cost_usd:.4f}, duration={full_duration(event.duration)}"
    return Line("info", f"Overall: {event.sessions} session(s), {done}, {took}")


def closing_line(event: DeliverEnded) -> Line | None:
    """The last word (AUT-244); a sync that has verified all has said it already."""
    what = "Sync" if event.sync else "Session"
    match event.reason:
        case "interrupted":
            return Line("info", f"{what} interrupted by user")
        case "quota_exceeded":
            return Line("error", f"{what} stopped: quota exceeded")
        case "budget_exceeded":
            return Line("error", f"{what} stopped: {event.error or 'budget exceeded'}")
        case "all_verified" if event.sync:
            return None
        case "all_passed" if event.sync:
            return Line("info", "Sync completed: all deliverables verified")
        case "all_passed" | "all_verified":
            return Line("info", "Session completed successfully")
        case "all_blocked":
            return Line("error", "All deliverables blocked")
        case "max_iterations":
            return Line("info", f"{what} stopped: max iterations reached")
        case "max_retries_exceeded" | "failed":
            return Line("error", f"{what} stopped: {event.error or 'Unknown error'}")
        case "stalled":
            return Line("error", f"{what} stopped: no progress")
        case _ as never:
            assert_never(never)


def _session_ended(event: DeliverSessionEnded, verbosity: Verbosity) -> Iterator[Line]:
    match event.outcome:
        case "completed":
            # With --verbose they were shown when they were said.
            if event.message and verbosity == Verbosity.NORMAL:
                yield Line("info", event.message)
        case "execution_error":
            for message in event.message.splitlines() or ["Unknown error"]:
                yield Line("error", message)
        case "quota":
            yield _quota_met(event.message)
        case "error":
            yield Line("error", f"Stream error: {event.message or 'Unknown error'}")
            return
        case "interrupted":
            return  # cut off, so that nobody knows what it took
        case "max_turns" | "budget":
            pass
        case _ as never:
            assert_never(never)
    took = f"cost=${event.cost_usd or 0:.4f}, duration={full_duration(event.duration)}"
    yield Line("info", f"Session {event.session}: {took}")


def _quota_met(message: str) -> Line:
    return Line("warning", f"Quota exceeded: {message or 'Unknown'}")


def _blocked(event: DeliverEnded) -> str:
    return f" ({event.blocked} blocked)" if event.blocked else ""
