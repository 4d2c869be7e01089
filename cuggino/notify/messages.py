"""The messages about events and about the end of a run or a night."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from cuggino import events as ev
from cuggino.config import Occasion
from cuggino.domain import cut_at_end
from cuggino.errors import CugginoError, error_outcome
from cuggino.notify.night import Night
from cuggino.runs.words import words

BODY_LIMIT = 1500
"""Characters of a message; an agent's error can be long."""

_TITLE_LIMIT = 150
_ANSWER = "Answer with `cuggino issues`."

_ENDS: Mapping[str, str] = {
    "approved": "Approved",
    "unchecked": "Approved, unchecked",
    "all_passed": "Passed",
    "all_verified": "Verified",
    "planned": "Planned",
    "failed": "Failed",
    "spec_issue": "A spec issue waits for you",
    "max_iterations": "Not approved",
    "quota": "The agent's usage limit is reached",
    "budget": "The budget is spent",
    "stalled": "Stopped without progress",
    "blocked": "Everything left is blocked",
    "interrupted": "Interrupted",
}
_OCCASIONS: Mapping[ev.RunOutcome, Occasion] = {
    "spec_issue": "spec_issue",
    "quota": "quota",
    "budget": "budget",
}
_LOOKS_LIKE = str.maketrans({"<": "‹", ">": "›", "`": "'", "*": "∗", "[": "(", "]": ")"})
_BREAK = "\u2060"
"""An invisible character that breaks up mentions and links."""


class Message(NamedTuple):
    """A notification, and the occasions on which it is sent."""

    occasions: frozenset[Occasion]
    title: str
    body: str


def message_for(event: ev.Event, night: Night | None = None) -> Message | None:
    """Return the message about an event within a run, or None for most of them.

    Its title is the sentence of the event, with the title of the item instead of its file name.
    """
    night = night or Night()
    match event:
        case ev.WatchSpecIssueWaiting():
            asked = [*(question.title for question in night.state.questions), _ANSWER]
            return _sentence(event, "spec_issue", *asked, "Until then nothing continues.")
        case ev.LoopSpecIssue(item=str(item)):
            asked = [f"Item: {night.state.title_of(item)}", _ANSWER]
            return _sentence(event, "spec_issue", *asked, "The other items continue.")
        case ev.WaitingStarted(until=ev.PersonAnswers(approves=str(kind))) if kind:
            return _sentence(event, "spec_issue")
        case ev.WaitingStarted(until=ev.PersonAnswers(question=question)):
            return _sentence(event, "spec_issue", question, _ANSWER)
        case ev.WatchItemRetry(login=True):
            return _sentence(event, "login")
        case ev.WatchItemCompleted(filename=name):
            return _sentence(event, "item", names=(name, night.state.title_of(name)))
        case ev.WatchItemParked(filename=name):
            where = "It is in .cuggino/parked/ now."
            return _sentence(event, "parked", where, names=(name, night.state.title_of(name)))
        case ev.RateLimited(overage=True) | ev.RateLimited(status="rejected") | ev.QuotaWaiting():
            return _sentence(event, "quota")
        case ev.BudgetWarning():
            return _sentence(event, "budget")
        case _:
            return None


def _sentence(
    event: ev.Event, occasion: Occasion, *advice: str, names: tuple[str, str] = ("", "")
) -> Message:
    """Return the sentence of the event as a title; all of it is in the body if that is cut."""
    spoken = words(event)
    text = spoken.text.replace(*names, 1) if spoken is not None else ""
    title = text.partition("\n")[0].replace(": # ", ": ")
    is_whole = title == text and len(title) <= _TITLE_LIMIT
    return _message(occasion, title, "\n".join([*([] if is_whole else [text]), *advice]))


def limit_of(event: ev.RateLimited | ev.QuotaWaiting) -> tuple[str, datetime | None]:
    """Return what events about the same limit have in common."""
    match event:
        case ev.RateLimited(overage=True):
            kind = "overage"
        case ev.QuotaWaiting(planned=True):
            kind = "planned"
        case _:
            kind = "limit"
    return kind, event.resets_at


def night_message(night: Night, now: datetime, *, ended: bool) -> Message:
    """Return the summary of a night, after which the backlog is empty or work continues."""
    title = "The backlog is worked through" if ended else "So far"
    lines = [] if ended or not night.working else [f"At work: {night.working}"]
    body = "\n".join([*lines, *night.facts(now)])
    return _message("end", f"{title}: {night.counts()}", body)


def result_message(result: ev.RunResult, night: Night, now: datetime, *, subject: str) -> Message:
    """Return the message about the result of a run."""
    return _end(result.outcome, result.message, night, now, subject=subject)


def error_message(error: Exception, night: Night, now: datetime, *, subject: str) -> Message | None:
    """Return the message about the error that ended a run; None if a person interrupted it."""
    outcome = error_outcome(error)
    if outcome == "interrupted":
        return None
    told = error.message if isinstance(error, CugginoError) else str(error)
    hint = error.hint if isinstance(error, CugginoError) else None
    reason = "\n".join(filter(None, (told or type(error).__name__, hint)))
    return _end(outcome, reason, night, now, subject=subject)


def _end(
    outcome: ev.RunOutcome, reason: str, night: Night, now: datetime, *, subject: str
) -> Message:
    occasions: set[Occasion] = {"end"}
    if outcome not in ("approved", "planned"):
        occasions.add("failed")
    if outcome in _OCCASIONS:
        occasions.add(_OCCASIONS[outcome])
    subject = night.counts() if night.state.kind == "watch" else subject
    end = _ENDS[ev.shown_state(outcome, night.state.checked, night.state.reason)]
    title = f"{end}: {subject}" if subject else end
    body = "\n".join(filter(None, [reason, *night.facts(now)]))
    return Message(frozenset(occasions), title, body)


def _message(occasion: Occasion, title: str, body: str) -> Message:
    return Message(frozenset({occasion}), title, body)


def plain(text: str, limit: int = BODY_LIMIT) -> str:
    """Return the text without control characters except newlines, cut to the limit.

    Characters that a service could take for markup, a mention or a link become lookalikes.
    """
    kept = "".join(c for c in text if c == "\n" or c.isprintable())
    kept = kept.translate(_LOOKS_LIKE).replace("@", f"@{_BREAK}")
    kept = re.sub(r":(?=//)", f":{_BREAK}", kept)
    return cut_at_end(kept, limit)


def one_line(text: str) -> str:
    """Return the text as a title: plain, in one line."""
    return plain(" ".join(text.split()), _TITLE_LIMIT)
