"""One session of the deliverables loop (AUT-020 to AUT-029)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from reactivex import Observable, abc, just, operators as ops

from cuggino.agents.protocol import LlmAgent, SpawnOptions
from cuggino.domain.deliverables import Deliverables
from cuggino.errors import (
    StorageError,
)
from cuggino.events import (
    DeliverablesListed,
    DeliverableState,
    DeliverableStatusChanged,
    DeliverOutcome,
    DeliverSessionEnded,
    DeliverWarning,
    Event,
)
from cuggino.loops.deliver_interrupt import Interruption
from cuggino.loops.session_fold import SessionFold
from cuggino.operators import Flow, alongside, ask, emit, forward, mapcat
from cuggino.stages import Sessions, Supervision, act, lane
from cuggino.storage.deliverables import DeliverableStore, Loaded
from cuggino.storage.verified import VerifiedFile

Changes = Callable[[Path], Observable[object]]
"""Emits something whenever a folder has changed."""


def listed(loaded: Loaded, verified: Iterable[str] = ()) -> DeliverablesListed:
    """The deliverables that are wanted, as an event."""
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
    """A session with its own look at the status file. One object for each."""

    def __init__(
        self,
        number: int,
        agent: LlmAgent,
        options: SpawnOptions,
        policies: Supervision,
        store: DeliverableStore,
        verified: VerifiedFile,
        changes: Changes,
        interruption: Interruption,
    ) -> None:
        self._number = number
        self._agent = agent
        self._options = options
        self._policies = policies
        self._store = store
        self._verified = verified
        self._changes = changes
        self._interruption = interruption
        self._known: Deliverables | None = None
        self._shown: DeliverablesListed | None = None
        self._fold = SessionFold(policies.budget)

    def run(self) -> Flow[None]:
        """The session, and what becomes of the deliverables meanwhile.

        Emits the events of the agent and of its policies; each change of the status file as it is
        written, as `DeliverableStatusChanged` and `DeliverablesListed`; last `DeliverSessionEnded`.

        Raises:
            QuotaExceeded, BudgetExceeded: and what every other session would meet as well.
            Interrupted: a person has stopped it.
        """
        here = yield from ask(lane())
        assert here is not None
        began = here.now
        yield from ask(act(lambda: self._begin(began)))
        sessions = Sessions(
            self._agent, self._options, read=self._fold.read, budget=self._policies.remaining
        )
        agent = self._policies.around(sessions, sessions.first()).pipe(
            ops.do_action(self._fold.add)
        )
        failure: Exception | None = None
        try:
            watched = agent.pipe(alongside(self._watched(here)))
            yield from forward(self._interruption.ending(watched))
        except Exception as error:
            failure = error
        late = yield from ask(act(lambda: self._look(here.now)))
        yield from emit(*(late or ()))
        seconds = max(0.0, (here.now - began).total_seconds())
        judged = self._fold.judged(failure)
        if judged is None and self._fold.ended is None:
            # What an agent looks like that was killed (AUT-026).
            yield from emit(DeliverWarning(message=f"session {self._number} has told no result"))
        outcome = self._fold.outcome(judged)
        message = judged.message if judged is not None else self._fold.words
        yield from emit(self._as_ended(outcome, message, seconds))
        if judged is not None and self._fold.ends_the_loop(judged):
            # Not an end of the session that a resumed run could go on behind.
            raise judged

    def _as_ended(
        self, outcome: DeliverOutcome, message: str, seconds: float
    ) -> DeliverSessionEnded:
        return DeliverSessionEnded(
            session=self._number,
            outcome=outcome,
            message=message,
            cost_usd=self._fold.spent.cost_usd,
            duration=seconds,
        )

    def _begin(self, now: datetime) -> None:
        loaded = self._store.load(now=now)
        self._known = None if loaded.broken else loaded.deliverables
        self._shown = listed(loaded, self._marks())

    def _marks(self) -> frozenset[str]:
        verification = self._verified.read()
        return verification.verified if verification is not None else frozenset()

    def _watched(self, here: abc.SchedulerBase) -> Observable[Event]:
        """What changes in the status file; who cannot watch it sees it when the session is over."""

        def given_up(error: Exception, _source: Observable[Event]) -> Observable[Event]:
            folder = self._store.path.parent
            return just(DeliverWarning(message=f"{folder} cannot be watched: {error}"))

        changes = self._changes(self._store.path.parent)
        return changes.pipe(mapcat(lambda _change: self._look(here.now)), ops.catch(given_up))

    def _look(self, now: datetime) -> list[Event]:
        """What has changed in the status file since the last look (AUT-115, AUT-116)."""
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
