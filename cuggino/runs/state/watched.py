"""The items of a watch, from its own journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, assert_never

from cuggino import events as ev
from cuggino.domain import Spending, attempted_item
from cuggino.runs.state.values import (
    ItemState,
    KeptWork,
    Landing,
    LandingEnd,
    SlotUse,
    WatchedItem,
)
from cuggino.runs.words import RETURN_REASONS

_RESULTS: Final[tuple[tuple[type, ItemState], ...]] = (
    (ev.LoopApproved, "approved"),
    (ev.LoopSpecIssue, "spec_issue"),
    (ev.LoopMaxIterations, "max_iterations"),
    (ev.LoopStalled, "stalled"),
)
_LONGEST_OUTPUT: Final = 20_000
_NOTHING = Spending()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work in progress on an item."""

    since: datetime
    slot: int
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Each item that a watch worked on, with its outcome and the cost of its agents.

    With slots, work on several items overlaps, and an event is about its `item`. Without slots, it
    is about the item begun last.
    """

    items: Mapping[str, WatchedItem] = field(default_factory=dict)
    """By file name, in the order in which they were first named."""
    at_work: Mapping[str, Work] = field(default_factory=dict)
    spent: Mapping[str, Spending] = field(default_factory=dict)
    unapproved: frozenset[str] = frozenset()
    """Items whose last run has used up its iterations."""
    slots: int = 0
    """The highest slot that was used; 0 without slots."""
    uses: tuple[SlotUse, ...] = ()
    """Attempts in slots, in the order of their ends."""
    landings: tuple[Landing, ...] = ()
    kept: tuple[KeptWork, ...] = ()
    delayed: ev.WatchFollowDelayed | None = None
    """Why the user's branch does not follow the trunk now; None if it does."""
    workers: ev.WatchWorkers | None = None
    """The workers of the cluster, as seen last."""
    lost: tuple[str, ...] = ()
    """Names of workers that left the cluster, or were lost with an attempt."""

    def add(self, event: ev.Event, at: datetime, stage: str | None, *, last: datetime) -> Watched:
        """Return the items after an event; `last` is the time of the one before."""
        match event:
            case ev.WatchProcessingItem():
                return self._begun(event, at)
            case ev.WatchItemCompleted(filename=name, checked=checked):
                done: ItemState = "approved" if checked is not False else "unchecked"
                done = "max_iterations" if name in self.unapproved else done
                return self._settled(name, done, "", at)
            case ev.WatchItemParked(filename=name, reason=reason):
                return self._settled(name, "parked", reason, at)
            case ev.WatchItemRetained(filename=name):
                return self._settled(name, "edited", "it was edited while it was worked on", at)
            case ev.WatchItemRetry(filename=name, message=message):
                return self._settled(name, "failed", message, at)
            case ev.WatchItemSkipped(filename=name, reason=reason):
                return self._put(name, at, state="skipped", reason=reason, end=at)
            case ev.RunContinued():
                return replace(self._interrupted(last), workers=None)
            case ev.RunEnded():
                return self._interrupted(last)
            case ev.WatchCandidate() | ev.WatchLanding() | ev.WatchLanded() | ev.WatchSentBack():
                return self._landing(event, at)
            case ev.WatchProposed() | ev.WatchProposal() | ev.WatchIssueReported():
                return self._proposing(event, at)
            case ev.WatchLoopEvent():
                return self._placed(event, at)
            case _:
                return self._worked(event, at, stage)

    def _begun(self, event: ev.WatchProcessingItem, at: datetime) -> Watched:
        name, slot = event.filename, event.slot
        watched = self
        for other, work in self.at_work.items():
            if slot in (work.slot, 0) or other == name:
                watched = watched._left(other, at)
        known = watched.items.get(name) or WatchedItem(name=name, start=at)
        watched = watched._put(
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
        return replace(
            watched,
            unapproved=self.unapproved - {name},
            at_work={**watched.at_work, name: Work(since=at, slot=slot)},
            slots=self._most(name, slot),
        )

    def _most(self, name: str, slot: int) -> int:
        """Return the number of slots, without those of attempts beside the slot of their item."""
        item = self.at_work.get(attempted_item(name)) if attempted_item(name) != name else None
        return self.slots if item is not None and item.slot else max(self.slots, slot)

    def _worked(self, event: ev.Event, at: datetime, stage: str | None) -> Watched:
        """Count an event of the run of an item."""
        name = event.item or (next(iter(self.at_work)) if len(self.at_work) == 1 else "")
        if name not in self.items:
            return self
        watched = self
        state = next((state for cls, state in _RESULTS if isinstance(event, cls)), None)
        if state is not None:
            state = "unchecked" if ev.checked_of(event) is False else state
            reason = getattr(event, "content", "") or getattr(event, "message", "")
            watched = watched._put(name, at, state=state, reason=reason)
            if state == "max_iterations":
                watched = replace(watched, unapproved=watched.unapproved | {name})
            if state == "spec_issue":
                watched = watched._left(name, at)
        before = self.spent.get(name, _NOTHING)
        after = before if stage is None else before.add(event)
        if after is before:
            return watched
        costs = {"cost_usd": after.cost_usd, "cost_estimated": after.cost_estimated}
        paid = watched._put(name, at, **costs, usage=after.usage)
        return replace(paid, spent={**paid.spent, name: after})

    def _placed(self, event: ev.WatchLoopEvent, at: datetime) -> Watched:
        """Return the items after an event about slots, workers or the user's branch."""
        match event:
            case ev.WatchWorkers(left=left):
                lost = tuple(dict.fromkeys((*self.lost, *left)))
                return replace(self, workers=event, slots=max(self.slots, 1), lost=lost)
            case ev.WatchPlaced(filename=name, worker=worker):
                return self._put_on(name, worker, at)
            case ev.WatchPlaceGone(filename=name, worker=worker):
                lost = tuple(dict.fromkeys((*self.lost, worker)))
                return replace(self, lost=lost)._lost(name, worker, at)
            case ev.WatchSlotPrepared(filename=name, slot=slot):
                watched = replace(self, slots=self._most(name, slot))
                if name not in self.at_work:  # an item that was sent back continues
                    known = self.items.get(name)
                    begun = {"state": "working", "reason": "", "end": None, "slot": slot}
                    attempts = (known.attempts if known else 0) + 1
                    watched = watched._put(name, at, attempts=attempts, **begun)
                    at_work = {**watched.at_work, name: Work(since=at, slot=slot)}
                    watched = replace(watched, at_work=at_work)
                return watched._put_on(name, event.worker, at) if event.worker else watched
            case ev.AttemptLost(filename=name, reason=reason, ref=ref):
                told = f"{reason}; its work is in {ref}" if ref else reason
                return self._settled(name, "lost", told, at)
            case ev.AttemptChosen(filename=name, reason=reason):
                return self._put(name, at, reason=reason)
            case ev.WatchItemHeld(filename=name, reason=reason) if name not in self.at_work:
                return self._put(name, at, state="held", reason=reason)
            case ev.WatchWorkKept(ref=ref, slot=slot, filename=name, reason=reason):
                kept = KeptWork(at=at, ref=ref, slot=slot, item=name, reason=reason)
                return replace(self, kept=(*self.kept, kept))
            case ev.WatchFollowDelayed():
                return replace(self, delayed=event)
            case ev.WatchFollowed():
                return replace(self, delayed=None)
            case _:
                return self

    def _landing(
        self,
        event: ev.WatchCandidate | ev.WatchLanding | ev.WatchLanded | ev.WatchSentBack,
        at: datetime,
    ) -> Watched:
        name = event.filename
        match event:
            case ev.WatchCandidate(commit=commit):
                state: ItemState = "queued" if event.approved else "max_iterations"
                # A resumed attempt is not another one, and others were those of an earlier watch.
                about = {"candidate": commit, "slot": event.slot, "attempts": event.attempt}
                return self._settled(name, state, "", at)._put(name, at, **about)
            case ev.WatchLanding():
                began = self._put(name, at, state="landing")
                return replace(began, landings=(*self.landings, _landing(event, at)))
            case ev.WatchLanded(commit=commit, nothing=nothing):
                branch = event.branch or ""
                end: LandingEnd = "nothing" if nothing else "landed"
                about = {"landed": commit, "branch": branch, "nothing": nothing, "candidate": ""}
                about |= {"pull_request": event.url} if event.url else {}
                return (
                    self._ended(name, event.trunk_was, at, end, commit=commit, branch=branch)
                    ._settled(name, "landed", "", at)
                    ._put(name, at, **about)
                )
            case ev.WatchSentBack(reason=reason, paths=paths, returns=returns):
                output = event.output[-_LONGEST_OUTPUT:]
                said = {"output": output, "paths": paths, "returns": returns}
                named = f": {', '.join(paths)}" if paths else ""
                return (
                    self._ended(name, "", at, reason, **said)
                    ._settled(name, "sent_back", f"{RETURN_REASONS[reason]}{named}", at)
                    ._put(name, at, returns=returns, return_reason=reason, candidate="")
                )
            case _ as never:
                assert_never(never)

    def _proposing(
        self, event: ev.WatchProposed | ev.WatchProposal | ev.WatchIssueReported, at: datetime
    ) -> Watched:
        name = event.filename
        match event:
            case ev.WatchProposed(commit=commit, branch=branch, number=number, url=url):
                return (
                    self._ended(name, "", at, "proposed", commit=commit, branch=branch)
                    ._settled(name, "proposed", f"#{number}: {url}", at)
                    ._put(name, at, pull_request=url)
                )
            case ev.WatchProposal(number=number, state=state, message=message):
                known = self.items.get(name)
                if known is None or known.state != "proposed":
                    return self
                why = f" ({message})" if message else ""
                return self._put(name, at, reason=f"#{number} is {state.replace('-', ' ')}{why}")
            case ev.WatchIssueReported(url=url):
                return self._put(name, at, issue=url) if name in self.items else self
            case _ as never:
                assert_never(never)

    def _put_on(self, name: str, worker: str, at: datetime) -> Watched:
        """Record that a worker works on an item."""
        work = self.at_work.get(name)
        if work is None:
            return self
        at_work = {**self.at_work, name: replace(work, worker=worker)}
        return replace(self, at_work=at_work)._put(name, at, worker=worker)

    def _lost(self, name: str, worker: str, at: datetime) -> Watched:
        """Record that the attempt at an item has lost its worker."""
        work = self.at_work.get(name)
        if work is None:
            return self
        use = replace(_use(name, work, at, "interrupted"), worker=worker, is_lost=True)
        seconds = self.items[name].seconds + _between(work.since, at)
        again = replace(work, since=at, worker="")
        lost = replace(self, uses=(*self.uses, use), at_work={**self.at_work, name: again})
        return lost._put(name, at, worker="", seconds=seconds)

    def _ended(
        self, name: str, trunk: str, at: datetime, ending: LandingEnd, **changes: Any
    ) -> Watched:
        """Record the end of an item's landing or of its pull request."""
        landing = self.landing
        if landing is not None and landing.item == name:
            ended = replace(landing, end=at, ending=ending, **changes)
            return replace(self, landings=(*self.landings[:-1], ended))
        # The end of a pull request; another item may be landing meanwhile.
        known = self.items.get(name)
        candidate = known.candidate if known else ""
        begun = _landing(ev.WatchLanding(filename=name, commit=candidate, trunk=trunk), at)
        ended = replace(begun, end=at, ending=ending, **changes)
        place = len(self.landings) - (landing is not None)
        return replace(self, landings=(*self.landings[:place], ended, *self.landings[place:]))

    def _put(self, name: str, at: datetime, **changes: Any) -> Watched:
        known = self.items.get(name) or WatchedItem(name=name, start=at)
        return replace(self, items={**self.items, name: replace(known, **changes)})

    def _settled(self, name: str, state: ItemState, reason: str, at: datetime) -> Watched:
        return self._left(name, at, state)._put(name, at, state=state, reason=reason, end=at)

    def _left(self, name: str, at: datetime, to: ItemState | None = None) -> Watched:
        """Record that work on an item is over for now, with the new state `to`."""
        work = self.at_work.get(name)
        if work is None:
            return self
        known = self.items[name]
        state: ItemState = to or ("interrupted" if known.state == "working" else known.state)
        seconds = known.seconds + _between(work.since, at)
        watched = self._put(name, at, state=state, end=at, seconds=seconds)
        spent = self.spent
        if name in spent:  # another run of the item has its own sessions
            spent = {**spent, name: spent[name].settle()}
        return replace(
            watched,
            spent=spent,
            at_work={one: each for one, each in self.at_work.items() if one != name},
            uses=(*self.uses, _use(name, work, at, state)) if work.slot else self.uses,
        )

    def _interrupted(self, at: datetime) -> Watched:
        """Record that all work has stopped."""
        watched = self
        for name in self.at_work:
            watched = watched._left(name, at)
        if (landing := self.landing) is None:
            return watched
        cut_off = replace(landing, ending="cut off", end=at)
        watched = replace(watched, landings=(*self.landings[:-1], cut_off))
        return watched._put(landing.item, at, state="queued")

    @property
    def landing(self) -> Landing | None:
        last = self.landings[-1] if self.landings else None
        return last if last is not None and last.ending == "running" else None

    def until(self, end: datetime, *, is_running: bool) -> Watched:
        """Return all work at this time: in progress, or interrupted if nothing runs."""
        if not is_running:
            return self._interrupted(end)
        items, uses, landings = dict(self.items), [*self.uses], self.landings
        for name, work in self.at_work.items():
            seconds = items[name].seconds + _between(work.since, end)
            items[name] = replace(items[name], seconds=seconds)
            uses += [_use(name, work, end, "working")] if work.slot else []
        if (landing := self.landing) is not None:
            landings = (*landings[:-1], replace(landing, end=max(end, landing.start)))
        return replace(self, items=items, uses=tuple(uses), landings=landings)


def delay_text(delayed: ev.WatchFollowDelayed) -> str:
    """Return why the user's branch does not follow the trunk, with the files in the way."""
    named = f": {', '.join(delayed.paths)}" if delayed.paths else ""
    return f"{delayed.reason}{named}"


def _use(name: str, work: Work, end: datetime, state: ItemState) -> SlotUse:
    return SlotUse(
        slot=work.slot, item=name, start=work.since, end=end, state=state, worker=work.worker
    )


def _landing(event: ev.WatchLanding, at: datetime) -> Landing:
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
