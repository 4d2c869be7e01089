"""One session of the deliverables loop (AUT-020 to AUT-029)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path

from reactivex import Observable
from reactivex import operators as ops

from cuggino.agents.protocol import LlmAgent, SpawnOptions
from cuggino.domain.attempts import hits_every_item
from cuggino.domain.deliverables import Deliverables
from cuggino.domain.spending import Spending
from cuggino.errors import AgentFailed, BudgetExceeded, CugginoError, LlmSessionError, StorageError
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
)
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
    ) -> None:
        self._number = number
        self._agent = agent
        self._options = options
        self._policies = policies
        self._store = store
        self._verified = verified
        self._changes = changes
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
            StorageError: the status file's folder cannot be watched or read.
        """
        here = yield from ask(lane())
        assert here is not None
        began = here.now
        yield from ask(act(lambda: self._begin(began)))
        sessions = Sessions(
            self._agent, self._options, read=lambda events: events, budget=self._policies.remaining
        )
        agent = self._policies.around(sessions, sessions.first()).pipe(ops.do_action(self._seen))
        look = mapcat(lambda _change: self._look(here.now))
        watched = agent.pipe(alongside(self._changes(self._store.path.parent).pipe(look)))
        error: CugginoError | None = None
        try:
            yield from forward(watched)
        except LlmSessionError as failure:
            error = failure
        except CugginoError:
            raise
        except Exception as failure:  # of somebody's own agent (AUT-064)
            error = AgentFailed(str(failure) or type(failure).__name__, reason="unknown")
        late = yield from ask(act(lambda: self._look(here.now)))
        yield from emit(*(late or ()))
        seconds = max(0.0, (here.now - began).total_seconds())
        if error is not None and (isinstance(error, BudgetExceeded) or hits_every_item(error)):
            # Not an end of the session that a resumed run could go on behind.
            yield from emit(self._as_ended(_outcome(error, self._ended), error.message, seconds))
            raise error
        outcome = _outcome(error, self._ended)
        message = error.message if error is not None and outcome != "completed" else self._words()
        yield from emit(self._as_ended(outcome, message, seconds))

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
            same = self._said and event.message_id and self._said[-1].message_id == event.message_id
            self._said = [*self._said, event] if same else [event]
        elif isinstance(event, SessionEnded):
            self._ended = event

    def _words(self) -> str:
        return "".join(part.text for part in self._said).strip()

    def _marks(self) -> frozenset[str]:
        verification = self._verified.read()
        return verification.verified if verification is not None else frozenset()

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
    """How the session ended, by its error and what its agent's program said last (AUT-016).

    An error behind a good result is none (AUT-024).
    """
    if ended is not None:
        match ended.outcome:
            case "completed" | "max_turns" | "budget" | "quota":
                return ended.outcome
            case "failed" | "interrupted":
                pass
    if error is None:
        # A stream without a result is what an agent looks like that was killed (AUT-026).
        return "completed" if ended is None or ended.outcome == "completed" else "execution_error"
    if isinstance(error, BudgetExceeded):
        return "budget"
    told = ended is not None and (ended.cost_usd is not None or ended.num_turns is not None)
    if isinstance(error, AgentFailed) and told:
        return "execution_error"
    return "error"
