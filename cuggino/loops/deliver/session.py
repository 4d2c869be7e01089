"""One session of the deliver loop (AUT-020 to AUT-029)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from reactivex import Observable, abc, just, operators as ops

from cuggino.agents.base import SpawnOptions
from cuggino.domain import Deliverables
from cuggino.errors import (
    StorageError,
)
from cuggino.events import (
    DeliverablesListed,
    DeliverableState,
    DeliverableStatusChanged,
    DeliverSessionEnded,
    DeliverWarning,
    Event,
)
from cuggino.loops.frame.run import Run
from cuggino.loops.frame.session import end_session, run_session
from cuggino.operators import Flow, ask, emit
from cuggino.operators.alongside import alongside
from cuggino.operators.mapcat import mapcat
from cuggino.stages import act
from cuggino.storage import DeliverableStore, LoadedDeliverables, VerifiedFile


def listed(loaded: LoadedDeliverables, verified: Iterable[str] = ()) -> DeliverablesListed:
    """Return the deliverables that are wanted, as an event."""
    done = frozenset(verified)
    return DeliverablesListed(
        deliverables=tuple(
            DeliverableState(
                id=item.id,
                description=item.description,
                status=item.status,
                verified=item.id in done,
            )
            for item in loaded.deliverables.active
        )
    )


class DeliverSession:
    """One session, and the changes of the status file during it."""

    def __init__(
        self,
        number: int,
        run: Run,
        options: SpawnOptions,
        store: DeliverableStore,
        verified: VerifiedFile,
    ) -> None:
        self._number = number
        self._run = run
        self._options = options
        self._store = store
        self._verified = verified
        self._known: Deliverables | None = None
        self._shown: DeliverablesListed | None = None

    def run(self) -> Flow[None]:
        """Run the session, and watch the deliverables meanwhile.

        Emits the events of the agent and of its policies; each change of the status file as it is
        written, as `DeliverableStatusChanged` and `DeliverablesListed`; last `DeliverSessionEnded`.

        Raises:
            QuotaExceeded, BudgetExceeded: and what every other session would meet as well.
            Interrupted: a person has stopped it.
        """
        lane = self._run.lane
        began = lane.now
        yield from ask(act(lambda: self._begin(began)))
        report = yield from run_session(self._run, self._options, alongside(self._watched(lane)))
        late = yield from ask(act(lambda: self._look(lane.now)))
        yield from emit(*(late or ()))
        seconds = self._run.since(began)
        if report.is_silent:
            yield from emit(DeliverWarning(message=f"session {self._number} reported no result"))
        yield from end_session(
            report,
            DeliverSessionEnded(
                session=self._number,
                outcome=report.outcome,
                message=report.message,
                cost_usd=report.cost_usd,
                duration=seconds,
            ),
        )

    def _begin(self, now: datetime) -> None:
        loaded = self._store.load(now=now)
        self._known = None if loaded.broken else loaded.deliverables
        self._shown = listed(loaded, self._marks())

    def _marks(self) -> frozenset[str]:
        verification = self._verified.read()
        return verification.verified if verification is not None else frozenset()

    def _watched(self, here: abc.SchedulerBase) -> Observable[Event]:
        """Emit changes of the status file; if it cannot be watched, they are seen at the end."""

        def given_up(error: Exception, _source: Observable[Event]) -> Observable[Event]:
            folder = self._store.path.parent
            return just(DeliverWarning(message=f"{folder} cannot be watched: {error}"))

        changes = self._run.services.changes(self._store.path.parent)
        return changes.pipe(mapcat(lambda _change: self._look(here.now)), ops.catch(given_up))

    def _look(self, now: datetime) -> list[Event]:
        """Return the changes of the status file since the last look (AUT-115, AUT-116)."""
        try:
            loaded = self._store.load(now=now)
            marks = self._marks()
        except StorageError as error:
            return [DeliverWarning(message=error.message)]
        if loaded.broken is not None:
            return []  # told once, when the session is over
        events: list[Event] = []
        for item in loaded.deliverables.active:
            before = self._known.get(item.id) if self._known is not None else None
            if before is not None and before.status != item.status:
                events.append(
                    DeliverableStatusChanged(
                        deliverable_id=item.id,
                        description=item.description,
                        previous=before.status,
                        status=item.status,
                    )
                )
        self._known = loaded.deliverables
        now_listed = listed(loaded, marks)
        if now_listed != self._shown:
            self._shown = now_listed
            events.append(now_listed)
        return events
