"""Lines of the watch."""

from __future__ import annotations

from typing import assert_never

from cuggino.events import (
    HookFailed,
    NotificationFailed,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditInterrupted,
    WatchAuditStarted,
    WatchBacklogWaiting,
    WatchCandidate,
    WatchDiskFull,
    WatchFollowDelayed,
    WatchFollowed,
    WatchFollowHealed,
    WatchForgeWaiting,
    WatchIssueAnswered,
    WatchIssueReported,
    WatchItemCompleted,
    WatchItemHeld,
    WatchItemImported,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchItemSkipped,
    WatchLanded,
    WatchLanding,
    WatchLoopEvent,
    WatchPlaced,
    WatchPlaceGone,
    WatchPolling,
    WatchProcessingItem,
    WatchProposal,
    WatchProposed,
    WatchReportFailed,
    WatchSentBack,
    WatchSlotPrepared,
    WatchSlotsChanged,
    WatchSourceFailed,
    WatchSpecIssueWaiting,
    WatchTbdItemFound,
    WatchTrunkMoved,
    WatchWorkers,
    WatchWorkKept,
)
from cuggino_cli.screen.fragments import Shown, always, calling, verbose
from cuggino_cli.screen.text import clip, flat, format_pause

_MOST_NAMES = 8
_LONGEST_NAME = 60


def watch_shown(event: WatchLoopEvent) -> Shown | None:
    """Return the line of the event; None for an unknown one."""
    match event:
        case WatchBacklogWaiting(proposals=count) if count:
            what = "a pull request" if count == 1 else f"{count} pull requests"
            return calling(f"[Watch] Waiting for {what}, or for new items...")
        case WatchBacklogWaiting():
            return calling("[Watch] Backlog empty, waiting for new items...")
        case WatchSpecIssueWaiting():
            return calling("[Watch] Spec issue detected, waiting for resolution...")
        case WatchProcessingItem(filename=filename, slot=slot):
            where = f" (slot {slot})" if slot else ""
            return always("watch", f"[Watch] Processing: {filename}{where}")
        case WatchItemCompleted(filename=filename, checked=checked):
            how = ", unchecked" if checked is False else ""
            return always("watch", f"[Watch] Completed{how}: {filename}")
        case WatchItemRetained(filename=filename):
            retained = f"[Watch] Retained: {filename} (content changed during loop)"
            return always("watch", retained)
        case WatchItemRetry(login=True, message=message, retry_in=pause):
            again = f"tried again every {format_pause(pause)}, or when the watch is restarted"
            return calling(f"[Watch] Log in to continue ({again}): {message}", "problem")
        case WatchItemRetry():
            return always("warning", _retry(event))
        case WatchItemParked(filename=filename, reason=reason):
            return calling(f"[Watch] Parked: {filename}: {reason}", "problem")
        case WatchItemSkipped(filename=filename, reason=reason):
            return always("warning", f"[Watch] Skipped: {filename}: {reason}")
        case WatchItemHeld(filename=filename, reason=reason):
            return always("warning", f"[Watch] Held: {filename}: {reason}")
        case WatchSlotPrepared(filename=filename, slot=slot, base=base, worker=worker):
            at = f" of {flat(worker)}" if worker else ""
            ready = f"[Watch] Slot {slot}{at} is ready for {filename}, on {base[:7]}"
            return always("watch", ready)
        case WatchPlaced(filename=filename, slot=slot, worker=worker):
            return always("watch", f"[Watch] Slot {slot} is on {flat(worker)}, for {filename}")
        case WatchPlaceGone(slot=slot, worker=worker, reason=reason):
            gone = f"[Watch] {flat(worker)} is gone ({flat(reason)})"
            return always("warning", f"{gone}; slot {slot} continues elsewhere")
        case WatchWorkers():
            return _workers(event)
        case WatchWorkKept(ref=ref, slot=slot, reason=reason):
            return always("warning", f"[Watch] Work in slot {slot} kept as {ref}: {reason}")
        case WatchSlotsChanged(active=active, slots=slots, reason=reason):
            return always("warning", f"[Watch] Slots at work: {active} of {slots}: {reason}")
        case WatchCandidate() | WatchLanding() | WatchLanded() | WatchSentBack():
            return _landing(event)
        case WatchFollowed(branch=branch, commit=commit):
            return always("watch", f"[Watch] {branch} is at {commit[:7]}")
        case WatchFollowDelayed(branch=branch, commit=commit, reason=reason, paths=paths):
            waits = f"[Watch] {branch} cannot follow to {commit[:7]} yet: {reason}"
            return always("warning", f"{waits}{_named(paths)}")
        case WatchFollowHealed(branch=branch, restored=restored, kept=kept):
            healed = f"{restored} files of {branch} that a killed process had half moved"
            return always("warning", f"[Watch] Put back: {healed}; kept as {kept}")
        case WatchDiskFull(message=message, retry_in=pause):
            return always("error", f"[Watch] {message}; tried again in {format_pause(pause)}")
        case WatchTrunkMoved(commit=commit, reason=reason):
            return always("watch", f"[Watch] Trunk is at {commit[:7]}: {reason}")
        case WatchPolling(folder=folder, reason=reason):
            return always("warning", f"[Watch] Polling {folder}: {reason}")
        case NotificationFailed(message=message):
            return always("warning", f"[Watch] Notification failed: {message}")
        case WatchAuditFailed(message=message):
            return always("warning", f"[Watch] Audit agent failed: {message}")
        case WatchAuditStarted():
            return always("audit", "[Watch] Starting audit agent...")
        case WatchAuditEnded():
            return always("audit", "[Watch] Audit agent finished.")
        case WatchAuditInterrupted():
            return always("audit", "[Watch] Audit agent interrupted, work arrived.")
        case WatchTbdItemFound(filename=filename):
            return always("finding", f"[Watch] TBD item found: {filename}")
        case _:
            return _outside(event)


def _outside(event: WatchLoopEvent) -> Shown | None:
    """Return the line of what happens in trackers, pull requests and hooks."""
    match event:
        case WatchItemImported(filename=filename, source=source, change=change, reason=reason):
            why = f": {flat(reason)}" if reason else ""
            line = f"[Watch] {_CHANGES[change]} from {source}: {filename}{why}"
            return always("warning" if change == "held" else "watch", line)
        case WatchSourceFailed(source=source, message=message, retry_in=pause):
            again = f"read again in {format_pause(pause)}"
            return always("warning", f"[Watch] Source {source}: {flat(message)}; {again}")
        case WatchForgeWaiting(forge=forge, doing=doing, message=message, retry_in=pause):
            again = f"again in {format_pause(pause)}"
            return always("warning", f"[Watch] {forge}: {flat(doing)}: {flat(message)}; {again}")
        case WatchIssueReported(filename=filename, state=state, url=url):
            return always("watch", f"[Watch] Reported: {filename} is {state}, at {flat(url)}")
        case WatchReportFailed(filename=filename, message=message):
            return always("warning", f"[Watch] Not reported: {filename}: {flat(message)}")
        case WatchIssueAnswered(filename=filename, author=author):
            return always("watch", f"[Watch] Answered: {filename}, by {flat(author)}")
        case WatchProposed(filename=filename, number=number, url=url, is_new=is_new):
            done = "Proposed" if is_new else "Proposed again"
            return always("watch", f"[Watch] {done}: {filename} as #{number} ({flat(url)})")
        case WatchProposal(filename=filename, number=number, state=state, message=message):
            why = f": {flat(message)}" if message else ""
            line = f"[Watch] #{number} is {_STATES[state]} ({filename}){why}"
            is_well = state in ("pending", "green", "queued")
            return always("watch" if is_well else "warning", line)
        case HookFailed(hook=hook, message=message):
            return always("warning", f"[Watch] Hook {hook}: {flat(message)}")
        case _:
            return None


_CHANGES = {
    "new": "Imported",
    "updated": "Updated",
    "held": "Held",
    "released": "Released",
    "kept": "Not updated",
    "removed": "Removed",
}
_STATES = {
    "pending": "being checked",
    "green": "green",
    "red": "red",
    "queued": "waiting to be merged",
    "blocked": "blocked",
    "taken-over": "taken over",
}


def _workers(event: WatchWorkers) -> Shown:
    count = len(event.workers)
    free = f"{event.free} of {event.places} places free"
    now = f"{count} worker{'' if count == 1 else 's'}, {free}" if count else "no workers"
    left, joined = _names(event.left), _names(event.joined)
    if left:
        also = f"; joined: {joined}" if joined else ""
        return always("warning", f"[Watch] Workers gone: {left}{also}; {now}")
    if joined:
        return always("watch", f"[Watch] Workers: {joined}; {now}")
    return verbose("watch", f"[Watch] {now}") if count else always("warning", f"[Watch] {now}")


def _names(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST_NAMES
    shown = ", ".join(clip(flat(name), _LONGEST_NAME) for name in names[:_MOST_NAMES])
    return f"{shown} and {more} more" if more > 0 else shown


def _retry(event: WatchItemRetry) -> str:
    if event.review:
        return f"[Watch] Stalled: {event.filename}, once more with its findings: {event.message}"
    attempt = f"attempt {event.attempt} of {event.max_attempts}"
    again = f"again in {format_pause(event.retry_in)}"
    return f"[Watch] Failed: {event.filename} ({attempt}, {again}): {event.message}"


def _landing(event: WatchCandidate | WatchLanding | WatchLanded | WatchSentBack) -> Shown:
    name = event.filename
    match event:
        case WatchCandidate(commit=commit, approved=False):
            return always(
                "warning", f"[Watch] Not approved, so it does not land: {name} ({commit[:7]})"
            )
        case WatchCandidate(commit=commit):
            return always("watch", f"[Watch] Candidate: {name} ({commit[:7]})")
        case WatchLanding(commit=commit, trunk=trunk):
            return always("watch", f"[Watch] Landing: {name} ({commit[:7]} on {trunk[:7]})")
        case WatchLanded(nothing=True):
            return always("watch", f"[Watch] Landed: {name}: nothing to do, it was there already")
        case WatchLanded(commit=commit, branch=branch):
            where = f" on {branch}" if branch else ""
            return always("watch", f"[Watch] Landed: {name} as {commit[:7]}{where}")
        case WatchSentBack(reason=reason, paths=paths, returns=returns):
            why = f"[Watch] Sent back: {name} ({_RETURNED[reason]}, return {returns})"
            return always("warning", f"{why}{_named(paths)}")
        case _ as never:
            assert_never(never)


_RETURNED = {
    "conflict": "conflict with what has landed",
    "check": "check failed after the merge",
    "setup": "setup failed after the merge",
    "changed-files": "check changes tracked files",
    "ci": "a job of its pull request failed",
    "review": "a review asks for changes",
}


def _named(paths: tuple[str, ...]) -> str:
    return f": {', '.join(map(flat, paths))}" if paths else ""
