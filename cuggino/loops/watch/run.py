"""The watch of an item at a time: waiting, running the first item, putting it away."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from reactivex import Observable, abc, empty
from reactivex.disposable import Disposable

from cuggino.errors import (
    ConfigError,
    CugginoError,
    ItemSkipped,
    RunNotResumable,
    StorageError,
)
from cuggino.events import LoopTerminalEvent, WatchEvent
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.coding.service import LoopService
from cuggino.loops.frame.commands import Commands
from cuggino.loops.frame.history import dirty_files
from cuggino.loops.frame.resuming import latest_run_of, resumed_options
from cuggino.loops.frame.run import Run, Story
from cuggino.loops.watch.items import Claim, Items, ends_the_watch
from cuggino.loops.watch.journal import ITEM
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.pool import pool_of
from cuggino.loops.watch.pool_state import Listed, PoolState, Start
from cuggino.operators import Flow, StateRef, ask, emit, flow, forward, managed
from cuggino.operators.managed import Subscription
from cuggino.operators.on_loop import within_loop
from cuggino.stages import act
from cuggino.storage import JournalFile


class Watch(Story):
    """One watch in the project's own folder, an item at a time."""

    def __init__(
        self,
        run: Run,
        options: WatchRunOptions,
        loop: LoopService,
        settled: tuple[str, LoopTerminalEvent] | None = None,
        claim: Claim | None = None,
        looks: Observable[None] | None = None,
    ) -> None:
        self._run = run
        self._services = run.services
        self._options = options
        self._loop = loop
        self._items = Items(run, options, claim, looks)
        self.commands: Commands = Commands(run.control)
        self._settled = settled
        """An item whose run ended but was not archived, with its result."""
        self._ledger = run.supervision.ledger

    def run(self) -> Flow[None]:
        """Run the coding loop on the first item, put it away; wait for the next; indefinitely."""
        options, items = self._options, self._items
        if options.commit and options.dirty == "refuse" and self._run.resumed is None:
            specs = (Path(options.specs_path),)
            yield from dirty_files(self._services.repository, options, exclude=specs)
        control = self._run.control
        while True:
            yield from control.stand_still()
            yield from forward(self._working(), name=ITEM)
            if not control.standing.value.holds_back:
                yield from control.idle(control.until_paused(items.waiting()))

    def _working(self) -> Observable[WatchEvent]:
        """Work on one item after the other, in the user's tree: a pool in which nothing lands."""
        state = StateRef(PoolState())
        return pool_of(state, managed(self._next), self._attempt, lambda _land: empty())

    def _next(
        self, observer: Subscription[Listed], _scheduler: abc.SchedulerBase | None
    ) -> abc.DisposableBase:
        """Emit the first item that may begin."""
        if self._run.control.standing.value.holds_back:
            observer.on_next(Listed((), holds_back=True))
        else:
            name = self._items.next(self._run.lane.now)
            observer.on_next(Listed((name,) if name is not None else ()))
        return Disposable()

    def _attempt(self, start: Start) -> Observable[WatchEvent]:
        def story() -> Flow[None]:
            yield from emit(*self._items.notices())
            with self.commands.at_work(start.name):
                yield from self._process(start.name)

        return flow(story)

    def _process(self, name: str) -> Flow[None]:
        items = self._items
        if not (yield from items.claimed(name)):
            return
        yield from forward(act(partial(items.begins, name)))
        reason = yield from self._processed(name)
        if reason is not None:
            parked = yield from ask(act(partial(items.park, name, reason)))
            yield from emit(*([parked] if parked is not None else []))

    def _processed(self, name: str) -> Flow[str | None]:
        """Work on the item, and put it away; return the reason if it must be parked."""
        items = self._items
        try:
            options = yield from items.task(name)
        except (ConfigError, StorageError) as error:
            return (yield from items.failed(name, error, common=False))
        if options is None:
            return None
        try:
            last = yield from self._run_of(name, options)
        except ItemSkipped as skipped:
            return skipped.message
        except CugginoError as error:
            if ends_the_watch(error):
                raise
            return (yield from items.failed(name, error))
        items.succeeded(name)
        if not isinstance(last, LoopTerminalEvent):
            return None
        return (yield from items.finished(name, options, last))

    def _run_of(self, name: str, options: LoopRunOptions) -> Flow[object]:
        """Run the coding loop on the item, resuming its last run if that is unfinished."""
        resume = None
        if options.journal and options.item is not None:
            find = partial(latest_run_of, self._services.workspace, options.item)
            resume = yield from ask(act(find))
        settled, self._settled = self._settled, None
        if resume is not None and not resume.resumable and settled and settled[0] == name:
            return settled[1]
        if resume is not None and resume.resumable:
            going_on = resumed_options(options, resume.started)
            try:
                return (yield from self._work(going_on, resume))
            except RunNotResumable:
                pass  # written by another version: start over
        return (yield from self._work(options))

    def _work(self, options: LoopRunOptions, resume: JournalFile | None = None) -> Flow[object]:
        """Run the coding loop until it ends or a person skips the item."""
        control = self._run.control
        run = self._loop.run(
            options,
            resume=resume,
            ledger=self._ledger,
            control=control,
            branch=self._run.branch,
        )
        return (yield from forward(control.unless_skipped(within_loop(run)), name=ITEM))
