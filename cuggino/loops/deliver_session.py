"""One session of the deliverables loop (AUT-020 to AUT-029)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import assert_never

from reactivex import Observable, abc, just
from reactivex import operators as ops

from cuggino.agents.protocol import LlmAgent, SpawnOptions
from cuggino.domain.attempts import hits_every_item
from cuggino.domain.deliverables import Deliverables
from cuggino.domain.spending import SESSION_BEGINS, Budget, Spending
from cuggino.errors import (
    AgentFailed,
    BudgetExceeded,
    CugginoError,
    LlmSessionError,
    ProcessError,
    QuotaExceeded,
    StorageError,
)
from cuggino.events import (
    AgentMessage,
    DeliverablesListed,
    DeliverableState,
    DeliverableStatusChanged,
    DeliverOutcome,
    DeliverSessionEnded,
    DeliverWarning,
    Event,
    SessionEnded,
    SystemMessage,
)
from cuggino.loops.deliver_interrupt import Interrupted, Interruption
from cuggino.operators import Flow, alongside, ask, emit, forward, mapcat
from cuggino.stages import Sessions, Supervision, act, lane
from cuggino.storage.deliverables import DeliverableStore, Loaded
from cuggino.storage.verified import VerifiedFile

Changes = Callable[[Path], Observable[object]]
"""Emits something whenever a folder has changed."""

_FAILURES = frozenset({"error", "execution_error"})


def is_failure(outcome: DeliverOutcome) -> bool:
    """Whether a session that ended so counts as an error (AUT-056, AUT-060)."""
    return outcome in _FAILURES


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
        self._said: list[AgentMessage] = []
        self._ended: SessionEnded | None = None
        self._spent = Spending()

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
            self._agent, self._options, read=lambda events: events, budget=self._policies.remaining
        )
        agent = self._policies.around(sessions, sessions.first()).pipe(ops.do_action(self._seen))
        error: CugginoError | None = None
        try:
            watched = agent.pipe(alongside(self._watched(here)))
            yield from forward(self._interruption.ending(watched))
        except CugginoError as failure:
            error = failure
        except Exception as failure:  # of somebody's own agent (AUT-064)
            error = AgentFailed(str(failure) or type(failure).__name__, reason="unknown")
        late = yield from ask(act(lambda: self._look(here.now)))
        yield from emit(*(late or ()))
        seconds = max(0.0, (here.now - began).total_seconds())
        error = self._judged(error)
        if error is None and self._ended is None:
            # What an agent looks like that was killed (AUT-026).
            yield from emit(DeliverWarning(message=f"session {self._number} has told no result"))
        outcome = _outcome(error, self._ended)
        message = error.message if error is not None else self._words()
        yield from emit(self._as_ended(outcome, message, seconds))
        if error is not None and self._ends_the_loop(error):
            # Not an end of the session that a resumed run could go on behind.
            raise error

    def _judged(self, error: CugginoError | None) -> CugginoError | None:
        """The error that the session has ended with, by what its agent's program said last."""
        said = self._ended.outcome if self._ended is not None else None
        limits = Interrupted | QuotaExceeded | BudgetExceeded
        if said != "completed" and isinstance(error, limits):
            return error
        match said:
            case "completed":
                return None  # what comes behind a good result is no error (AUT-024)
            case "quota":
                return QuotaExceeded(self._words() or "the usage limit is reached")
            case "budget":
                return BudgetExceeded(self._words() or "the agent has spent its budget")
            case _:
                return error

    def _ends_the_loop(self, error: CugginoError) -> bool:
        """Whether no other session can do better."""
        if isinstance(error, BudgetExceeded):
            return self._policies.budget != Budget()  # else it is the agent's own (AUT-055)
        return hits_every_item(error) or not isinstance(error, LlmSessionError | ProcessError)

    def _as_ended(
        self, outcome: DeliverOutcome, message: str, seconds: float
    ) -> DeliverSessionEnded:
        return DeliverSessionEnded(
            session=self._number,
            outcome=outcome,
            message=message,
            cost_usd=self._spent.cost_usd,
            duration=seconds,
        )

    def _begin(self, now: datetime) -> None:
        loaded = self._store.load(now=now)
        self._known = None if loaded.broken else loaded.deliverables
        self._shown = listed(loaded, self._marks())

    def _seen(self, event: Event) -> None:
        self._spent = self._spent.add(event)
        if isinstance(event, AgentMessage) and event.parent_tool_use_id is None:
            last = self._said[-1].message_id if self._said else None
            if not event.message_id or event.message_id != last:
                self._said.clear()
            self._said.append(event)
        if isinstance(event, SessionEnded):
            self._ended = event
        elif isinstance(event, (*SESSION_BEGINS, SystemMessage, AgentMessage)):
            self._ended = None  # that was the session before, which this one goes on with

    def _words(self) -> str:
        return "".join(part.text for part in self._said).strip()

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


def _outcome(error: CugginoError | None, ended: SessionEnded | None) -> DeliverOutcome:
    """How the session ended, by its error and what its agent's program said last (AUT-016)."""
    if isinstance(error, Interrupted):
        return "interrupted"
    if isinstance(error, BudgetExceeded):
        return "budget"
    if isinstance(error, QuotaExceeded):
        return "quota"
    if ended is None:
        return "completed" if error is None else "error"
    match ended.outcome:
        case "completed" | "max_turns" | "budget" | "quota":
            return ended.outcome
        case "failed" | "interrupted":
            told = ended.cost_usd is not None or ended.num_turns is not None
            is_own = error is None or (isinstance(error, AgentFailed) and told)
            return "execution_error" if is_own else "error"
        case _:
            assert_never(ended.outcome)
