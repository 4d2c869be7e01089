"""Unusual events of a run, each by its sentence."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias

from cuggino import events as ev
from cuggino.report.model import Notice, Tone
from cuggino.report.outcomes import TONES
from cuggino.runs.state import later
from cuggino.runs.words import words
from cuggino.storage.journal import Entry


class Notices:
    """The unusual events; all events of one wait for a usage limit become one notice."""

    def __init__(self) -> None:
        self._notices: list[Notice] = []
        self._waits: dict[tuple[str | None, str | None], int] = {}
        """The index of the current wait of each stage and item."""

    def add(self, entry: Entry) -> None:
        event = entry.event
        waits = (entry.stage, event.item if isinstance(event, ev.SupervisionEvent) else None)
        match event:
            case ev.QuotaWaiting() if waits in self._waits:
                self._end(self._waits[waits], entry.at)
            case ev.QuotaWaiting():
                self._waits[waits] = len(self._notices)
                self._append(entry, entry.at)
            case ev.QuotaLifted() if waits in self._waits:
                self._end(self._waits.pop(waits), entry.at, describe(event))
            case ev.RunContinued() | ev.RunEnded():
                self._waits.clear()
            case _ if is_noticed(event):
                self._append(entry, _end_of_pause(event, entry.at))
            case _:
                pass

    def _append(self, entry: Entry, until: datetime | None) -> None:
        described = describe(entry.event)
        if described is not None:
            kind, tone, text = described
            stage = None if isinstance(entry.event, ev.WatchLoopEvent) else entry.stage
            item = _item_of(entry.event)
            self._notices.append(
                Notice(
                    at=entry.at,
                    until=until,
                    stage=stage,
                    item=item,
                    kind=kind,
                    tone=tone,
                    text=text,
                )
            )

    def _end(self, place: int, at: datetime, described: _Described | None = None) -> None:
        notice = self._notices[place]
        text = f"{notice.text}\n{described[2]}" if described is not None else notice.text
        self._notices[place] = replace(notice, until=at, text=text)

    @property
    def count(self) -> int:
        return len(self._notices)

    def result(self) -> tuple[Notice, ...]:
        return tuple(self._notices)


def _item_of(event: ev.Event) -> str:
    """Return the item of an event, unless its own text names it."""
    return "" if isinstance(event, ev.WatchLoopEvent | ev.RunStarted) else event.item or ""


def _end_of_pause(event: ev.Event, at: datetime) -> datetime | None:
    if isinstance(event, ev.AgentRetry | ev.WatchItemRetry):
        return later(at, event.retry_in)
    return None


_WORSE: Final[tuple[Tone, ...]] = ("neutral", "good", "warning", "bad")
_NOTED: Final = (
    *(ev.Forecast, ev.SandboxChosen, ev.Baseline, ev.RunResumed, ev.Steered),
    *(ev.ChatAnswered, ev.WatchIssueAnswered, ev.WatchProposed, ev.WatchWorkers, ev.DeliverEnded),
)
"""Events that are notices although nothing is wrong."""
_ENDS_OF_DELIVERIES: Final = ("all_blocked", "max_iterations", "max_retries_exceeded", "stalled")
"""Ends that the message of the run does not cover."""
_ELSEWHERE: Final = (
    *(ev.GuardDenied, ev.SessionEnded, ev.LlmMarkerEvent),  # in their stage
    ev.LoopApproved,  # the result
    *(ev.ApprovalBlocked, ev.CheckWeakened, ev.LoopSpecIssue, ev.LoopStalled),  # findings
    *(ev.LoopMaxIterations, ev.WatchItemHeld, ev.WatchItemParked),  # outcomes of items
    *(ev.BuildVerified, ev.JobVerified, ev.JobBlocked),
    *(ev.QuotaWaiting, ev.QuotaLifted),  # one notice together
    *(ev.PauseAsked, ev.RunPaused, ev.WaitingStarted),  # their end is one
)
"""Events that the report shows in another place."""


_Described: TypeAlias = tuple[str, Tone, str]


def describe(event: ev.Event) -> _Described | None:
    """Return title, tone and text of an event, or None for one without a sentence."""
    spoken = words(event)
    if spoken is None:
        return None
    telling = (spoken, *(line for line in spoken.more if line.tone in TONES))
    tone = max((TONES.get(line.tone, "neutral") for line in telling), key=_WORSE.index)
    if isinstance(event, ev.ControlEvent) and spoken.tone == "caution":
        tone = "neutral"  # a person asked for it
    return spoken.title or "Loop", tone, "\n".join(line.text for line in telling)


def is_noticed(event: ev.Event) -> bool:
    """Return whether the event is unusual, and shown in no other place of the report."""
    spoken = words(event)
    if spoken is None or spoken.verbosity == "verbose" or _is_elsewhere(event):
        return False
    is_telling = any(TONES.get(line.tone) in ("warning", "bad") for line in spoken.lines)
    return is_telling or isinstance(event, _NOTED)


def _is_elsewhere(event: ev.Event) -> bool:
    match event:
        case ev.DeliverEnded(reason=reason):
            return reason not in _ENDS_OF_DELIVERIES
        case ev.DeliverSessionEnded(outcome=outcome):
            return outcome == "quota"  # covered by the wait
        case ev.PlanBuildEnded():
            return event.success
        case _:
            return isinstance(event, _ELSEWHERE)
