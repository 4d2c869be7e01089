"""One watch: waiting, taking the first item, saying what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reactivex import Observable, combine_latest, operators as ops
from reactivex.subject import Subject

from cuggino.domain.attempts import Attempts, hits_every_item
from cuggino.errors import (
    ConfigError,
    CugginoError,
    LoopError,
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
from cuggino.loops.audit import audit_stage
from cuggino.loops.options import LoopRunOptions, PacedSettings, WatchRunOptions
from cuggino.loops.resuming import latest_run_of, resumed_options
from cuggino.loops.supervising import (
    is_diverged,
    is_spent,
    ledger_of,
    lifted_at,
    supervision,
)
from cuggino.loops.waiting import Situation, waiting_phase
from cuggino.loops.watch_journal import (
    ITEM,
    restore_attempts,
)
from cuggino.operators import Flow, ask, emit, forward
from cuggino.stages import act, clock
from cuggino.stages.folders import (
    PollingStarted,
    count_files,
    watch_file_count,
)
from cuggino.storage import Backlog, JournalFile, Survey, read_focus

Changes = Callable[[Path], Observable[object]]
"""Emits something whenever a folder has changed."""


if TYPE_CHECKING:
    from cuggino.loops.watch import WatchService


class Watch:
    """One watch: what its items share."""

    def __init__(
        self,
        service: WatchService,
        options: WatchRunOptions,
        killed: JournalFile | None = None,
        settled: tuple[str, LoopTerminalEvent] | None = None,
    ) -> None:
        self._service = service
        self._options = options
        self._backlog = Backlog(service.workspace)
        self._survey = Survey([], {})
        """What the latest look has shown. A round looks once: large backlogs take their time."""
        self._attempts = Attempts(options.max_attempts, options.retry_seconds)
        if killed is not None:
            restore_attempts(self._attempts, killed)
        self._settled = settled
        """An item that the last watch did not come to put away, and how its run had ended."""
        self._ledger = ledger_of(killed)
        self._edited: Counter[str] = Counter()
        self._skipped: dict[str, str] = {}
        self._polling: dict[Path, WatchPolling] = {}
        self._polling_told: set[Path] = set()
        self._polling_begun: Subject[object] = Subject()

    def forever(self) -> Flow[None]:
        """Wait, take the first item, work on it, say what became of it."""
        while True:
            now = yield from self._now()
            situation = yield from ask(act(partial(self._look, now)))
            if situation is None or not situation.can_begin:
                yield from forward(self._waiting())
                continue  # and look again: ending an audit takes its time
            yield from emit(*self._notices())
            yield from self._process(self._ready(now)[0])

    def _waiting(self) -> Observable[WatchEvent]:
        service, options = self._service, self._options
        audit = None
        if options.audit:
            policies = supervision(options, gate=service.gate, ledger=self._ledger)
            audit = audit_stage(
                service.agent, service.workspace, service.prompts, options, policies
            )
        backlog = service.workspace.backlog
        # One watcher for both counts: an item may become one, or cease to be, by being edited.
        changed = service.changes(backlog).pipe(ops.share())
        items = self._count(backlog, lambda _: len(self._backlog.items()), lambda _: changed)
        others = self._count(backlog, lambda _: len(self._backlog.problems()), lambda _: changed)
        return waiting_phase(
            spec_issues=self._count(service.workspace.spec_issues, count_files, service.changes),
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
        self._survey = self._backlog.survey()
        ready = len(self._ready(now))
        issues = count_files(self._service.workspace.spec_issues)
        return Situation(issues=issues, ready=ready, paused=len(self._survey.items) - ready)

    def _ready(self, now: datetime) -> list[str]:
        return self._attempts.ready(self._survey.items, now)

    def _process(self, name: str) -> Flow[None]:
        yield from emit(WatchProcessingItem(filename=name))
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
        except CugginoError as error:
            if is_spent(error) or _cannot_store(error) or is_diverged(error):
                raise
            yield from self._failed(name, error, common=hits_every_item(error))
            return
        self._attempts.succeeded(name)
        if isinstance(last, LoopTerminalEvent):
            yield from self._finished(name, digest, last)

    def _run_of(self, name: str, options: LoopRunOptions) -> Flow[object]:
        """The coding loop on the item; the last run goes on if it had not come to its end."""
        loop, resume = self._service.loop, None
        if options.journal and options.item is not None:
            find = partial(latest_run_of, self._service.workspace, options.item)
            resume = yield from ask(act(find))
        settled, self._settled = self._settled, None
        if resume is not None and not resume.resumable and settled and settled[0] == name:
            return settled[1]
        if resume is not None and resume.resumable:
            going_on = resumed_options(options, resume.started)
            try:
                run = loop.run(going_on, resume=resume, ledger=self._ledger)
                return (yield from forward(run, name=ITEM))
            except RunNotResumable:
                pass  # written by another version: begin anew
        return (yield from forward(loop.run(options, ledger=self._ledger), name=ITEM))

    def _finished(self, name: str, digest: str, last: LoopTerminalEvent) -> Flow[None]:
        """What becomes of an item whose run ended without an error (CUG-107)."""
        if isinstance(last, LoopSpecIssue):
            return
        if isinstance(last, LoopMaxIterations) and self._options.on_max_iterations == "park":
            yield from self._park(name, f"not approved within {last.max_iterations} rounds")
            return
        if isinstance(last, LoopStalled):
            yield from self._park(name, last.message)
            return
        outcome = "max-iterations" if isinstance(last, LoopMaxIterations) else "approved"
        moved = yield from ask(act(lambda: self._backlog.archive(name, outcome, digest)))
        if moved:
            self._edited.pop(name, None)
            yield from emit(WatchItemCompleted(filename=name))
        elif self._backlog.is_there(name):
            self._edited[name] += 1
            if self._edited[name] >= self._options.max_attempts:
                times = self._edited.pop(name)
                yield from self._park(name, f"it was edited during each of {times} runs")
            else:
                yield from emit(WatchItemRetained(filename=name))

    def _failed(self, name: str, error: CugginoError, *, common: bool = False) -> Flow[None]:
        """Try the item again later, or park it; what is `common` to all items costs no attempt."""
        if not self._backlog.is_there(name):
            self._attempts.forget(name)
            return
        now = yield from self._now()
        attempt = self._attempts.count(name) + 1
        cause = error.cause if isinstance(error, LoopError) else error
        pause: float | None
        if common:
            lifted = lifted_at(cause, self._service.gate, now, self._options.quota_margin)
            pause = self._attempts.limited(now, lifted)
        else:
            pause = self._attempts.failed(name, now)
        if pause is None:
            yield from self._park(name, error.message)
            return
        yield from emit(
            WatchItemRetry(
                filename=name,
                message=error.message,
                attempt=attempt,
                max_attempts=self._options.max_attempts,
                retry_in=pause,
                counted=not common,
            )
        )

    def _park(self, name: str, reason: str) -> Flow[None]:
        """Out of the backlog, with the reason beside it; nothing to do when it is gone."""
        parked = yield from ask(act(lambda: self._backlog.park(name, reason)))
        self._attempts.forget(name)
        if parked is not None:
            yield from emit(WatchItemParked(filename=name, reason=reason))

    def _loop_options(self, name: str, digest: str) -> LoopRunOptions:
        """The run of an item: the same settings as every run, the item as the focus (CUG-106)."""
        options = self._options
        settings = {key: getattr(options, key) for key in PacedSettings.model_fields}
        path = self._backlog.path(name).relative_to(options.cwd)
        return LoopRunOptions(
            focus=read_focus(f"@{path}", options.cwd),
            cwd=options.cwd,
            slow=options.slow,
            command="cuggino watch",
            agent=options.agent,
            item=f"{name} {digest}",
            **settings,
        )

    def _note_polling(self, started: PollingStarted) -> None:
        notice = WatchPolling(folder=str(started.folder), reason=started.reason)
        self._polling.setdefault(started.folder, notice)
        if started.folder not in self._polling_told:
            self._polling_begun.on_next(started)

    def _notices(self) -> list[WatchLoopEvent]:
        """What is to be said once: what in the backlog is no item, which folder is polled."""
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


def _cannot_store(error: CugginoError) -> bool:
    """Whether the workspace cannot be written; a session without a plan is the agent's fault."""
    return isinstance(error, StorageError) and not isinstance(error, SessionError)
