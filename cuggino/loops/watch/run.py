"""One watch: waiting, running the first item, putting it away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from reactivex import Observable, combine_latest, operators as ops
from reactivex.subject import Subject

from cuggino.domain import Attempts, hits_every_item, needs_login
from cuggino.errors import (
    BudgetExceeded,
    ConfigError,
    CugginoError,
    Interrupted,
    ItemSkipped,
    LoopError,
    QuotaExceeded,
    ReplayDiverged,
    RunNotResumable,
    SessionError,
    StorageError,
)
from cuggino.events import (
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    LoopTerminalEvent,
    WatchEvent,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchItemSkipped,
    WatchLoopEvent,
    WatchPolling,
    WatchProcessingItem,
)
from cuggino.loops.coding.options import CodingOptions, LoopRunOptions
from cuggino.loops.coding.service import LoopService
from cuggino.loops.frame.history import dirty_files
from cuggino.loops.frame.resuming import latest_run_of, resumed_options
from cuggino.loops.frame.run import Run
from cuggino.loops.frame.services import Changes
from cuggino.loops.watch.audit import audit_stage
from cuggino.loops.watch.journal import (
    ITEM,
    restore_attempts,
)
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.waiting import Situation, waiting_phase
from cuggino.operators import Flow, QuotaGate, ask, emit, forward, within_loop
from cuggino.stages import (
    PollingStarted,
    act,
    clock,
    count_files,
    watch_file_count,
)
from cuggino.storage import Backlog, JournalFile, Survey, read_focus

_FEW = 1000
"""Entries of a backlog that are listed before each item."""

_EACH = timedelta(microseconds=100)
"""Time for which a larger backlog is not listed again, for each of its entries."""


class Watch:
    """One watch: the state that its items share."""

    reports_interruption = False
    is_resumable = True

    def __init__(
        self,
        run: Run,
        options: WatchRunOptions,
        loop: LoopService,
        settled: tuple[str, LoopTerminalEvent] | None = None,
    ) -> None:
        self._run = run
        self._services = run.services
        self._options = options
        self._loop = loop
        self._backlog = Backlog(run.services.workspace)
        self._survey = Survey([], {})
        """What the latest look has shown."""
        self._surveyed = datetime.min.replace(tzinfo=UTC)
        """The time of that look."""
        self._attempts = Attempts(options.max_attempts, options.retry_seconds)
        if run.resumed is not None:
            restore_attempts(self._attempts, run.resumed)
        self._settled = settled
        """An item that the last watch did not come to put away, and how its run had ended."""
        self._ledger = run.supervision.ledger
        self._told_to_log_in = False
        self._edited: Counter[str] = Counter()
        self._places: dict[str, int] = {}
        """The items in the order in which the watch came to them, from 1."""
        self._skipped: dict[str, str] = {}
        self._polling: dict[Path, WatchPolling] = {}
        self._polling_told: set[Path] = set()
        self._polling_begun: Subject[object] = Subject()

    def opening(self) -> Flow[None]:
        """Emit nothing."""
        yield from ()

    def tell(self) -> Flow[None]:
        """Wait, take the first item, run the coding loop on it, put it away; indefinitely."""
        options = self._options
        if options.commit and options.dirty == "refuse" and self._run.resumed is None:
            specs = (Path(options.specs_path),)
            yield from dirty_files(self._services.repository, options, exclude=specs)
        control = self._run.control
        while True:
            yield from control.stand_still()
            now = yield from self._now()
            name = yield from ask(act(partial(self._next, now)))
            if name is None:
                with control.idle():
                    yield from forward(self._waiting())
                continue  # and look again: ending an audit takes its time
            yield from emit(*self._notices())
            with control.at_work(name):
                yield from self._process(name)

    def _waiting(self) -> Observable[WatchEvent]:
        services, options = self._services, self._options
        audit = audit_stage(self._run, options) if options.audit else None
        backlog = services.workspace.backlog
        # One watcher for both counts: an item may become one, or cease to be, by being edited.
        changed = services.changes(backlog).pipe(ops.share())
        items = self._count(backlog, lambda _: len(self._backlog.items()), lambda _: changed)
        others = self._count(backlog, lambda _: len(self._backlog.problems()), lambda _: changed)
        return waiting_phase(
            spec_issues=self._count(services.workspace.spec_issues, count_files, services.changes),
            backlog=combine_latest(items, others),
            look=self._look,
            notices=self._notices,
            next_attempt=lambda now: self._attempts.next_due(self._survey.items, now),
            news=self._polling_begun,
            audit=audit,
        )

    def _count(
        self, folder: Path, count: Callable[[Path], int], changes: Changes
    ) -> Observable[int]:
        return watch_file_count(
            folder,
            settle=self._options.settle_seconds,
            changes=changes,
            count=count,
            on_polling=self._note_polling,
        )

    def _look(self, now: datetime) -> Situation:
        self._survey, self._surveyed = self._backlog.survey(), now
        ready = len(self._attempts.ready(self._survey.items, now))
        issues = count_files(self._services.workspace.spec_issues)
        return Situation(issues=issues, ready=ready, paused=len(self._survey.items) - ready)

    def _next(self, now: datetime) -> str | None:
        """Return the first item that can be worked on now; None when there is none, or an issue.

        A large backlog is listed again only after ten times as long as that takes, so that each
        item costs about the same, however many there are.
        """
        if count_files(self._services.workspace.spec_issues):
            return None
        size = len(self._survey.items) + len(self._survey.problems)
        if size <= _FEW or not now - self._surveyed < size * _EACH:
            self._survey, self._surveyed = self._backlog.survey(), now
        due = self._attempts.due(self._survey.items, now)
        return next(filter(self._backlog.is_item, due), None)

    def _process(self, name: str) -> Flow[None]:
        yield from forward(act(lambda: self._begins(name)))
        try:
            digest = yield from ask(act(lambda: self._backlog.digest(name)))
            if digest is None:
                return
            options = yield from ask(act(partial(self._loop_options, name, digest)))
        except (ConfigError, StorageError) as error:  # it is gone, blank or unreadable by now
            yield from self._failed(name, error)
            return
        assert options is not None
        try:
            last = yield from self._run_of(name, options)
        except ItemSkipped as skipped:
            yield from self._park(name, skipped.message)
            return
        except CugginoError as error:
            if _ends_the_watch(error):
                raise
            yield from self._failed(name, error, common=hits_every_item(error))
            return
        self._attempts.succeeded(name)
        self._told_to_log_in = False
        if isinstance(last, LoopTerminalEvent):
            yield from self._finished(name, digest, last)

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
                pass  # written by another version: begin anew
        return (yield from self._work(options))

    def _work(self, options: LoopRunOptions, resume: JournalFile | None = None) -> Flow[object]:
        """Run the coding loop until it ends or a person skips the item."""
        control = self._run.control
        run = self._loop.run(options, resume=resume, ledger=self._ledger, control=control)
        return (yield from forward(control.unless_skipped(within_loop(run)), name=ITEM))

    def _begins(self, name: str) -> WatchProcessingItem:
        """Return the beginning of work on the item, with its place among all of them."""
        self._places.setdefault(name, len(self._places) + 1)
        if not self._services.shows_plans:
            return WatchProcessingItem(filename=name)
        return WatchProcessingItem(
            filename=name,
            title=self._backlog.title(name),
            position=self._places[name],
            total=len(self._places.keys() | set(self._survey.items)),
        )

    def _finished(self, name: str, digest: str, last: LoopTerminalEvent) -> Flow[None]:
        """Put away an item whose run ended without an error (CUG-107)."""
        if isinstance(last, LoopSpecIssue):
            return
        if isinstance(last, LoopMaxIterations) and self._options.on_max_iterations == "park":
            yield from self._park(name, last.message)
            return
        if isinstance(last, LoopStalled):
            yield from self._stalled(name, last)
            return
        outcome = "max-iterations" if isinstance(last, LoopMaxIterations) else "approved"
        moved = yield from ask(act(lambda: self._backlog.archive(name, outcome, digest)))
        if moved:
            self._edited.pop(name, None)
            self._attempts.forget(name)
            yield from emit(WatchItemCompleted(filename=name))
        elif self._backlog.is_there(name):
            self._edited[name] += 1
            if self._edited[name] >= self._options.max_attempts:
                times = self._edited.pop(name)
                yield from self._park(name, f"it was edited during each of {times} runs")
            else:
                yield from emit(WatchItemRetained(filename=name))

    def _stalled(self, name: str, last: LoopStalled) -> Flow[None]:
        """Run the item once more with the findings of its stalled run, then park it."""
        review = _review_of(last)
        if not self._attempts.stalled(name, review) or not self._backlog.is_there(name):
            yield from self._park(name, last.message)
            return
        yield from emit(
            WatchItemRetry(
                filename=name,
                message=last.message,
                attempt=1,
                max_attempts=2,
                retry_in=0.0,
                counted=False,
                review=review,
            )
        )

    def _failed(self, name: str, error: CugginoError, *, common: bool = False) -> Flow[None]:
        """Schedule a retry of the item, or park it; a `common` failure is not counted."""
        if not self._backlog.is_there(name):
            self._attempts.forget(name)
            return
        now = yield from self._now()
        attempt = self._attempts.count(name) + 1
        cause = error.cause if isinstance(error, LoopError) else error
        pause: float | None
        login = needs_login(error)
        if login:
            pause = self._attempts.wait(now)
        elif common:
            lifted = _lifted_at(cause, self._services.gate, now, self._options.quota_margin)
            pause = self._attempts.limited(now, lifted)
        else:
            pause = self._attempts.failed(name, now)
        if pause is None:
            yield from self._park(name, error.message)
            return
        yield from emit(
            WatchItemRetry(
                filename=name,
                message=f"{error.message}; {error.hint}" if login and error.hint else error.message,
                attempt=attempt,
                max_attempts=self._options.max_attempts,
                retry_in=pause,
                counted=not common,
                login=login and not self._told_to_log_in,
            )
        )
        self._told_to_log_in = login

    def _park(self, name: str, reason: str) -> Flow[None]:
        """Out of the backlog, with the reason beside it; nothing to do when it is gone."""
        parked = yield from ask(act(lambda: self._backlog.park(name, reason)))
        self._attempts.forget(name)
        if parked is not None:
            yield from emit(WatchItemParked(filename=name, reason=reason))

    def _loop_options(self, name: str, digest: str) -> LoopRunOptions:
        """The run of an item: the same settings as every run, the item as the focus (CUG-106)."""
        options = self._options
        shared = {key: getattr(options, key) for key in CodingOptions.model_fields}
        if options.dirty == "refuse":  # looked at once, when the watch began
            shared["dirty"] = "keep"
        path = self._backlog.path(name).relative_to(options.cwd)
        return LoopRunOptions(
            **shared,
            focus=read_focus(f"@{path}", options.cwd),
            item=f"{name} {digest}",
            review=self._attempts.review(name),
            store_findings=self._attempts.review(name) is not None,
        )

    def _note_polling(self, started: PollingStarted) -> None:
        notice = WatchPolling(folder=str(started.folder), reason=started.reason)
        self._polling.setdefault(started.folder, notice)
        if started.folder not in self._polling_told:
            self._polling_begun.on_next(started)

    def _notices(self) -> list[WatchLoopEvent]:
        """Return new notices: skipped files of the backlog, and polled folders."""
        problems = self._survey.problems
        skipped = [
            WatchItemSkipped(filename=name, reason=reason)
            for name, reason in problems.items()
            if self._skipped.get(name) != reason
        ]
        polling = [
            notice for folder, notice in self._polling.items() if folder not in self._polling_told
        ]
        self._skipped = problems
        self._polling_told |= self._polling.keys()
        return [*polling, *skipped]

    def _now(self) -> Flow[datetime]:
        now = yield from ask(clock())
        assert now is not None
        return now


def _review_of(stalled: LoopStalled) -> str:
    """Return what the first planning agent of the next run is told."""
    findings = "".join(f"\n\n- {finding}" for finding in stalled.findings)
    return (
        f"An earlier run of this task made no progress: {stalled.message}. Find out why, and plan "
        f"another way: smaller tasks, what stands in the way first.{findings}"
    )


def _ends_the_watch(error: CugginoError) -> bool:
    """Return whether no other item can be worked on either.

    A person has stopped it, a budget is spent, a replay diverges, or the workspace cannot be
    written; a missing plan is the agent's failure.
    """
    cause = error.cause if isinstance(error, LoopError) else error
    if isinstance(cause, BudgetExceeded | Interrupted | ReplayDiverged):
        return True
    return isinstance(error, StorageError) and not isinstance(error, SessionError)


def _lifted_at(
    error: CugginoError | None, gate: QuotaGate, now: datetime, margin: float
) -> datetime | None:
    """Return when the usage limit is lifted, plus `margin` seconds; None if unknown.

    A closed gate takes precedence: `resets 3pm`, reported again just after 3 pm, is not tomorrow.
    """
    if not isinstance(error, QuotaExceeded):
        return None
    lifted = gate.resets_at if gate.remaining(now) > 0 else error.resets_at
    if lifted is None or lifted <= now:
        return None
    return lifted + timedelta(seconds=margin)
