"""Lines of the deliver loop (AUT-028 to AUT-038, AUT-244)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Literal, NamedTuple, assert_never

from pydantic import JsonValue

from cuggino.events import (
    AgentMessage,
    DeliverablesListed,
    DeliverableStatusChanged,
    DeliverEnded,
    DeliverEvent,
    DeliverOutcome,
    DeliverSessionEnded,
    DeliverSessionRetry,
    DeliverSessionStarted,
    DeliverStatus,
    DeliverWarning,
    Event,
    QuotaWaiting,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownEvent,
    UserMessage,
)
from cuggino.runs import cost_of, money
from cuggino_cli.screen.fragments import Fragment, Shown, Verbosity
from cuggino_cli.screen.text import clip, full_duration

Level = Literal["info", "debug", "warning", "error"]

_ICONS: dict[DeliverStatus, str] = {
    "passed": "[PASS]",
    "blocked": "[BLOCKED]",
    "pending": "[PENDING]",
}


class Line(NamedTuple):
    """One or more lines with a level; warnings and errors go to standard error."""

    level: Level
    text: str

    @property
    def fragments(self) -> list[Fragment]:
        text = f"[debug] {self.text}" if self.level == "debug" else self.text
        return [Fragment(self.level if text else "plain", text)]

    @property
    def is_complaint(self) -> bool:
        """Return whether it goes to standard error (AUT-251)."""
        return self.level in ("warning", "error")


def deliver_shown(event: DeliverEvent, verbosity: Verbosity) -> Shown | None:
    """Join the lines of the event; None shows nothing."""
    fragments: list[Fragment] = []
    for line in deliver_lines(event, verbosity):
        fragments += ([Fragment("plain", "\n")] if fragments else []) + line.fragments
    return Shown(Verbosity.QUIET, fragments) if fragments else None


def deliver_lines(event: DeliverEvent, verbosity: Verbosity) -> list[Line]:
    """Return the lines of the event; sessions, status changes and outcomes always show."""
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
    """Yield the lines at the start of a wait for a usage limit (AUT-028, AUT-078)."""
    if event.message:
        yield _quota_met(event.message)
    duration = full_duration(event.remaining)
    yield Line("info", f"Quota exceeded, waiting {duration} until reset...")


def standing(event: DeliverablesListed) -> str:
    """Return `Deliverables: 3/7 passed (1 blocked), 2 verified`."""
    blocked = f" ({event.blocked} blocked)" if event.blocked else ""
    verified = f", {event.verified} verified" if event.verified else ""
    return f"Deliverables: {event.passed}/{len(event.deliverables)} passed{blocked}{verified}"


def reason_line(event: DeliverEnded) -> Line:
    """Return why the loop ended (AUT-038)."""
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
            return Line("error", "Another session cannot succeed")
        case _ as never:
            assert_never(never)


def overall_line(event: DeliverEnded) -> Line:
    """Return the totals of the run (AUT-037, AUT-270)."""
    done = f"{event.passed}/{event.total} deliverables passed{_blocked(event)}"
    if event.sync:
        done = f"{event.verified or 0}/{event.to_verify} verified"
    totals = f"cost={cost_of(event, digits=4)}, duration={full_duration(event.duration)}"
    return Line("info", f"Overall: {event.sessions} session(s), {done}, {totals}")


def closing_line(event: DeliverEnded) -> Line | None:
    """Return the last line (AUT-244); None if the reason already covers it."""
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
            # `--verbose` has already shown it.
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
            return  # its cost is unknown
        case "max_turns" | "budget":
            pass
        case _ as never:
            assert_never(never)
    cost = cost_of(event, digits=4) or money(0.0, digits=4)
    totals = f"cost={cost}, duration={full_duration(event.duration)}"
    yield Line("info", f"Session {event.session}: {totals}")


def _quota_met(message: str) -> Line:
    return Line("warning", f"Quota exceeded: {message or 'Unknown'}")


def _blocked(event: DeliverEnded) -> str:
    return f" ({event.blocked} blocked)" if event.blocked else ""


_LINE_LIMIT = 200
_PART_LIMIT = 100

_OUTCOMES: dict[DeliverOutcome, str] = {
    "completed": "completed",
    "execution_error": "execution_error",
    "max_turns": "max_iterations",
    "budget": "budget_exceeded",
    "quota": "quota_exceeded",
    "interrupted": "interrupted",
}


class Received(NamedTuple):
    """An event of a session: its kind, in Autonoe's terms, and its text."""

    kind: str
    text: str


def debug_line(event: Event) -> Line | None:
    """Return `[Recv] <kind>: <event>`, cut after 200 characters; None if it is shown anyway."""
    found = received(event)
    return Line("debug", f"[Recv] {found.kind}: {clip(found.text, _LINE_LIMIT)}") if found else None


def sent_line(instruction: str) -> Line:
    """Return `[Send] <instruction>`, cut after 200 characters."""
    return Line("debug", f"[Send] {clip(instruction, _LINE_LIMIT)}")


def received(event: Event) -> Received | None:
    """Return the event as text; None for pings and events with a line of their own.

    The loop reports the end of a session, because it knows the last message and the error.
    """
    match event:
        case AgentMessage(text=text):
            return Received("stream_text", text)
        case Thinking(text=text):
            return Received("stream_thinking", f"[thinking] {clip(text, _LINE_LIMIT)}")
        case ToolCall(name=name, input=tool_input):
            shown = f"[tool: {name}] {clip(_json(tool_input), _PART_LIMIT)}"
            return Received("stream_tool_invocation", shown)
        case ToolResult(output=output, is_error=is_error):
            label = "[result ERROR]" if is_error else "[result]"
            return Received("stream_tool_response", f"{label} {clip(output, _PART_LIMIT)}")
        case DeliverSessionEnded(outcome="error", message=message):
            return Received("stream_error", f"[error] {message}")
        case DeliverSessionEnded():
            return Received("stream_end", _ended(event))
        case SystemMessage(text=text):
            return Received("system", text)
        case UserMessage(text=text):
            return Received("user", text)
        case UnknownEvent(tag=tag):
            return Received(tag, "[unknown]")
        case _:
            return None


def _ended(event: DeliverSessionEnded) -> str:
    shown = f"[session: {_OUTCOMES[event.outcome]}]"
    match event.outcome:
        case "completed" | "quota" if event.message:
            return f"{shown} {event.message}"
        case "execution_error" if event.message:
            return f"{shown} {', '.join(event.message.splitlines())}"
        case _:
            return shown


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
