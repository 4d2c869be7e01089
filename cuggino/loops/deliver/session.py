"""One session of the deliver loop (AUT-020 to AUT-029)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reactivex import Observable, just, operators as ops

from cuggino.agents.base import SpawnOptions
from cuggino.domain import Deliverables
from cuggino.errors import StorageError
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
from cuggino.stages import Waited, act
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


class _Seen(NamedTuple):
    """The deliverables as last seen during a session."""

    known: Deliverables | None = None
    """Those that could be read."""
    listed: DeliverablesListed | None = None

    def after(
        self, loaded: LoadedDeliverables, verified: frozenset[str]
    ) -> tuple[_Seen, list[Event]]:
        """Return what is seen now, and the changes (AUT-115, AUT-116)."""
        changed: list[Event] = []
        for item in loaded.deliverables.active:
            before = self.known.get(item.id) if self.known is not None else None
            if before is not None and before.status != item.status:
                changed.append(
                    DeliverableStatusChanged(
                        deliverable_id=item.id,
                        description=item.description,
                        previous=before.status,
                        status=item.status,
                    )
                )
        now = listed(loaded, verified)
        if now != self.listed:
            changed.append(now)
        return _Seen(loaded.deliverables, now), changed


def deliver_session(
    number: int,
    run: Run,
    options: SpawnOptions,
    store: DeliverableStore,
    verified: VerifiedFile,
    *,
    waited: Waited | None = None,
    may_wait: bool = False,
) -> Flow[None]:
    """Run a session, and watch the deliverables meanwhile. It may be one that has `waited`.

    Emits the events of the agent and of its policies; each change of the status file as it is
    written, as `DeliverableStatusChanged` and `DeliverablesListed`; last `DeliverSessionEnded`.

    Raises:
        QuotaExceeded, BudgetExceeded: and any error that every other session would meet.
        Interrupted: a person has stopped it.
    """
    seen, lane = _Seen(), run.lane

    def marks() -> frozenset[str]:
        verification = verified.read()
        return verification.verified if verification is not None else frozenset()

    def begin() -> None:
        nonlocal seen
        loaded = store.load(now=began)
        known = None if loaded.broken else loaded.deliverables
        seen = _Seen(known, listed(loaded, marks()))

    def look(_change: object = None) -> list[Event]:
        """Return the changes of the status file since the last look."""
        nonlocal seen
        try:
            loaded = store.load(now=lane.now)
            verified_now = marks()
        except StorageError as error:
            return [DeliverWarning(message=error.message)]
        if loaded.broken is not None:
            return []  # told once, when the session is over
        seen, changed = seen.after(loaded, verified_now)
        return changed

    def given_up(error: Exception, _source: Observable[Event]) -> Observable[Event]:
        """Warn that the file cannot be watched; changes are seen at the end then."""
        return just(DeliverWarning(message=f"{store.path.parent} cannot be watched: {error}"))

    began = lane.now
    yield from ask(act(begin))
    changes = run.services.changes(store.path.parent).pipe(mapcat(look), ops.catch(given_up))
    report = yield from run_session(
        run, options, alongside(changes), waited=waited, may_wait=may_wait
    )
    yield from emit(*((yield from ask(act(look))) or ()))
    if report.is_silent:
        yield from emit(DeliverWarning(message=f"session {number} reported no result"))
    yield from end_session(
        report,
        DeliverSessionEnded(
            session=number,
            outcome=report.outcome,
            message=report.message,
            cost_usd=report.cost_usd,
            cost_estimated=report.cost_estimated,
            duration=run.since(began),
            session_id=report.session_id,
        ),
    )
