"""The sentence of each event, once for all views.

    from cuggino.events import PauseAsked
    from cuggino.runs.words import words

    words(PauseAsked())  # Words(title="Control", text="Pausing after this stage", tone="caution")

A terminal prints `[title] text` in the color of the tone, a report `text` behind its title, a
notification the text alone. Stamps, colors, blank lines and the verbosity are the view's.
"""

from __future__ import annotations

import re
from dataclasses import replace

from cuggino import events as ev
from cuggino.runs.words.agent import agent_words, marker_words, tool_text
from cuggino.runs.words.amounts import (
    countdown,
    format_duration,
    format_pause,
    format_time,
    format_tokens,
    full_duration,
    short_number,
)
from cuggino.runs.words.base import Least, Tone, Words, counted, often
from cuggino.runs.words.coding import coding_words
from cuggino.runs.words.deliver import SESSION_ENDS, deliver_words, quota_wait_words, standing
from cuggino.runs.words.plan_build import plan_build_words
from cuggino.runs.words.supervision import supervision_words
from cuggino.runs.words.table import plain_words
from cuggino.runs.words.watch import RETURN_REASONS, sent_back_text, watch_words

SILENT: tuple[type[ev.Event], ...] = (
    ev.MessageDelta,
    ev.PingEvent,
    ev.UsageUpdate,
    ev.JournalEvent,
    ev.UnknownEvent,
)
"""The events without a sentence: pieces of others, heartbeats, and those of the journal."""


_OF_RUNS = (
    (re.compile(r"(.+-)?attempt-\d+"), "Attempts"),
    (re.compile(r"task-\d+\.\d+"), "Hands"),
    (re.compile(r"run-[\da-f]{8}"), "Hands"),
)
"""The names of what lands but is no item of a watch, and the source of such events."""
_OF_BRANCH = (
    *(ev.WatchFollowed, ev.WatchFollowDelayed, ev.WatchFollowHealed),
    ev.WatchTrunkMoved,
)


def words(event: ev.Event) -> Words | None:
    """Return the sentence of the event; None if it has none."""
    sentence = _words(event)
    if sentence is None or not isinstance(event, ev.WatchLoopEvent):
        return sentence
    if isinstance(event, _OF_BRANCH):
        return replace(sentence, title="Branch")
    name = str(getattr(event, "filename", ""))
    found = (title for names, title in _OF_RUNS if names.fullmatch(name))
    return replace(sentence, title=next(found, sentence.title))


def _words(event: ev.Event) -> Words | None:
    if (sentence := plain_words(event)) is not None:
        return sentence
    match event:
        case ev.LlmAgentEvent():
            return agent_words(event)
        case ev.LlmMarkerEvent():
            return marker_words(event)
        case ev.LoopPhaseEvent():
            return coding_words(event)
        case ev.SupervisionEvent():
            return supervision_words(event)
        case ev.WatchLoopEvent():
            return watch_words(event)
        case ev.DeliverEvent():
            return deliver_words(event)
        case ev.PlanBuildEvent():
            return plan_build_words(event)
        case _:
            return None


__all__ = [
    "RETURN_REASONS",
    "SESSION_ENDS",
    "SILENT",
    "Least",
    "Tone",
    "Words",
    "countdown",
    "counted",
    "format_duration",
    "format_pause",
    "format_time",
    "format_tokens",
    "full_duration",
    "often",
    "quota_wait_words",
    "sent_back_text",
    "short_number",
    "standing",
    "tool_text",
    "words",
]
