"""How a session of an agent without markers has ended, as a fold over its events.

Sources: requirements AUT-016, AUT-023 to AUT-026, AUT-055, AUT-056, AUT-064, LOP-064.
"""

from __future__ import annotations

from typing import assert_never

from reactivex import Observable, empty, operators as ops, throw

from cuggino.domain.attempts import hits_every_item
from cuggino.domain.spending import SESSION_BEGINS, Budget, Spending
from cuggino.errors import (
    AgentFailed,
    BudgetExceeded,
    CugginoError,
    LlmSessionError,
    ProcessError,
    QuotaExceeded,
)
from cuggino.events import (
    AgentFellBack,
    AgentMessage,
    DeliverOutcome,
    Event,
    SessionEnded,
    SystemMessage,
)
from cuggino.loops.deliver_interrupt import Interrupted

_FAILURES = frozenset({"error", "execution_error"})


def is_failure(outcome: DeliverOutcome) -> bool:
    """Whether a session that ended so counts as an error (AUT-056, AUT-060)."""
    return outcome in _FAILURES


class SessionFold:
    """What a session has said and spent, and how it ended; `add` each of its events."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._said: list[AgentMessage] = []
        self.ended: SessionEnded | None = None
        """What its program said at its end; None while it works, or without a word."""
        self.spent = Spending()

    def add(self, event: Event) -> None:
        """Take in an event of the agent, or of the policies around it."""
        self.spent = self.spent.add(event)
        if isinstance(event, AgentMessage) and event.parent_tool_use_id is None:
            last = self._said[-1].message_id if self._said else None
            if not event.message_id or event.message_id != last:
                self._said.clear()
            self._said.append(event)
        if isinstance(event, SessionEnded):
            self.ended = event
        elif isinstance(event, (*SESSION_BEGINS, SystemMessage, AgentMessage)):
            self.ended = None  # that was the session before, which this one goes on with
        if isinstance(event, AgentFellBack):
            self._said.clear()  # the one that begins anew has said nothing yet

    def read(self, session: Observable[Event]) -> Observable[Event]:
        """The session without an error behind a good result: there is nothing to mend (AUT-024).

        What this object is given must be what comes of it, as it comes.
        """
        return session.pipe(ops.catch(self._unless_ended_well))

    def _unless_ended_well(
        self, error: Exception, _session: Observable[Event]
    ) -> Observable[Event]:
        is_good = self.ended is not None and self.ended.outcome == "completed"
        return empty() if is_good else throw(error)

    @property
    def words(self) -> str:
        """Its last message."""
        return "".join(part.text for part in self._said).strip()

    def judged(self, failure: Exception | None) -> CugginoError | None:
        """The error that it has ended with, by what its program said last.

        `failure` is what its stream ended with; that of somebody's own agent counts as one of ours.
        """
        error: CugginoError | None = None
        if failure is not None:
            error = failure if isinstance(failure, CugginoError) else _unknown(failure)
        said = self.ended.outcome if self.ended is not None else None
        limits = Interrupted | QuotaExceeded | BudgetExceeded
        if said != "completed" and isinstance(error, limits):
            return error
        match said:
            case "completed":
                return None  # what comes behind a good result is no error (AUT-024)
            case "quota":
                return QuotaExceeded(self.words or "the usage limit is reached")
            case "budget":
                return BudgetExceeded(self.words or "the agent has spent its budget")
            case _:
                return error

    def outcome(self, error: CugginoError | None) -> DeliverOutcome:
        """How it has ended, with the error that `judged` gave."""
        if isinstance(error, Interrupted):
            return "interrupted"
        if isinstance(error, BudgetExceeded):
            return "budget"
        if isinstance(error, QuotaExceeded):
            return "quota"
        if self.ended is None:
            return "completed" if error is None else "error"
        match self.ended.outcome:
            case "completed" | "max_turns" | "budget" | "quota":
                return self.ended.outcome
            case "failed" | "interrupted":
                told = self.ended.cost_usd is not None or self.ended.num_turns is not None
                is_own = error is None or (isinstance(error, AgentFailed) and told)
                return "execution_error" if is_own else "error"
            case _:
                assert_never(self.ended.outcome)

    def ends_the_loop(self, error: CugginoError) -> bool:
        """Whether no other session can do better."""
        if isinstance(error, BudgetExceeded):
            return self._budget != Budget()  # else it is the agent's own (AUT-055)
        return hits_every_item(error) or not isinstance(error, LlmSessionError | ProcessError)


def _unknown(failure: Exception) -> AgentFailed:
    return AgentFailed(str(failure) or type(failure).__name__, reason="unknown")
