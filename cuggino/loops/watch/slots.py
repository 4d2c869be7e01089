"""The watch with slots: several items at work at once, and one gate through which they land."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Protocol

from reactivex import Observable, abc, operators as ops, timer
from reactivex.disposable import SerialDisposable
from reactivex.subject import AsyncSubject, Subject

from cuggino.domain import (
    SlotLimit,
    hits_every_item,
    is_overload,
)
from cuggino.errors import (
    ConfigError,
    CugginoError,
    ForgeRefused,
    Interrupted,
    ItemSkipped,
    StorageError,
    WorkspaceLocked,
    cause_of,
)
from cuggino.events import (
    ControlIgnored,
    Event,
    LoopApproved,
    LoopSpecIssue,
    LoopTerminalEvent,
    WatchCandidate,
    WatchEvent,
    WatchFollowDelayed,
    WatchItemParked,
    WatchLanded,
    WatchProposed,
    WatchSentBack,
    WatchSlotsChanged,
    WatchWorkKept,
)
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.commands import Commands
from cuggino.loops.frame.control import Control
from cuggino.loops.frame.run import Run, Story
from cuggino.loops.watch.baseline import baseline_stage
from cuggino.loops.watch.items import Claim, Items, Listing, ends_the_watch
from cuggino.loops.watch.journal import SLOTS
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.placement import Placement, Work, item_name, work_placed
from cuggino.loops.watch.pool import pool_of
from cuggino.loops.watch.pool_state import (
    Begun,
    Fact,
    Failed,
    Forgotten,
    Happened,
    ItemWork,
    Land,
    Listed,
    Overloaded,
    PoolState,
    Served,
    Start,
    next_step,
)
from cuggino.loops.watch.proposals import Proposals
from cuggino.loops.watch.recorded import items_of_issues
from cuggino.loops.watch.returns import why_not_again
from cuggino.loops.watch.waiting import Situation
from cuggino.operators import Flow, StateRef, ask, emit, flow, forward, managed
from cuggino.operators.alongside import alongside
from cuggino.operators.managed import Subscription
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.stages import Changes, act, interrupt_processes
from cuggino.stages.slots import Gate, candidate_ref

MOST_SLOTS = 40
"""The slots of a watch whose items may have several attempts, in the slots after these."""
NO_ATTEMPTS = f"several attempts at an item require at most {MOST_SLOTS} slots"
_FOLLOW_AGAIN = 30.0
"""Seconds after which a delayed branch is moved again even if nothing has changed."""


class Trunk(Protocol):
    """The trunk of landed work, and the gate before it."""

    def open(self) -> Observable[WatchEvent]:
        """Heal what a killed process has left, and start or adopt the trunk."""

    def head(self, after: Collection[str] = ()) -> Observable[str]:
        """Emit the commit that attempts begin at if they build on the items `after`, too."""

    def land(
        self, candidate: WatchCandidate, *, title: str, returns: int
    ) -> Observable[WatchEvent]:
        """Land the candidate; the last event is `WatchLanded`, `WatchSentBack` or `WatchProposed`.

        Errors: `ForgeRefused` if the landing must not be retried; after others it is, with a pause.
        """

    def follow(self) -> Observable[WatchEvent]:
        """Let the user's branch follow; nothing is emitted when it is up to date."""

    def changed(self, delayed: WatchFollowDelayed, changes: Changes) -> Observable[object]:
        """Emit when the user has changed something, and their branch may follow by now."""


class Proposing(Trunk, Protocol):
    """A trunk into which pull requests are merged."""

    def proposal(self, proposed: WatchProposed, *, returns: int) -> Observable[WatchEvent]:
        """Wait for a pull request; the last event is `WatchLanded` or `WatchSentBack`.

        Before `WatchSentBack` there may be a `WatchCandidate`, from which the item continues. The
        wait can be disposed and started again at any time.

        Errors: `ForgeRefused` if it will not be merged; after others the wait is started again.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The placement of items, and the trunk where they land."""

    placement: Placement
    trunk: Trunk
    folder: Path
    """The folder of the slots and the gate tree on this machine."""
    proposing: Proposing | None = None
    """The trunk, if items land through pull requests."""
    gate: Gate | None = None
    """The gate, if the check runs before the first agent."""


class SlotWatch(Story):
    """One watch with slots: a pool of the backlog's items, and waiting in between."""

    def __init__(
        self,
        run: Run,
        options: WatchRunOptions,
        places: Places,
        left: PoolState | None = None,
        claim: Claim | None = None,
        looks: Observable[None] | None = None,
    ) -> None:
        self._run = run
        self._options = options
        self._places = places
        self._items = Items(run, options, claim, looks)
        self.commands: Commands = Commands(
            run.control, is_known=self._items.backlog.is_there, put_aside=self._skipped
        )
        limit = SlotLimit(places.placement.slots)
        self._state = StateRef(replace(left or PoolState(), limit=limit))
        self._issues: dict[str, str] = {}
        """The items that wait for a person, by the files of their spec issues."""
        self._is_measured = False
        self._delayed: WatchFollowDelayed | None = None
        self._follows: Subject[bool] = Subject()
        """Emits False when the user's branch has followed, or could not."""
        self._news: Subject[WatchEvent] = Subject()
        self._skips: Subject[object] = Subject()
        self._proposals = Proposals(self._await_proposal)

    @property
    def _has_attempts(self) -> bool:
        """Return whether several attempts at an item have places beside the slots."""
        return self._places.placement.slots <= MOST_SLOTS

    def held(self) -> Flow[AbstractContextManager[object]]:
        """Return a hold of the trunk."""
        gate = self._places.gate
        if gate is None:
            return nullcontext()
        return (yield from gate.held(command=self._options.command, since=self._run.began))

    def run(self) -> Flow[None]:
        """Wait until something can begin, and work until nothing can; indefinitely."""
        control, items = self._run.control, self._items
        if len(self._options.choices) > 1 and not self._has_attempts:
            raise ConfigError(NO_ATTEMPTS, hint=f'set "attempts" to 1, or --slots to {MOST_SLOTS}')
        yield from forward(self._places.trunk.open(), name="trunk")
        yield from self._restored()
        attached = self._places.placement.attach(items.backlog.is_there)
        placed = (yield from ask(attached)) or ()
        last_in = {one.slot: item_name(one.item) for one in placed}
        self._state.set(replace(self._state.value, last_in=last_in))
        while True:
            yield from control.stand_still()
            now = self._run.lane.now
            if (yield from ask(act(partial(self._can_begin, now)))):
                yield from self._measure()
                yield from emit(*items.notices())
                yield from self._follow()  # for attempts to begin at the latest commit
                yield from forward(self._working(), name=SLOTS)
            else:
                following: Observable[WatchEvent] = flow(lambda: self._following(self._follow))
                beside = (self._news, self._proposals.beside(), self._places.placement.news)
                waiting = items.waiting(self._situation)
                yield from control.idle(waiting.pipe(alongside(following, *beside)))

    def _measure(self) -> Flow[None]:
        """Run the check before the first agent, once."""
        gate, options = self._places.gate, self._options
        if gate is None or self._is_measured or options.baseline == "skip":
            return
        self._is_measured = True
        commit = yield from ask(self._places.trunk.head())
        stage = baseline_stage(self._run.services, options, gate, commit or "")
        yield from forward(stage, name="baseline")

    def _restored(self) -> Flow[None]:
        """Put away what has landed, and record what has not if this is another watch's journal."""
        workspace = self._run.services.workspace
        files = set(workspace.spec_issue_names())
        self._issues = (yield from ask(act(partial(items_of_issues, workspace, files)))) or {}
        for name, work in self._state.value.works.items():
            if work.has_landed:
                yield from self._put_away(name, work)
            elif work.is_unapproved:
                yield from self._park(name, _why_unapproved(work))
            elif self._run.resumed is None and work.candidate is not None:
                yield from emit(work.candidate)
                if (ended := work.sent_back or work.proposed) is not None:
                    yield from emit(ended)
            if work.proposed is not None and name in self._state.value.works:
                if self._places.proposing is not None:
                    self._proposals.add(work.proposed)
                else:  # items land in another way by now
                    self._set(name, replace(work, proposed=None))

    # The state, and what can begin.

    def _tell(self, fact: Fact) -> None:
        """Apply the fact to the state, and report a change of the number of usable slots."""
        before = self._state.value.limit.active
        state, _ = next_step(self._state.value, fact)
        self._state.set(state)
        active = state.limit.active
        if active != before:
            reason = "the service is overloaded" if active < before else "an item had no overload"
            changed = WatchSlotsChanged(active=active, slots=state.limit.slots, reason=reason)
            self._news.on_next(changed)

    def _set(self, name: str, work: ItemWork) -> None:
        self._state.set(self._state.value.with_work(name, work))

    def _limited(self, name: str, what: object) -> None:
        if is_overload(what):
            self._tell(Overloaded(name, self._run.lane.now))

    def _situation(self, issues: list[str], listing: Listing, now: datetime) -> Situation:
        self._items.take(listing, now, self._blocked(issues))
        self._let_removed_go()
        can_begin = self._begins_something(now)
        self._notice_removed()
        ready = self._items.listing.order.ready
        proposed = sum(name in self._proposals for name in ready)
        return Situation(
            issues=0 if can_begin else len(issues),
            ready=int(can_begin),
            paused=len(ready) - proposed,
            proposals=proposed,
        )

    def _can_begin(self, now: datetime) -> bool:
        self._items.look(now, self._blocked())
        return self._begins_something(now)

    def _begins_something(self, now: datetime) -> bool:
        _, decisions = next_step(self._state.value, self._ready(now))
        return any(isinstance(decision, Start | Land) for decision in decisions)

    def _ready(self, now: datetime) -> Listed:
        """Return the items that may begin or land: of new ones, as many as there is room for.

        A large backlog is not listed each time, so each of them is looked at again.
        """
        state, items = self._state.value, self._items
        room = state.limit.active - len(state.at_work)
        names: list[str] = []
        for name in items.attempts.due(state.queue.first(items.listing.order.ready), now):
            is_new = name not in state.works
            if (is_new and not room) or name in self._proposals or state.is_active(name):
                continue
            if items.backlog.may_begin(name, now):
                names.append(name)
                room -= is_new
        is_there = items.backlog.is_there
        began = state.last_in.values() if names else ()
        return Listed(tuple(names), gone=frozenset(name for name in began if not is_there(name)))

    def _blocked(self, issues: list[str] | None = None) -> dict[str, str]:
        """Return the items that wait for a person, given the spec issues that are open."""
        if self._issues:
            is_open = set(
                self._run.services.workspace.spec_issue_names() if issues is None else issues
            )
            self._issues = {file: name for file, name in self._issues.items() if file in is_open}
        return dict.fromkeys(self._issues.values(), "has an open spec issue")

    # What is at work.

    def _working(self) -> Observable[WatchEvent]:
        """Run attempts in all slots and land their candidates, until nothing is left to do."""
        told = self._run.control.standing.changes.pipe(ops.skip(1))
        changes = merge_now(self._items.changes(), told)
        looks = merge_now(changes.pipe(ops.do_action(self._notice_removed)), self._skips)
        follows: Observable[Observable[WatchEvent]] = flow(
            lambda: self._following(self._follow_between_landings)
        )
        # The gate tree is there, too: a check may linger as long as an agent.
        release = partial(interrupt_processes, self._places.folder)
        working = pool_of(
            self._state,
            managed(self._listed),
            lambda start: flow(partial(self._attempted, start)).pipe(
                ops.map(methodcaller("of_item", start.name))
            ),
            lambda land: flow(partial(self._landing, land)).pipe(
                ops.map(methodcaller("of_item", land.name))
            ),
            changes=looks,
            pauses=follows,
            on_release=release,
        )
        return working.pipe(
            alongside(self._news, self._proposals.beside(), self._places.placement.news)
        )

    def _listed(
        self, observer: Subscription[Listed], _scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        """Emit what may begin, now and whenever a paused item is due; report new notices."""
        items, lane, wake = self._items, self._run.lane, SerialDisposable()

        def look(_tick: object = None) -> None:
            try:
                now = lane.now
                if self._run.control.standing.value.holds_back:
                    observer.on_next(Listed((), holds_back=True))
                else:
                    items.look(now, self._blocked())
                    self._let_removed_go()
                    observer.on_next(self._ready(now))
                for notice in items.notices():
                    self._news.on_next(notice)
            except Exception as error:
                observer.on_error(error)
                return
            due = items.next_due(items.listing, now)
            if due is not None:
                wake.disposable = timer(due).subscribe(look, scheduler=lane)

        look()
        return wake

    def _attempted(self, start: Start) -> Flow[None]:
        """Work on the item in the slot; then its candidate waits, or the item is put away."""
        name, items = start.name, self._items
        reason: str | None = None
        last: object = None
        with self.commands.beside(name) as control:
            if not (yield from items.claimed(name)):
                return
            yield from forward(act(partial(items.begins, name, start.slot, start.returns)))
            try:
                options = yield from items.task(name)
            except (ConfigError, StorageError) as error:
                reason = yield from items.failed(name, error, common=False)
                yield from self._park(name, reason)
                return
            if options is None:
                return
            if len(options.choices) > 1 and not self._has_attempts:
                yield from self._park(name, NO_ATTEMPTS)
                return
            self._tell(Begun(name, options.item or "", start.slot))
            try:
                after = items.listing.order.landed.get(name, ())
                base = yield from ask(self._places.trunk.head(after))
                running = self._attempt(options, base or "", control)
                last = yield from forward(control.obeyed(running))
            except ItemSkipped as skipped:
                reason = skipped.message
            except CugginoError as error:
                self._limited(name, error)
                self._tell(Failed(name))
                if self._is_stopped(error):
                    return
                if _ends_all(error):
                    raise
                reason = yield from items.failed(name, error, common=_hits_every_item(error))
                yield from self._park(name, reason)
                return
        if reason is not None:
            self._tell(Failed(name))
            yield from self._park(name, reason)
            return
        self._tell(Served(name))
        items.succeeded(name)
        if isinstance(last, LoopSpecIssue):
            self._issues[last.filename] = name
        elif (work := self._state.value.work_of(name)).is_unapproved:
            yield from self._park(name, _why_unapproved(work))
        elif isinstance(last, LoopTerminalEvent):
            yield from self._park(name, (yield from items.finished(name, options, last)))

    def _attempt(
        self, options: LoopRunOptions, base: str, control: Control
    ) -> Observable[WatchEvent]:
        name = item_name(options.item or "")
        known = self._state.value.work_of(name)
        work = Work(
            options=options,
            slot=known.slot,
            base=base,
            number=known.number,
            returned=known.returned,
            ledger=self._run.supervision.ledger,
            control=control,
        )
        placed = work_placed(self._places.placement, work)
        return placed.pipe(ops.do_action(partial(self._limited, name)))

    def _is_stopped(self, error: CugginoError) -> bool:
        """Return whether a person has asked all items to end after their stages."""
        cause = cause_of(error)
        return isinstance(cause, Interrupted) and self._run.control.standing.value.stops

    # How an item leaves the backlog.

    def _park(self, name: str, reason: str | None) -> Flow[None]:
        """Park the item if there is a reason; it may be gone."""
        if reason is not None:
            parked = yield from ask(act(partial(self._put_aside, name, reason)))
            yield from emit(*([parked] if parked is not None else []))

    def _put_aside(self, name: str, reason: str) -> WatchItemParked | None:
        work = self._state.value.work_of(name)
        self._let_go(name)
        if work.candidate is not None and work.candidate.commit != work.candidate.base:
            reason = f"{reason}; its work is in {candidate_ref(name)}"
        return self._items.park(name, reason)

    def _let_go(self, name: str) -> None:
        self._tell(Forgotten(name))
        self.commands.forget(name)
        if name in self._proposals:  # ended once its file has been moved
            self._run.lane.schedule(lambda *_: self._proposals.end(name))

    def _skipped(self, name: str) -> Event | None:
        """Park an item that is not at work but has a candidate; None for any other."""
        state = self._state.value
        work = state.work_of(name)
        if work.candidate is None or not self._items.backlog.is_there(name):
            return None
        if name in state.at_work:
            return None
        if name == state.lands or work.has_landed:
            return ControlIgnored(source="skip", reason=f"{name} is being landed", item=name)
        try:
            parked = self._put_aside(name, ItemSkipped().message)
        except StorageError as error:
            return ControlIgnored(source="skip", reason=error.message, item=name)
        # Once this has been announced.
        self._run.lane.schedule(lambda *_: self._skips.on_next(name))
        return parked and parked.model_copy(update={"item": name})

    def _put_away(self, name: str, work: ItemWork) -> Flow[None]:
        self._let_go(name)
        last = work.end or LoopApproved(iteration=1)
        yield from self._park(name, (yield from self._items.archive(name, work.item, last)))

    def _abandoned(self, name: str, work: ItemWork) -> WatchEvent:
        """Keep, but do not land, the work on an item that a person has removed from the backlog."""
        self._let_go(name)
        return WatchWorkKept(
            ref=candidate_ref(name),
            slot=work.slot,
            filename=name,
            reason="the item has left the backlog",
        ).of_item(name)

    def _let_removed_go(self) -> None:
        """Abandon the work on removed items that is neither under way nor queued nor proposed."""
        state = self._state.value
        for name, work in state.works.items():
            if work.candidate is None or state.is_active(name) or name in self._proposals:
                continue
            if not self._items.backlog.is_there(name):
                self._news.on_next(self._abandoned(name, work))

    # What lands.

    def _landing(self, land: Land) -> Flow[None]:
        """Land the candidate of the item, and put the item away."""
        name, backlog, work = land.name, self._items.backlog, self._state.value.work_of(land.name)
        if not backlog.is_there(name):
            yield from emit(self._abandoned(name, work))
            return
        title = backlog.title(name)
        landing = self._places.trunk.land(land.candidate, title=title, returns=land.returns)
        try:
            last = yield from forward(landing)
        except CugginoError as error:
            if _ends_all(error):
                raise
            yield from self._not_landed(name, error)
            return
        if isinstance(last, WatchLanded):
            yield from self._put_away(name, work)
            yield from self._follow()
        elif isinstance(last, WatchProposed):
            self._proposals.add(last)
        elif isinstance(last, WatchSentBack):
            yield from self._unless_exhausted(name, last)

    def _not_landed(self, name: str, error: CugginoError) -> Flow[None]:
        """Park an item that is refused; try any other again."""
        if isinstance(error, ForgeRefused):
            yield from self._park(name, error.message)
        else:
            yield from self._park(name, (yield from self._items.failed(name, error)))

    def _unless_exhausted(self, name: str, last: WatchSentBack) -> Flow[None]:
        work, queue = self._state.value.work_of(name), self._state.value.queue
        is_exhausted = queue.is_exhausted(name, self._options.max_attempts)
        yield from self._park(name, why_not_again(last, work, is_exhausted=is_exhausted))

    # What is proposed.

    def _await_proposal(self, name: str) -> Flow[None]:
        """Wait for the outcome of the item's pull request, and handle it.

        Each step continues from the known state of the item: the watch may dispose it at any time.
        """
        while (work := self._state.value.works.get(name)) is not None:
            if work.has_landed:
                yield from self._put_away(name, work)
            elif not self._items.backlog.is_there(name):
                yield from emit(self._abandoned(name, work))
            elif work.sent_back is not None:
                yield from self._unless_exhausted(name, work.sent_back)
                break
            else:
                yield from self._wait_for_proposal(name, work)
        self._proposals.end(name)
        self._items.look_again()

    def _wait_for_proposal(self, name: str, work: ItemWork) -> Flow[None]:
        trunk = self._places.proposing
        assert work.proposed is not None
        assert trunk is not None

        def look(event: Event) -> None:
            if isinstance(event, WatchCandidate):  # work by others, from which the item continues
                self._set(name, replace(self._state.value.work_of(name), candidate=event))
            else:
                self._tell(Happened(name, event))

        until_changed = self._proposals.until_changed(name)
        returns = self._state.value.queue.returns.get(name, 0)
        waiting = trunk.proposal(work.proposed, returns=returns)
        try:
            yield from forward(waiting.pipe(ops.do_action(look), until_changed))
        except CugginoError as error:
            if _ends_all(error):
                raise
            yield from self._not_landed(name, error)
            due = self._items.attempts.next_due([name], self._run.lane.now)
            later: Observable[object] = timer(due or 0.0)
            yield from ask(later.pipe(until_changed))

    def _notice_removed(self, _change: object = None) -> None:
        """Wake the stories of items that a person has removed from the backlog."""
        listed = set(self._items.listing.survey.items) if len(self._proposals) else ()
        for name in self._proposals.names():
            if name not in listed and not self._items.backlog.is_there(name):
                self._run.lane.schedule(lambda *_, gone=name: self._proposals.look_again(gone))

    # How the user's branch follows.

    def _follow(self) -> Flow[None]:
        """Let the user's branch follow the trunk, or note that it could not."""

        def news(event: WatchEvent) -> Iterable[WatchEvent]:
            if isinstance(event, WatchFollowDelayed):
                known, self._delayed = self._delayed, event
                return () if event == known else (event,)
            self._delayed = None
            return (event,)

        yield from forward(self._places.trunk.follow().pipe(mapcat(news)))
        self._follows.on_next(False)

    def _following(self, follow: Callable[[], Flow[None]]) -> Flow[None]:
        """Let a delayed branch `follow` after a change by its owner, and now and then."""
        while True:
            signs: Observable[bool] = self._follows
            if self._delayed is not None:
                changes = self._run.services.changes
                changed = self._places.trunk.changed(self._delayed, changes)
                later: Observable[object] = timer(_FOLLOW_AGAIN)
                due = merge_now(changed, later).pipe(ops.map(lambda _: True))
                signs = merge_now(due, signs)
            if (yield from ask(signs.pipe(ops.take(1)))):
                yield from follow()

    def _follow_between_landings(self) -> Flow[None]:
        """Emit a stream that follows, and wait until it has run."""
        done: AsyncSubject[None] = AsyncSubject()

        def following() -> Flow[None]:
            yield from self._follow()
            done.on_completed()

        yield from emit(flow(following))
        yield from ask(done)


def _ends_all(error: CugginoError) -> bool:
    """Return whether the error of one item ends the watch.

    A slot that cannot be written is one that others may do without.
    """
    return ends_the_watch(error) and not isinstance(error, StorageError)


def _hits_every_item(error: CugginoError) -> bool:
    """Return whether other items would fail, too: of the watch's folders, one cannot be written."""
    return hits_every_item(error) or isinstance(error, StorageError | WorkspaceLocked)


def _why_unapproved(work: ItemWork) -> str:
    return "not approved" if work.end is None else work.end.message
