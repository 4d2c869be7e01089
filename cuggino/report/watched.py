"""The items of a watch, from its own journal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from cuggino.domain import Spending
from cuggino.events import (
    Event,
    LoopApproved,
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    RunContinued,
    RunEnded,
    WatchCandidate,
    WatchFollowDelayed,
    WatchFollowed,
    WatchIssueReported,
    WatchItemCompleted,
    WatchItemHeld,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchItemSkipped,
    WatchLanded,
    WatchLanding,
    WatchLoopEvent,
    WatchPlaced,
    WatchPlaceGone,
    WatchProcessingItem,
    WatchProposal,
    WatchProposed,
    WatchSentBack,
    WatchSlotPrepared,
    WatchWorkers,
    WatchWorkKept,
    checked_of,
)
from cuggino.report.model import (
    ItemState,
    KeptWork,
    Landing,
    LandingEnd,
    SlotsReport,
    SlotUse,
    WatchedItem,
)
from cuggino.report.visible import cut
from cuggino.runs.words import RETURN_REASONS
from cuggino.storage.journal import Entry

_RESULTS: Final[tuple[tuple[type, ItemState], ...]] = (
    (LoopApproved, "approved"),
    (LoopSpecIssue, "spec_issue"),
    (LoopMaxIterations, "max_iterations"),
    (LoopStalled, "stalled"),
)
_LONGEST_OUTPUT: Final = 20_000


@dataclass(slots=True)
class _Work:
    """Work in progress on an item."""

    since: datetime
    slot: int
    worker: str = ""


class WatchedItems:
    """Each item that a watch worked on, with its outcome and the cost of its agents.

    With slots, work on several items overlaps, and an event is about its `item`. Without slots, it
    is about the item begun last.
    """

    def __init__(self) -> None:
        self._items: dict[str, WatchedItem] = {}
        self._open: dict[str, _Work] = {}
        self._spent: dict[str, Spending] = {}
        self._unapproved: set[str] = set()
        """Items whose last run has used up its iterations."""
        self._last: datetime | None = None
        self._slots = 0
        self._uses: list[SlotUse] = []
        self._landings: list[Landing] = []
        self._kept: list[KeptWork] = []
        self._delayed = ""
        self._workers: WatchWorkers | None = None
        self._lost: dict[str, None] = {}
        """Names of workers, in order."""

    def add(self, entry: Entry) -> None:
        event, at = entry.event, entry.at
        match event:
            case WatchProcessingItem():
                self._begin(event, at)
            case WatchItemCompleted(filename=name, checked=checked):
                done: ItemState = "approved" if checked is not False else "unchecked"
                done = "max_iterations" if name in self._unapproved else done
                self._settle(name, done, "", at)
            case WatchItemParked(filename=name, reason=reason):
                self._settle(name, "parked", reason, at)
            case WatchItemRetained(filename=name):
                self._settle(name, "edited", "it was edited while it was worked on", at)
            case WatchItemRetry(filename=name, message=message):
                self._settle(name, "failed", message, at)
            case WatchItemSkipped(filename=name, reason=reason):
                self._put(name, at, state="skipped", reason=reason, end=at)
            case RunContinued() | RunEnded():
                self._interrupt(self._last or at)
            case WatchLoopEvent():
                self._land(event, at)
            case _:
                self._work(entry, event)
        self._last = at

    def _begin(self, event: WatchProcessingItem, at: datetime) -> None:
        name, slot = event.filename, event.slot
        for other, work in list(self._open.items()):
            if slot == work.slot or slot == 0 or other == name:
                self._leave(other, at)
        known = self._items.get(name) or WatchedItem(name=name, start=at)
        self._put(
            name,
            at,
            title=event.title or known.title,
            position=event.position or known.position,
            attempts=known.attempts + 1,
            state="working",
            reason="",
            end=None,
            slot=slot,
            candidate="",
            worker="",
            start=known.start if known.attempts else at,
        )
        self._unapproved.discard(name)
        self._open[name] = _Work(at, slot)
        self._slots = max(self._slots, slot)

    def _work(self, entry: Entry, event: Event) -> None:
        """Count an event of the run of an item."""
        name = event.item or (next(iter(self._open)) if len(self._open) == 1 else "")
        if name not in self._items:
            return
        state = next((state for cls, state in _RESULTS if isinstance(event, cls)), None)
        if state is not None:
            state = "unchecked" if checked_of(event) is False else state
            reason = getattr(event, "content", "") or getattr(event, "message", "")
            self._put(name, entry.at, state=state, reason=reason)
            if state == "max_iterations":
                self._unapproved.add(name)
            if state == "spec_issue":
                self._leave(name, entry.at)
        if entry.stage is not None:
            before = self._spent.get(name, Spending())
            after = before.add(event)
            if after is not before:
                self._spent[name] = after
                self._put(
                    name,
                    entry.at,
                    cost_usd=after.cost_usd,
                    cost_estimated=after.cost_estimated,
                    usage=after.usage,
                )

    def _land(self, event: WatchLoopEvent, at: datetime) -> None:
        """Record an event of slots or of landing."""
        match event:
            case WatchWorkers(left=left):
                self._workers = event
                self._slots = max(self._slots, 1)
                self._lost |= dict.fromkeys(left)
            case WatchPlaced(filename=name, worker=worker):
                self._put_on(name, worker, at)
            case WatchPlaceGone(filename=name, slot=slot, worker=worker):
                self._lost[worker] = None
                self._lose(name, worker, at)
            case WatchSlotPrepared(filename=name, slot=slot):
                self._slots = max(self._slots, slot)
                if name not in self._open:  # an item that was sent back continues
                    known = self._items.get(name)
                    attempts = (known.attempts if known else 0) + 1
                    self._put(
                        name, at, state="working", reason="", end=None, slot=slot, attempts=attempts
                    )
                    self._open[name] = _Work(at, slot)
                if event.worker:
                    self._put_on(name, event.worker, at)
            case WatchCandidate(filename=name, commit=commit):
                self._settle(name, "queued" if event.approved else "max_iterations", "", at)
                # A resumed attempt is not another one, and others were those of an earlier watch.
                self._put(name, at, candidate=commit, slot=event.slot, attempts=event.attempt)
            case WatchLanding(filename=name):
                self._put(name, at, state="landing")
                self._landings.append(_landing(event, at))
            case WatchLanded(filename=name, commit=commit):
                branch = event.branch or ""
                end: LandingEnd = "nothing" if event.nothing else "landed"
                self._landed(name, event.trunk_was, at, ending=end, commit=commit, branch=branch)
                self._settle(name, "landed", "", at)
                self._put(
                    name, at, landed=commit, branch=branch, nothing=event.nothing, candidate=""
                )
                if event.url:
                    self._put(name, at, pull_request=event.url)
            case WatchProposed(filename=name, commit=commit, branch=branch, number=number, url=url):
                self._landed(name, "", at, ending="proposed", commit=commit, branch=branch)
                self._settle(name, "proposed", f"#{number}: {url}", at)
                self._put(name, at, pull_request=url)
            case WatchProposal(filename=name, number=number, state=state, message=message):
                known = self._items.get(name)
                if known is not None and known.state == "proposed":
                    why = f" ({message})" if message else ""
                    words = f"#{number} is {state.replace('-', ' ')}{why}"
                    self._put(name, at, reason=words)
            case WatchIssueReported(filename=name, url=url) if name in self._items:
                self._put(name, at, issue=url)
            case WatchSentBack(filename=name, reason=reason, paths=paths, returns=returns):
                output = cut(event.output[-_LONGEST_OUTPUT:], _LONGEST_OUTPUT)
                said = {"output": output, "paths": paths, "returns": returns}
                self._landed(name, "", at, ending=reason, **said)
                named = f": {', '.join(paths)}" if paths else ""
                self._settle(name, "sent_back", f"{RETURN_REASONS[reason]}{named}", at)
                self._put(name, at, returns=returns, candidate="")
            case WatchItemHeld(filename=name, reason=reason) if name not in self._open:
                self._put(name, at, state="held", reason=reason)
            case WatchWorkKept(ref=ref, slot=slot, filename=name, reason=reason):
                kept = KeptWork(at=at, ref=ref, slot=slot, item=name, reason=reason)
                self._kept.append(kept)
            case WatchFollowDelayed(branch=branch, reason=reason, paths=paths):
                named = f": {', '.join(paths)}" if paths else ""
                self._delayed = f"{branch} waits: {reason}{named}"
            case WatchFollowed():
                self._delayed = ""
            case _:
                pass

    def _put_on(self, name: str, worker: str, at: datetime) -> None:
        """Record that a worker works on an item."""
        work = self._open.get(name)
        if work is not None:
            work.worker = worker
            self._put(name, at, worker=worker)

    def _lose(self, name: str, worker: str, at: datetime) -> None:
        """Record that the attempt at an item has lost its worker."""
        work = self._open.get(name)
        if work is None:
            return
        use = SlotUse(
            slot=work.slot,
            item=name,
            start=work.since,
            end=at,
            state="interrupted",
            worker=worker,
            is_lost=True,
        )
        self._uses.append(use)
        seconds = self._items[name].seconds + _between(work.since, at)
        self._put(name, at, worker="", seconds=seconds)
        work.since, work.worker = at, ""

    def _landed(self, name: str, trunk: str, at: datetime, **changes: Any) -> None:
        """Record the end of an item's landing or of its pull request."""
        last = self._landings[-1] if self._landings else None
        if last is not None and last.ending == "running" and last.item == name:
            self._landings[-1] = replace(last, end=at, **changes)
            return
        # The end of a pull request; another item may be landing meanwhile.
        known = self._items.get(name)
        candidate = known.candidate if known else ""
        begun = _landing(WatchLanding(filename=name, commit=candidate, trunk=trunk), at)
        place = len(self._landings) - (last is not None and last.ending == "running")
        self._landings.insert(place, replace(begun, end=at, **changes))

    def _put(self, name: str, at: datetime, **changes: Any) -> None:
        known = self._items.get(name) or WatchedItem(name=name, start=at)
        self._items[name] = replace(known, **changes)

    def _settle(self, name: str, state: ItemState, reason: str, at: datetime) -> None:
        self._leave(name, at, state)
        self._put(name, at, state=state, reason=reason, end=at)

    def _leave(self, name: str, at: datetime, to: ItemState | None = None) -> None:
        """Record that work on an item is over for now, with the new state `to`."""
        work = self._open.pop(name, None)
        if work is None:
            return
        known = self._items[name]
        spent = self._spent.get(name)
        if spent is not None:  # another run of the item has its own sessions
            self._spent[name] = spent.settle()
        state: ItemState = to or ("interrupted" if known.state == "working" else known.state)
        seconds = known.seconds + _between(work.since, at)
        self._items[name] = replace(known, state=state, end=at, seconds=seconds)
        if work.slot:
            self._uses.append(_use(name, work, at, state))

    def _interrupt(self, at: datetime) -> None:
        """Record that all work has stopped."""
        for name in list(self._open):
            self._leave(name, at)
        if self._landings and self._landings[-1].ending == "running":
            last = self._landings[-1]
            self._landings[-1] = replace(last, ending="cut off", end=at)
            self._put(last.item, at, state="queued")

    def result(self, end: datetime, *, running: bool) -> tuple[WatchedItem, ...]:
        """Return the items in the order they were begun, then those never begun."""
        items = dict(self._items)
        for name, work in self._open.items():
            known = items[name]
            state = known.state
            if state == "working" and not running:
                state = "interrupted"
            seconds = known.seconds + _between(work.since, end)
            items[name] = replace(known, state=state, seconds=seconds)
        landing = self._landings[-1] if self._landings else None
        if landing is not None and landing.ending == "running" and not running:
            items[landing.item] = replace(items[landing.item], state="queued")
        return tuple(sorted(items.values(), key=lambda one: not one.attempts))

    def slots(self, end: datetime, count: int, *, running: bool) -> SlotsReport | None:
        """Return the report on the slots, at least `count`; None without slots."""
        count = max(self._slots, count)
        if count < 2 and not self._slots:
            return None
        uses = [*self._uses]
        for name, work in self._open.items():
            state: ItemState = "working" if running else "interrupted"
            uses += [_use(name, work, end, state)] if work.slot else []
        landings = [*self._landings]
        if landings and landings[-1].ending == "running":
            landings[-1] = replace(landings[-1], end=max(end, landings[-1].start))
            if not running:
                landings[-1] = replace(landings[-1], ending="cut off")
        waiting = [one for one in self.result(end, running=running) if one.state == "queued"]
        waiting.sort(key=lambda one: (not one.returns, one.end or end))
        return SlotsReport(
            count=count,
            uses=tuple(uses),
            landings=tuple(landings),
            queue=tuple(one.name for one in waiting),
            kept=tuple(self._kept),
            delayed=self._delayed,
            workers=self._workers.workers if self._workers is not None else None,
            lost=tuple(self._lost),
        )


def _use(name: str, work: _Work, end: datetime, state: ItemState) -> SlotUse:
    return SlotUse(
        slot=work.slot, item=name, start=work.since, end=end, state=state, worker=work.worker
    )


def _landing(event: WatchLanding, at: datetime) -> Landing:
    return Landing(
        item=event.filename,
        candidate=event.commit,
        trunk=event.trunk,
        start=at,
        end=at,
        ending="running",
    )


def _between(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())
