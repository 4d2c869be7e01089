"""Sentences of an agent's session: messages, tools, limits and markers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from pydantic import JsonValue

from cuggino import events as ev
from cuggino.domain import cost_of, window_text
from cuggino.runs.tools import tool_target
from cuggino.runs.words.amounts import format_duration, format_time
from cuggino.runs.words.base import Tone, Words, clip, counted

_PARAMETER = 100
_REASON = 500

_MARKERS: Final[dict[str, Tone]] = {
    "SpecIssue": "problem",
    "Progress": "progress",
    "Done": "success",
    "Approved": "success",
    "PlanComplete": "success",
    "ToBeDiscussed": "discussion",
}
"""The others are `caution` (CUG-132)."""

_ENDINGS: Final[dict[ev.SessionOutcome, str]] = {
    "failed": "Session failed",
    "interrupted": "Session interrupted",
    "max_turns": "Session ended: turn limit reached",
    "budget": "Session ended: budget spent",
    "quota": "Session ended: usage limit reached",
}
_LIMITS: Final = {"rejected": "reached", "allowed": "not reached"}


def agent_words(event: ev.LlmAgentEvent) -> Words | None:
    """Return the sentence of an event of an agent, or None for a frequent one without any."""
    match event:
        case ev.ToolCall():
            return Words("", tool_text(event.name, event.input), "tool", "normal")
        case ev.GuardDenied():
            return Words("Guard", _denied(event), "warning")
        case ev.RateLimited(status="allowed"):
            return Words("Agent", _rate_limit(event), "quiet", "verbose")
        case ev.RateLimited():
            return Words("Agent", _rate_limit(event), "warning")
        case ev.QuotaUsed():
            agent = f"{event.agent}: " if event.agent else ""
            text = f"{agent}{window_text(event)}{_resets(event.resets_at)}"
            if event.nearly:
                return Words("Agent", text, "caution", "normal")
            return Words("Agent", text, "quiet", "verbose")
        case ev.SessionEnded():
            return _session_ended(event)
        case ev.Steered():
            who = "the running agent has" if event.to == "session" else "the next agent gets"
            return Words("Agent", f"{who} your message: {event.text}", "success", "normal")
        case _:
            return None


def marker_words(event: ev.LlmMarkerEvent) -> Words:
    """Return the marker and its content."""
    return Words(event.tag_name(), event.content, _MARKERS.get(event.tag, "caution"), "normal")


def tool_text(
    name: str, tool_input: JsonValue, shorten: Callable[[str], str] = lambda text: text
) -> str:
    """Return `Name: parameter`, or only the name if no input is text (CUG-131).

    `shorten` is applied to the parameter before it is cut.
    """
    parameter = shorten(tool_target(name, tool_input))
    more = "..." if len(parameter) > _PARAMETER else ""
    return f"{name}: {parameter[:_PARAMETER]}{more}" if parameter else name


def _denied(event: ev.GuardDenied) -> str:
    what = clip(event.part, _PARAMETER)
    if not what.startswith(event.tool):
        what = f"{event.tool}: {what}" if what else event.tool
    return f"Denied {what} ({clip(event.reason.strip().partition(chr(10))[0], _REASON)})"


def _rate_limit(event: ev.RateLimited) -> str:
    state = _LIMITS.get(event.status, "near")
    limit = f" ({event.limit})" if event.limit else ""
    overage = ", extra usage is paid for" if event.overage else ""
    return f"Usage limit {state}{limit}{overage}{_resets(event.resets_at)}"


def _resets(at: datetime | None) -> str:
    return f", resets {format_time(at)}" if at is not None else ""


def _session_ended(event: ev.SessionEnded) -> Words:
    """Return failures for everybody; `StageCost` has the cost of a completed session."""
    facts = [cost_of(event)] if event.cost_usd is not None else []
    facts += [counted(event.num_turns, "turn")] if event.num_turns is not None else []
    facts += [format_duration(event.duration)] if event.duration is not None else []
    known = ", ".join(facts)
    if event.outcome == "completed":
        return Words("Agent", known or "Session completed", "quiet", "verbose")
    detail = f" ({known})" if known else ""
    return Words("Agent", f"{_ENDINGS[event.outcome]}{detail}", "warning")
