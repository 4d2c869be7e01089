"""Sentences of the watch: items, slots, landings, trackers and pull requests."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cuggino import events as ev
from cuggino.runs.words.amounts import format_pause
from cuggino.runs.words.base import Words, clip, counted, flat, listed, often

RETURN_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "conflict": "conflict with what has landed",
        "check": "check failed after the merge",
        "setup": "setup failed after the merge",
        "changed-files": "check changes tracked files",
        "ci": "a job of its pull request failed",
        "review": "a review asks for changes",
    }
)
"""The reasons why an item is sent back."""

_CHANGES: Final = {
    "new": "Imported",
    "updated": "Updated",
    "held": "Held",
    "released": "Released",
    "kept": "Not updated",
    "removed": "Removed",
}
_STATES: Final = {
    "pending": "being checked",
    "green": "green",
    "red": "red",
    "queued": "waiting to be merged",
    "blocked": "blocked",
    "taken-over": "taken over",
}
_FINE: Final = ("pending", "green", "queued")
_MOST_NAMES = 8


def sent_back_text(returns: int, reason: str) -> str:
    """Return `sent back once: conflict with what has landed`."""
    why = RETURN_REASONS.get(reason, reason)
    return f"sent back {often(returns)}{f': {why}' if why else ''}"


def watch_words(event: ev.WatchLoopEvent) -> Words | None:
    """Return the sentence of an event of the watch; None for an unknown one."""
    match event:
        case ev.WatchBacklogWaiting(proposals=count) if count:
            what = "a pull request" if count == 1 else f"{count} pull requests"
            return _watch(f"Waiting for {what}, or for new items...")
        case ev.WatchBacklogWaiting():
            return _watch("Backlog empty, waiting for new items...")
        case ev.WatchProcessingItem():
            where = f" (slot {event.slot})" if event.slot else ""
            name = event.filename
            what = event.title if event.title.startswith(f"{name}: ") else name  # a task of hands
            return _watch(f"Processing: {what}{where}")
        case ev.WatchItemCompleted():
            how = ", unchecked" if event.checked is False else ""
            return _watch(f"Completed{how}: {event.filename}")
        case ev.WatchItemRetry(login=True):
            pause = format_pause(event.retry_in)
            again = f"tried again every {pause}, or when the watch is restarted"
            return Words("Watch", f"Log in to continue ({again}): {event.message}", "problem")
        case ev.WatchItemRetry():
            return _warning(_retry(event))
        case ev.WatchDiskFull():
            again = f"tried again in {format_pause(event.retry_in)}"
            return Words("Watch", f"{event.message}; {again}", "error")
        case _:
            return _slots(event) or _landing(event) or _outside(event) or _chat(event)


def _chat(event: ev.WatchLoopEvent) -> Words | None:
    """Return the sentence about what a person was asked, and has said."""
    match event:
        case ev.ChatAsked():
            return Words("Chat", f"Asked on {event.channel}: {flat(event.title)}")
        case ev.ChatAnswered():
            by = f", by {flat(event.sender)}" if event.sender else ""
            return Words("Chat", f"Answered on {event.channel}{by}: {flat(event.text)}")
        case ev.ChatRefused():
            by = f", by {flat(event.sender)}" if event.sender else ""
            text = f"Refused on {event.channel}{by}: {flat(event.reason)}"
            return Words("Chat", text, "warning")
        case _:
            return None


def _watch(text: str) -> Words:
    return Words("Watch", text)


def _warning(text: str) -> Words:
    return Words("Watch", text, "warning")


def _retry(event: ev.WatchItemRetry) -> str:
    if event.review:
        return f"Stalled: {event.filename}, once more with its findings: {event.message}"
    attempt = f"attempt {event.attempt} of {event.max_attempts}"
    again = f"again in {format_pause(event.retry_in)}"
    return f"Failed: {event.filename} ({attempt}, {again}): {event.message}"


def _slots(event: ev.WatchLoopEvent) -> Words | None:
    """Return the sentence about slots and workers."""
    match event:
        case ev.WatchSlotPrepared():
            at = f" of {flat(event.worker)}" if event.worker else ""
            where = f"Slot {event.slot}{at}"
            return _watch(f"{where} is ready for {event.filename}, on {event.base[:7]}")
        case ev.WatchPlaced():
            return _watch(f"Slot {event.slot} is on {flat(event.worker)}, for {event.filename}")
        case ev.WatchPlaceGone():
            gone = f"{flat(event.worker)} is gone ({flat(event.reason)})"
            return _warning(f"{gone}; slot {event.slot} continues elsewhere")
        case ev.WatchWorkers():
            return _workers(event)
        case _:
            return None


def _workers(event: ev.WatchWorkers) -> Words:
    free = f"{event.free} of {event.places} places free"
    now = f"{counted(len(event.workers), 'worker')}, {free}" if event.workers else "no workers"
    left, joined = (
        listed((clip(name, 60) for name in names), most=_MOST_NAMES)
        for names in (event.left, event.joined)
    )
    if left:
        also = f"; joined: {joined}" if joined else ""
        return Words("Cluster", f"Workers gone: {left}{also}; {now}", "warning")
    if joined:
        return Words("Cluster", f"Workers: {joined}; {now}")
    if event.workers:
        return Words("Cluster", now, "quiet", "verbose")
    return Words("Cluster", now, "warning")


def _landing(event: ev.WatchLoopEvent) -> Words | None:
    """Return the sentence about a candidate, its landing and the user's branch."""
    match event:
        case ev.AttemptChosen():
            why = f": {flat(event.reason)}" if event.reason else ""
            others = f", of {event.passed} that passed" if event.passed > 1 else ""
            return _watch(f"Chosen: {event.filename}{others}{why}")
        case ev.AttemptLost():
            kept = f"; its work is in {event.ref}" if event.ref else ""
            return _warning(f"Lost: {event.filename}: {flat(event.reason)}{kept}")
        case ev.WatchCandidate(approved=False):
            what = f"{event.filename} ({event.commit[:7]})"
            return _warning(f"Not approved, so it does not land: {what}")
        case ev.WatchCandidate():
            return _watch(f"Candidate: {event.filename} ({event.commit[:7]})")
        case ev.WatchLanded(nothing=True):
            return _watch(f"Landed: {event.filename}: nothing to do, it was there already")
        case ev.WatchLanded():
            where = f" on {event.branch}" if event.branch else ""
            return _watch(f"Landed: {event.filename} as {event.commit[:7]}{where}")
        case ev.WatchSentBack():
            why = f"{RETURN_REASONS[event.reason]}, return {event.returns}"
            return _warning(f"Sent back: {event.filename} ({why}){_named(event.paths)}")
        case ev.WatchFollowDelayed():
            waits = f"{event.branch} cannot follow to {event.commit[:7]} yet: {event.reason}"
            return _warning(f"{waits}{_named(event.paths)}")
        case _:
            return None


def _named(paths: tuple[str, ...]) -> str:
    return f": {', '.join(map(flat, paths))}" if paths else ""


def _outside(event: ev.WatchLoopEvent) -> Words | None:
    """Return the sentence about trackers, pull requests and hooks."""
    match event:
        case ev.WatchItemImported():
            why = f": {flat(event.reason)}" if event.reason else ""
            text = f"{_CHANGES[event.change]} from {event.source}: {event.filename}{why}"
            return _warning(text) if event.change == "held" else _watch(text)
        case ev.WatchSourceFailed():
            again = f"read again in {format_pause(event.retry_in)}"
            return _warning(f"Source {event.source}: {flat(event.message)}; {again}")
        case ev.WatchForgeWaiting():
            again = f"again in {format_pause(event.retry_in)}"
            what = f"{event.forge}: {flat(event.doing)}: {flat(event.message)}"
            return _warning(f"{what}; {again}")
        case ev.WatchIssueReported():
            return _watch(f"Reported: {event.filename} is {event.state}, at {flat(event.url)}")
        case ev.WatchReportFailed():
            return _warning(f"Not reported: {event.filename}: {flat(event.message)}")
        case ev.WatchIssueAnswered():
            return _watch(f"Answered: {event.filename}, by {flat(event.author)}")
        case ev.WatchProposed():
            done = "Proposed" if event.is_new else "Proposed again"
            return _watch(f"{done}: {event.filename} as #{event.number} ({flat(event.url)})")
        case ev.WatchProposal():
            why = f": {flat(event.message)}" if event.message else ""
            text = f"#{event.number} is {_STATES[event.state]} ({event.filename}){why}"
            return _watch(text) if event.state in _FINE else _warning(text)
        case ev.HookFailed():
            return _warning(f"Hook {event.hook}: {flat(event.message)}")
        case _:
            return None
