"""The watch with slots: several items at work at once, and one gate through which they land."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Protocol

from reactivex import Observable, abc, operators as ops, timer
from reactivex.disposable import Disposable, SerialDisposable
from reactivex.subject import Subject

from cuggino.domain import (
    SlotLimit,
    hits_every_item,
    is_overload,
)
from cuggino.errors import (
    CugginoError,
    ForgeRefused,
    Interrupted,
    ItemSkipped,
    LoopError,
    StorageError,
    WorkspaceLocked,
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
    WatchLanded,
    WatchProposed,
    WatchSentBack,
    WatchSlotsChanged,
    WatchWorkKept,
)
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.control import ItemControl
from cuggino.loops.frame.run import Run
from cuggino.loops.watch.items import Claim, Items, ends_the_watch
from cuggino.loops.watch.journal import SLOTS
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.placement import Placement, Returned, Work, item_name, work_placed
from cuggino.loops.watch.proposals import Proposals
from cuggino.loops.watch.recorded import ItemWork, WorkLeft, items_of_issues
from cuggino.loops.watch.waiting import Situation
from cuggino.operators import Flow, ask, emit, flow, forward, managed, merge_at_most
from cuggino.operators.alongside import alongside
from cuggino.operators.managed import Subscription
from cuggino.operators.mapcat import mapcat
from cuggino.operators.merge_now import merge_now
from cuggino.stages import Changes, act, interrupt_processes
from cuggino.stages.slots import candidate_ref

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


class SlotWatch:
    """One watch with slots: the state that its items share."""

    reports_interruption = False
    is_resumable = True

    def __init__(
        self,
        run: Run,
        options: WatchRunOptions,
        places: Places,
        left: WorkLeft | None = None,
        claim: Claim | None = None,
        looks: Observable[None] | None = None,
    ) -> None:
        self._run = run
        self._services = run.services
        self._options = options
        self._places = places
        self._items = Items(run, options, claim, looks)
        left = left or WorkLeft()
        self._items.blocked = self._blocked
        self._items.let_go = self._let_go
        self._queue = left.queue
        self._limit = SlotLimit(places.placement.slots)
        self._known = left.works
        self._at_work: dict[str, int] = {}
        """The items at work, each with its slot."""
        self._last_in: dict[int, str] = {}
        """The item that was at work last in each slot."""
        self._issues: dict[str, str] = {}
        """The items that wait for a person, by the files of their spec issues."""
        self._delayed: WatchFollowDelayed | None = None
        self._is_following = False
        self._follows: Subject[bool] = Subject()
        """Emits False when the user's branch has followed, or could not."""
        self._news: Subject[WatchEvent] = Subject()
        self._proposals = Proposals(self._await_proposal)
        self._elsewhere = places.placement.news
        self._starts: abc.ObserverBase[Observable[WatchEvent]] | None = None
        self._landings: Subject[Observable[WatchEvent]] = Subject()
        self._lands: str | None = None
        """The item whose landing is not finished: the branch also follows before the next one."""
        self._next_due = SerialDisposable()
        self._is_advancing = self._is_changed = False

    def opening(self) -> Flow[None]:
        """Emit nothing."""
        yield from ()

    def run(self) -> Flow[None]:
        """Wait until something can begin, and work until nothing can; indefinitely."""
        control, items = self._run.control, self._items
        control.keeps_for(items.backlog.is_there)
        control.skips_with(self._skipped)
        yield from forward(self._places.trunk.open(), name="trunk")
        yield from self._restored()
        for placed in (yield from ask(self._places.placement.attach())) or ():
            self._last_in[placed.slot] = item_name(placed.item)
        while True:
            yield from control.stand_still()
            now = yield from items.now()
            if (yield from ask(act(partial(self._can_begin, now)))):
                yield from emit(*items.notices())
                yield from self._follow()  # for attempts to begin at the latest commit
                yield from forward(self._working(), name=SLOTS)
            else:
                following: Observable[WatchEvent] = flow(lambda: self._following(self._follow))
                with control.idle():
                    beside = (self._proposals.beside(), self._elsewhere)
                    waiting = items.waiting(self._look)
                    yield from forward(waiting.pipe(alongside(following, *beside)))

    def _restored(self) -> Flow[None]:
        """Put away what has landed, and record what has not if this is another watch's journal."""
        workspace = self._services.workspace
        files = set(workspace.spec_issue_names())
        self._issues = (yield from ask(act(partial(items_of_issues, workspace, files)))) or {}
        for name, work in list(self._known.items()):
            if work.has_landed:
                yield from self._put_away(name, work)
            elif self._run.resumed is None and work.candidate is not None:
                yield from emit(work.candidate)
                if (ended := work.sent_back or work.proposed) is not None:
                    yield from emit(ended)
            if work.proposed is not None and name in self._known:
                if self._places.proposing is not None:
                    self._proposals.add(work.proposed)
                else:  # items land in another way by now
                    work.proposed = None

    # What can begin.

    def _look(self, now: datetime) -> Situation:
        self._items.read(now)
        ready = sum(1 for _ in self._ready(now)) + (self._next_to_land(now) is not None)
        issues = 0 if ready else len(self._services.workspace.spec_issue_names())
        self._notice_removed()
        proposed = sum(name in self._proposals for name in self._items.order.ready)
        paused = len(self._items.order.ready) - ready - proposed
        return Situation(issues=issues, ready=ready, paused=paused, proposals=proposed)

    def _can_begin(self, now: datetime) -> bool:
        self._items.listed(now)
        return any(True for _ in self._ready(now)) or self._next_to_land(now) is not None

    def _ready(
        self, now: datetime, may: Callable[[str], bool] = lambda _name: True
    ) -> Iterator[str]:
        """Yield the items that `may` begin, to be worked on or to land: those sent back first."""
        items = self._items
        for name in items.attempts.due(self._queue.first(items.order.ready), now):
            if not self._is_active(name) and may(name) and items.backlog.may_begin(name):
                yield name

    def _is_active(self, name: str) -> bool:
        queue = self._queue
        is_here = name in self._at_work or name in queue.waiting or name == self._lands
        return is_here or name in self._proposals

    def _blocked(self) -> dict[str, str]:
        if not self._issues:
            return {}
        still_open = set(self._services.workspace.spec_issue_names())
        self._issues = {file: name for file, name in self._issues.items() if file in still_open}
        return dict.fromkeys(self._issues.values(), "has an open spec issue")

    # What is at work.

    def _working(self) -> Observable[WatchEvent]:
        """Run attempts in all slots and land their candidates, until nothing is left to do.

        ::

            ready -> merge_at_most(slots) attempts -> candidates -> one landing at a time
        """

        def begin(
            observer: Subscription[Observable[WatchEvent]], _scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            self._starts = observer
            self._advance()
            return Disposable(self._rest)

        # The gate tree is there, too: a check may linger as long as an agent.
        release = partial(interrupt_processes, self._places.folder)
        limit = merge_at_most(self._places.placement.slots, on_release=release)
        attempts: Observable[WatchEvent] = managed(begin).pipe(limit)
        one_by_one = merge_at_most(1, on_release=release)
        landings: Observable[WatchEvent] = self._landings.pipe(one_by_one)
        follows: Observable[WatchEvent] = flow(lambda: self._following(self._follow_beside))
        changes = merge_now(self._items.changes(), self._run.control.changed)
        looks: Observable[WatchEvent] = changes.pipe(mapcat(self._noticed))
        beside = (self._news, self._proposals.beside(), self._elsewhere)
        return attempts.pipe(alongside(landings, follows, looks, *beside))

    def _rest(self) -> None:
        self._starts = None
        self._next_due.disposable = Disposable()

    def _noticed(self, _change: object) -> tuple[()]:
        self._notice_removed()
        self._advance()
        return ()

    def _advance(self) -> None:
        """Begin what can begin; end the stage when nothing is at work and nothing can begin."""
        self._is_changed = True
        if self._is_advancing or self._starts is None:
            return
        self._is_advancing = True
        try:
            while self._is_changed and self._starts is not None:
                self._is_changed = False
                self._begin_what_can(self._starts)
        except Exception as error:
            if self._starts is not None:
                self._starts.on_error(error)
        finally:
            self._is_advancing = False
        for notice in self._items.notices():
            self._news.on_next(notice)

    def _begin_what_can(self, starts: abc.ObserverBase[Observable[WatchEvent]]) -> None:
        now = self._run.lane.now
        begun = False
        if not self._run.control.holds_back:
            self._items.listed(now)
            for name in self._ready(now, self._may_begin):
                if self._waits_to_land(name):
                    self._queue = self._queue.add(name)
                else:
                    begun = True
                    slot = self._take_slot(name)
                    starts.on_next(self._of(name, partial(self._work_on, name, slot)))
            if (candidate := self._next_to_land(now)) is not None:
                begun = True
                self._queue, self._lands = self._queue.begin(candidate), candidate
                self._landings.on_next(self._of(candidate, partial(self._land, candidate)))
        if begun or self._at_work or self._lands is not None or self._is_following:
            if len(self._at_work) < self._limit.active:
                self._wake_at(self._items.attempts.next_due(self._items.survey.items, now))
        else:
            starts.on_completed()

    def _may_begin(self, name: str) -> bool:
        """Return whether there is room for the item: in a slot, or in the queue."""
        if self._waits_to_land(name):
            return True
        admitted = self._queue.admits_new or name in self._queue.returns
        return admitted and len(self._at_work) < self._limit.active

    def _waits_to_land(self, name: str) -> bool:
        return (work := self._known.get(name)) is not None and work.waits_to_land

    def _next_to_land(self, now: datetime) -> str | None:
        """Return the item that lands next; those that cannot return now keep no other waiting."""
        if self._lands is not None:
            return None
        items, returns = self._items, self._queue.returns
        free = [name for name in items.order.ready if name in returns] if returns else []
        free = [name for name in free if name not in self._proposals]
        returning = filter(items.backlog.is_there, items.attempts.due(free, now))
        return self._queue.next(self._at_work.keys() | set(returning))

    def _wake_at(self, seconds: float | None) -> None:
        if seconds is None:
            self._next_due.disposable = Disposable()
            return
        wake: Observable[object] = timer(seconds)
        self._next_due.disposable = wake.subscribe(
            lambda _: self._advance(), scheduler=self._run.lane
        )

    def _of(self, name: str, story: Callable[[], Flow[None]]) -> Observable[WatchEvent]:
        return flow(story).pipe(ops.map(methodcaller("of_item", name)))

    def _take_slot(self, name: str) -> int:
        """Take the free slot where the item was at work; else one where nothing was begun."""
        free = set(range(1, self._places.placement.slots + 1)) - set(self._at_work.values())
        is_there = self._items.backlog.is_there
        began = {number: item for number, item in self._last_in.items() if is_there(item)}
        its = next((number for number in free if began.get(number) == name), None)
        number = its or min(free, key=lambda one: (one in began, one))
        self._at_work[name], self._last_in[number] = number, name
        return number

    def _work_on(self, name: str, slot: int) -> Flow[None]:
        """Work on the item in the slot; then its candidate waits, or the item is put away."""
        yield from self._attempted(name, slot)
        del self._at_work[name]
        self._advance()

    def _attempted(self, name: str, slot: int) -> Flow[None]:
        items, control = self._items, ItemControl(self._run.control, name)
        skipped: ItemSkipped | None = None
        last: object = None
        with control.hearing():
            if not (yield from items.claimed(name)):
                return
            returns = self._queue.returns.get(name, 0)
            yield from forward(act(partial(items.begins, name, slot, returns)))
            options = yield from items.task(name)
            if options is None:
                return
            work = self._work_of(name, options)
            work.number, work.slot, work.end = work.number + 1, slot, None
            try:
                after = items.order.landed.get(name, ())
                base = yield from ask(self._places.trunk.head(after))
                running = self._attempt(options, base or "", work, control)
                last = yield from forward(control.obeyed(running))
            except ItemSkipped as error:
                skipped = error
            except CugginoError as error:
                work.number -= 1
                if self._is_stopped(error):
                    return
                self._limited(name, error)
                self._set_limit(self._limit.ended(name, succeeded=False))
                if _ends_all(error):
                    raise
                yield from items.failed(name, error, common=_hits_every_item(error))
                return
        if skipped is not None:
            self._set_limit(self._limit.ended(name, succeeded=False))
            yield from items.park(name, skipped.message)
            return
        self._set_limit(self._limit.ended(name))
        items.succeeded(name)
        if isinstance(last, WatchCandidate):
            work.candidate, work.sent_back, work.proposed = last, None, None
        elif isinstance(last, LoopSpecIssue):
            self._issues[last.filename] = name
        elif isinstance(last, LoopTerminalEvent):
            yield from items.finished(name, options, last)

    def _attempt(
        self, options: LoopRunOptions, base: str, work: ItemWork, control: ItemControl
    ) -> Observable[WatchEvent]:
        returned = None
        if work.candidate is not None and work.sent_back is not None:
            returned = Returned(work.candidate, work.sent_back)
        placed = Work(
            options=options,
            slot=work.slot,
            base=base,
            number=work.number,
            returned=returned,
            unapproved=self._options.on_max_iterations == "complete",
            ledger=self._run.supervision.ledger,
            control=control,
        )

        def look(event: Event) -> None:
            if isinstance(event, LoopTerminalEvent):
                work.end = event
            self._limited(placed.name, event)

        return work_placed(self._places.placement, placed).pipe(ops.do_action(look))

    def _work_of(self, name: str, options: LoopRunOptions) -> ItemWork:
        """Return the known state of the item; a new one if its text has changed."""
        assert options.item is not None
        known = self._known.get(name)
        if known is None or known.item != options.item:
            self._queue = self._queue.forget(name)
            known = self._known[name] = ItemWork(options.item)
        return known

    def _limited(self, name: str, what: object) -> None:
        if is_overload(what):
            self._set_limit(self._limit.overloaded(name, self._run.lane.now))

    def _set_limit(self, limit: SlotLimit) -> None:
        before, self._limit = self._limit.active, limit
        if limit.active != before:
            fewer = limit.active < before
            reason = "the service is overloaded" if fewer else "an item met no overload"
            self._news.on_next(
                WatchSlotsChanged(active=limit.active, slots=limit.slots, reason=reason)
            )

    def _is_stopped(self, error: CugginoError) -> bool:
        """Return whether a person has asked all items to end after their stages."""
        cause = error.cause if isinstance(error, LoopError) else error
        return isinstance(cause, Interrupted) and self._run.control.stops

    def _let_go(self, name: str) -> str | None:
        work = self._known.pop(name, None)
        self._run.control.forget(name)
        self._queue = self._queue.forget(name)
        if name in self._proposals:  # ended once its file has been moved
            self._run.lane.schedule(lambda *_: self._proposals.end(name))
        has_work = work is not None and work.candidate is not None
        return candidate_ref(name) if has_work else None

    def _skipped(self, name: str) -> Event | None:
        """Park an item that is not at work but has a candidate; None for any other."""
        items, work = self._items, self._known.get(name)
        if work is None or work.candidate is None or not items.backlog.is_there(name):
            return None
        if name in self._at_work:
            return None
        if name == self._lands or work.has_landed:
            return ControlIgnored(source="skip", reason=f"{name} is being landed", item=name)
        try:
            parked = items.put_aside(name, ItemSkipped().message)
        except StorageError as error:
            return ControlIgnored(source="skip", reason=error.message, item=name)
        self._run.lane.schedule(lambda *_: self._advance())  # once this has been announced
        return parked and parked.model_copy(update={"item": name})

    # What lands.

    def _land(self, name: str) -> Flow[None]:
        """Land the candidate of the item, and put the item away."""
        yield from self._landing(name)
        self._queue, self._lands = replace(self._queue, landing=None), None
        self._advance()

    def _landing(self, name: str) -> Flow[None]:
        items, work = self._items, self._known[name]
        assert work.candidate is not None
        if not items.backlog.is_there(name):
            yield from self._abandoned(name, work)
            return
        title, returns = items.backlog.title(name), self._queue.returns.get(name, 0)
        landing = self._places.trunk.land(work.candidate, title=title, returns=returns)
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
            work.proposed = last
            self._proposals.add(last)
        elif isinstance(last, WatchSentBack):
            self._queue, work.sent_back = self._queue.send_back(name), last
            yield from self._unless_exhausted(name, last)

    def _not_landed(self, name: str, error: CugginoError) -> Flow[None]:
        """Park an item that is refused; try any other again."""
        if isinstance(error, ForgeRefused):
            yield from self._items.park(name, error.message)
        else:
            yield from self._items.failed(name, error)

    def _unless_exhausted(self, name: str, last: WatchSentBack) -> Flow[None]:
        if self._queue.is_exhausted(name, self._options.max_attempts):
            yield from self._items.park(name, _why_parked(last))

    # What is proposed.

    def _await_proposal(self, name: str) -> Flow[None]:
        """Wait for the outcome of the item's pull request, and handle it.

        Each step continues from the known state of the item: the watch may dispose it at any time.
        """
        if (work := self._known.get(name)) is not None:
            yield from self._proposal_ended(name, work)
        self._proposals.end(name)
        self._items.look_again()
        self._advance()

    def _proposal_ended(self, name: str, work: ItemWork) -> Flow[None]:
        items = self._items
        while self._known.get(name) is work:
            if work.has_landed:
                yield from self._put_away(name, work)
            elif not items.backlog.is_there(name):
                yield from self._abandoned(name, work)
            elif work.sent_back is not None:
                yield from self._unless_exhausted(name, work.sent_back)
                return
            else:
                yield from self._wait_for_proposal(name, work)

    def _wait_for_proposal(self, name: str, work: ItemWork) -> Flow[None]:
        trunk = self._places.proposing
        assert work.proposed is not None
        assert trunk is not None

        def look(event: Event) -> None:
            match event:
                case WatchCandidate():
                    work.candidate = event
                case WatchLanded():
                    work.has_landed = True
                case WatchSentBack():
                    self._queue, work.proposed = self._queue.send_back(name), None
                    work.sent_back = event
                case _:
                    pass

        until_changed = self._proposals.until_changed(name)
        returns = self._queue.returns.get(name, 0)
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

    def _notice_removed(self) -> None:
        """Wake the stories of items that a person has removed from the backlog."""
        listed = set(self._items.survey.items) if len(self._proposals) else ()
        for name in self._proposals.names():
            if name not in listed and not self._items.backlog.is_there(name):
                self._run.lane.schedule(lambda *_, gone=name: self._proposals.look_again(gone))

    def _put_away(self, name: str, work: ItemWork) -> Flow[None]:
        self._let_go(name)
        yield from self._items.archive(name, work.item, work.end or LoopApproved(iteration=1))

    def _abandoned(self, name: str, work: ItemWork) -> Flow[None]:
        """Keep, but do not land, the work on an item that a person has removed from the backlog."""
        self._let_go(name)
        yield from emit(
            WatchWorkKept(
                ref=candidate_ref(name),
                slot=work.slot,
                filename=name,
                reason="the item has left the backlog",
            )
        )

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
                changed = self._places.trunk.changed(self._delayed, self._services.changes)
                later: Observable[object] = timer(_FOLLOW_AGAIN)
                due = merge_now(changed, later).pipe(ops.map(lambda _: True))
                signs = merge_now(due, signs)
            if (yield from ask(signs.pipe(ops.take(1)))):
                yield from follow()

    def _follow_beside(self) -> Flow[None]:
        """Follow between two landings."""
        self._is_following = True  # which must not be cut short
        self._landings.on_next(flow(self._follow_between_landings))
        if self._is_following:
            yield from ask(self._follows.pipe(ops.take(1)))

    def _follow_between_landings(self) -> Flow[None]:
        yield from self._follow()
        self._is_following = False
        self._advance()


def _ends_all(error: CugginoError) -> bool:
    """Return whether the error of one item ends the watch.

    A slot that cannot be written is one that others may do without.
    """
    return ends_the_watch(error) and not isinstance(error, StorageError)


def _hits_every_item(error: CugginoError) -> bool:
    """Return whether other items would fail, too: of the watch's folders, one cannot be written."""
    return hits_every_item(error) or isinstance(error, StorageError | WorkspaceLocked)


def _why_parked(last: WatchSentBack) -> str:
    match last.reason:
        case "conflict":
            why = f"it conflicts with what has landed: {', '.join(last.paths)}"
        case "changed-files":
            why = f"the check command changes files: {', '.join(last.paths)}"
        case "ci":
            why = "a job of its pull request fails"
        case "review":
            why = "a review of its pull request asks for changes"
        case reason:
            why = f"the {reason} command fails at the gate"
    return f"sent back {last.returns} times; {why}"
