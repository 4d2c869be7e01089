"""The items of a watch: which are ready, and how each of them ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, TypeVar

from reactivex import Observable, empty, operators as ops
from reactivex.subject import BehaviorSubject

from cuggino.domain import (
    Attempts,
    ReadyOrder,
    hits_every_item,
    is_full_disk,
    needs_login,
    parse_every,
)
from cuggino.errors import (
    BudgetExceeded,
    ClusterLost,
    CugginoError,
    Interrupted,
    QuotaExceeded,
    ReplayDiverged,
    SessionError,
    StorageError,
    cause_of,
)
from cuggino.events import (
    LoopMaxIterations,
    LoopSpecIssue,
    LoopStalled,
    LoopTerminalEvent,
    WatchEvent,
    WatchItemCompleted,
    WatchItemHeld,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchItemSkipped,
    WatchLoopEvent,
    WatchPolling,
    WatchProcessingItem,
    checked_of,
)
from cuggino.loops.coding.options import LoopRunOptions
from cuggino.loops.frame.control import Standing
from cuggino.loops.frame.run import Run
from cuggino.loops.watch.journal import last_audit, restore_attempts
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.waiting import Situation, waiting_phase
from cuggino.operators import Flow, ask, emit, flow, pause
from cuggino.operators.merge_now import merge_now
from cuggino.operators.supervision import QuotaGate
from cuggino.stages import (
    PollingStarted,
    act,
    audit_stage,
    count_files,
    watch_file_count,
)
from cuggino.storage import Backlog, Survey

T = TypeVar("T")

_FEW = 1000
"""Entries of a backlog that are listed before each item."""

_FULL_DISK = timedelta(minutes=1)
"""The pause of all items when their files cannot be written."""

_EACH = timedelta(microseconds=100)
"""Time for which a larger backlog is not listed again, for each of its entries."""

_LOOK_AGAIN = 300.0
"""The longest wait for a time, in seconds: timers of a machine that was suspended are late."""

_NONE: Mapping[str, str] = MappingProxyType({})


Claim: TypeAlias = Callable[[str], Observable[bool]]
"""Emits whether work on an item may begin on this machine."""


class Listing(NamedTuple):
    """The backlog, as it was at one moment."""

    survey: Survey
    order: ReadyOrder
    """The order of the items, by their texts and the outcomes of those before them."""
    at: datetime = datetime.min.replace(tzinfo=UTC)
    """When the watch last read it."""


class _Told(NamedTuple):
    """The notices that were reported, and are not repeated while they last."""

    skipped: Mapping[str, str] = _NONE
    held: Mapping[str, str] = _NONE
    polled: frozenset[str] = frozenset()


class Items:
    """The items of one watch, and the state that they share."""

    def __init__(
        self,
        run: Run,
        options: WatchRunOptions,
        claim: Claim | None = None,
        looks: Observable[None] | None = None,
    ) -> None:
        self._claim = claim
        self._run = run
        self._options = options
        self.backlog = Backlog(run.services.workspace)
        self.listing = Listing(Survey([], {}), ReadyOrder())
        self.attempts = Attempts(options.max_attempts, options.retry_seconds)
        if run.resumed is not None:
            restore_attempts(self.attempts, run.resumed)
        self._audited = last_audit(run.services.workspace) if options.audit_every else None
        """When the last audit began, also one of an earlier watch."""
        self._told_to_log_in = False
        self._places: dict[str, int] = {}
        """The items in the order in which the watch came to them, from 1."""
        self._told = _Told()
        self._polling: dict[str, WatchPolling] = {}
        self._signs: BehaviorSubject[object] = BehaviorSubject(None)
        looks = empty() if looks is None else looks.pipe(ops.observe_on(run.lane))
        self._looks: Observable[object] = merge_now(self._signs, looks)
        """Signals to check the folders at once, the first of them at subscription."""

    def waiting(
        self, situation: Callable[[list[str], Listing, datetime], Situation] | None = None
    ) -> Observable[WatchEvent]:
        """Wait until work can begin in the `situation`, with the audit if it is enabled."""
        options = self._options
        audit = audit_stage(self._run.place) if options.audit else None
        spec_issues, backlog = self.folders()
        return waiting_phase(
            spec_issues=spec_issues,
            backlog=backlog,
            situation=situation or self.situation,
            notices=self.notices,
            next_attempt=self.next_due,
            audit=audit,
            audits=self._audits(),
        )

    def folders(self) -> tuple[Observable[list[str]], Observable[Listing]]:
        """Return the names of the spec issues and the listing of the backlog, as they change.

        A change in either folder restarts the debounce of both, so that an item and a spec issue
        that arrive within one are seen together (CUG-104). Both are emitted again at once after
        `look_again`.
        """
        services = self._run.services
        workspace, changes = services.workspace, services.changes
        both = (workspace.spec_issues, workspace.backlog)
        changed = merge_now(*map(changes, both)).pipe(ops.share())

        def watched(folder: Path, count: Callable[[], T]) -> Observable[T]:
            counted = watch_file_count(
                folder,
                settle=self._options.settle_seconds,
                changes=lambda _: changed,
                count=lambda _: count(),
                on_polling=self._note_polling,
            )
            return self._looks.pipe(ops.map(lambda _: counted), ops.switch_latest())

        return (
            watched(workspace.spec_issues, workspace.spec_issue_names),
            watched(workspace.backlog, self._listing),
        )

    def _listing(self) -> Listing:
        """List the backlog, in a workspace that this process still holds.

        Raises:
            WorkspaceLocked: the lock was removed, and another process has taken it.
        """
        self._run.services.workspace.keep_lock()
        survey = self.backlog.survey()
        return Listing(survey, self.backlog.order(survey.items, now=self._run.lane.now))

    def changes(self) -> Observable[object]:
        """Emit whenever the backlog or the spec issues may have changed."""
        return merge_now(*self.folders())

    def look_again(self) -> None:
        """Check whether something can begin, as after a change of the folders."""
        self._signs.on_next(None)

    def situation(self, issues: list[str], listing: Listing, now: datetime) -> Situation:
        """Return the state of the folders, as they were seen."""
        self.take(listing, now)
        free = list(self.listing.order.ready)
        ready = len([*self.attempts.due(free, now)])
        return Situation(issues=len(issues), ready=ready, paused=len(free) - ready)

    def take(self, listing: Listing, now: datetime, blocked: Mapping[str, str] = _NONE) -> None:
        """Take the backlog as it was listed.

        Those that are `blocked` wait for a person, each with the reason.
        """
        survey, order, _ = listing
        if blocked or order.later:
            order = self.backlog.order(survey.items, held=blocked, now=now)
        self.listing = Listing(survey, order, now)

    def next(self, now: datetime) -> str | None:
        """Return the first item that can be worked on now; None when there is none, or an issue."""
        if count_files(self._run.services.workspace.spec_issues):
            return None
        self.look(now)
        due = self.attempts.due(self.listing.order.ready, now)
        return next((name for name in due if self.backlog.may_begin(name, now)), None)

    def next_due(self, listing: Listing, now: datetime) -> float | None:
        """Return the seconds after which a paused or a later item may begin; None without one."""
        later = ((due.at - now).total_seconds() for due in listing.order.later.values())
        paused = self.attempts.next_due(listing.survey.items, now)
        dues = [*filter(lambda left: left > 0, later), *([] if paused is None else [paused])]
        return min(*dues, _LOOK_AGAIN) if dues else None

    def _audits(self) -> Observable[object]:
        """Emit when an audit is due: once, or with `auditEvery` again and again within the hours.

        The first of a cron expression is due when the expression is, others at once.
        """
        lane, standing = self._run.lane, self._run.control.standing
        every = parse_every(text) if (text := self._options.audit_every) is not None else None

        def due() -> datetime:
            last = self._audited or lane.now
            if every is None or (self._audited is None and not every.is_timed):
                return lane.now
            return last + timedelta(seconds=every.delay(0, now=last) or 0.0)

        def story() -> Flow[None]:
            while True:
                at = due()
                while (left := (at - lane.now).total_seconds()) > 0:
                    yield from pause(min(left, _LOOK_AGAIN))
                within: Observable[Standing] = standing.changes.pipe(ops.filter(_is_open))
                yield from ask(within.pipe(ops.take(1)))
                self._audited = lane.now
                yield from emit(None)
                if every is None:
                    return

        return flow(story)

    def look(self, now: datetime, blocked: Mapping[str, str] = _NONE) -> None:
        """List the backlog, and take it.

        A large backlog is listed again only after ten times as long as that takes, so that each
        item costs about the same, however many there are.
        """
        survey = self.listing.survey
        size = len(survey.items) + len(survey.problems)
        if size <= _FEW or not now - self.listing.at < size * _EACH:
            self.take(self._listing(), now, blocked)

    def begins(self, name: str, slot: int = 0, returns: int = 0) -> WatchProcessingItem:
        """Return the beginning of work on the item, with its place among all of them."""
        self._places.setdefault(name, len(self._places) + 1)
        begun = WatchProcessingItem(filename=name, slot=slot, returns=returns)
        if not self._run.services.shows_plans:
            return begun
        return begun.model_copy(
            update={
                "title": self.backlog.title(name),
                "position": self._places[name],
                "total": len(self._places.keys() | set(self.listing.survey.items)),
            }
        )

    def claimed(self, name: str) -> Flow[bool]:
        """Return whether work on the item may begin, and no other machine has begun it."""
        if self._claim is None:
            return True
        return (yield from ask(self._claim(name))) is not False

    def task(self, name: str) -> Flow[LoopRunOptions | None]:
        """Return the options of a run of the item; None if it is gone.

        Raises:
            ConfigError: it is blank, or gone by now.
            StorageError: it cannot be read.
        """
        digest = yield from ask(act(lambda: self.backlog.digest(name)))
        if digest is None:
            return None
        review = self.attempts.review(name)
        made = partial(item_options, self._options, self.backlog, name, digest, review=review)
        return (yield from ask(act(made)))

    def finished(
        self, name: str, options: LoopRunOptions, last: LoopTerminalEvent
    ) -> Flow[str | None]:
        """Put away an item whose run ended without an error (CUG-107).

        Returns the reason if it must be parked instead.
        """
        if isinstance(last, LoopSpecIssue):
            return None
        if isinstance(last, LoopMaxIterations) and self._options.on_max_iterations == "park":
            return last.message
        if isinstance(last, LoopStalled) and last.reason == "approval":
            return last.message
        if isinstance(last, LoopStalled):
            return (yield from self._stalled(name, last))
        return (yield from self.archive(name, options.item or "", last))

    def archive(self, name: str, item: str, last: LoopTerminalEvent) -> Flow[str | None]:
        """Archive an item whose work is done, unless its text no longer matches `item`.

        Returns the reason if it must be parked instead.
        """
        _, _, digest = item.rpartition(" ")
        outcome = "max-iterations" if isinstance(last, LoopMaxIterations) else "approved"
        moved = yield from ask(act(lambda: self.backlog.archive(name, outcome, digest)))
        if moved:
            self.attempts.forget(name)
            yield from emit(WatchItemCompleted(filename=name, checked=checked_of(last)))
        elif self.backlog.is_there(name):
            if self.attempts.edited(name):
                return f"it was edited during each of {self._options.max_attempts} runs"
            yield from emit(WatchItemRetained(filename=name))
        return None

    def _stalled(self, name: str, last: LoopStalled) -> Flow[str | None]:
        """Run the item once more with the findings of its stalled run, then park it."""
        review = _review_of(last)
        if not self.attempts.stalled(name, review) or not self.backlog.is_there(name):
            return last.message
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
        return None

    def succeeded(self, name: str) -> None:
        """Forget the failures of an item whose run has ended without an error."""
        self.attempts.succeeded(name)
        self._told_to_log_in = False

    def failed(
        self, name: str, error: CugginoError, *, common: bool | None = None
    ) -> Flow[str | None]:
        """Schedule a retry of the item, or return why it must be parked.

        A `common` failure is not counted; by default that is what fails every item.
        """
        common = hits_every_item(error) if common is None else common
        if not self.backlog.is_there(name):
            self.attempts.forget(name)
            return None
        now = self._run.lane.now
        attempt = self.attempts.count(name) + 1
        cause = cause_of(error)
        pause: float | None
        login = needs_login(error)
        if login:
            pause = self.attempts.wait(now)
        elif common:
            lifted = _lifted_at(cause, self._run.services.gate, now, self._options.quota_margin)
            # Items that meet the same limit at the same time wait no longer for that.
            known = self.attempts.paused(now) if lifted is None else 0.0
            pause = known or self.attempts.limited(now, lifted)
        else:
            pause = self.attempts.failed(name, now)
        if pause is None:
            return error.message
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
        return None

    def park(self, name: str, reason: str) -> WatchItemParked | None:
        """Move the item to `parked/` at once, with the reason beside it; None when it is gone."""
        parked = self.backlog.park(name, reason)
        self.attempts.forget(name)
        return None if parked is None else WatchItemParked(filename=name, reason=reason)

    def notices(self) -> list[WatchLoopEvent]:
        """Return new notices: skipped files of the backlog, held items, and polled folders."""
        told, skipped, held = self._told, self.listing.survey.problems, self.listing.order.reasons
        self._told = _Told(skipped, held, frozenset(self._polling))
        return [
            *(event for folder, event in self._polling.items() if folder not in told.polled),
            *(
                WatchItemSkipped(filename=name, reason=reason)
                for name, reason in skipped.items()
                if told.skipped.get(name) != reason
            ),
            *(
                WatchItemHeld(filename=name, reason=reason)
                for name, reason in held.items()
                if told.held.get(name) != reason
            ),
        ]

    def _note_polling(self, started: PollingStarted) -> None:
        notice = WatchPolling(folder=str(started.folder), reason=started.reason)
        self._polling.setdefault(notice.folder, notice)
        if notice.folder not in self._told.polled:
            self._signs.on_next(started)


def item_options(
    options: WatchRunOptions, backlog: Backlog, name: str, digest: str, *, review: str | None = None
) -> LoopRunOptions:
    """Return the options of an item's run: those of the watch, with it as focus (CUG-106).

    Raises:
        ConfigError: it is blank or gone, or its front matter is wrong.
    """
    given = dict(options)
    shared = {key: given[key] for key in LoopRunOptions.model_fields if key in given}
    if options.dirty == "refuse":  # looked at once, when the watch began
        shared["dirty"] = "keep"
    shared["limits_network"] = backlog.limits_network(name)
    attempts = backlog.attempts(name)
    made = LoopRunOptions(
        **shared,
        focus=backlog.focus(name),
        item=f"{name} {digest}",
        review=review,
        store_findings=review is not None,
    )
    # Without validation: what is missing for them is an error of the item's run.
    return made.model_copy(update={"attempts": options.attempts_at(attempts)})


def _is_open(standing: Standing) -> bool:
    return standing.closed_until is None


def _review_of(stalled: LoopStalled) -> str:
    """Return the review for the first planning agent of the next run."""
    findings = "".join(f"\n\n- {finding}" for finding in stalled.findings)
    return (
        f"An earlier run of this task made no progress: {stalled.message}. Find out why, and plan "
        f"another way: smaller tasks, what stands in the way first.{findings}"
    )


def ends_the_watch(error: CugginoError) -> bool:
    """Return whether no other item can be worked on either.

    A person has stopped it, a budget is spent, the cluster is lost, a replay diverges, or the
    workspace cannot be written; a missing plan is the agent's failure.
    """
    cause = cause_of(error)
    if isinstance(cause, BudgetExceeded | ClusterLost | Interrupted | ReplayDiverged):
        return True
    return isinstance(error, StorageError) and not isinstance(error, SessionError)


def _lifted_at(
    error: CugginoError | None, gate: QuotaGate, now: datetime, margin: float
) -> datetime | None:
    """Return when the usage limit is lifted, plus `margin` seconds; None if unknown.

    A disk that is full is looked at again after a minute. A closed gate takes precedence: `resets
    3pm`, reported again just after 3 pm, is not tomorrow.
    """
    if isinstance(error, StorageError) or (error is not None and is_full_disk(error)):
        return now + _FULL_DISK
    if not isinstance(error, QuotaExceeded):
        return None
    lifted = gate.resets_at if gate.remaining(now) > 0 else error.resets_at
    if lifted is None or lifted <= now:
        return None
    return lifted + timedelta(seconds=margin)
