"""Running a session of an agent without markers, and a fold of how it ends.

Sources: requirements AUT-016, AUT-023 to AUT-026, AUT-055, AUT-056, AUT-064, LOP-064.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, assert_never

from reactivex import Observable, empty, operators as ops, throw

from cuggino.agents.base import SpawnOptions
from cuggino.domain import Budget, Spending, begins_session, hits_every_item
from cuggino.errors import (
    AgentFailed,
    BudgetExceeded,
    CugginoError,
    Interrupted,
    LlmSessionError,
    ProcessError,
    QuotaExceeded,
    RoleViolation,
)
from cuggino.events import (
    AgentFellBack,
    AgentMessage,
    DeliverOutcome,
    Event,
    SessionEnded,
    SystemMessage,
)
from cuggino.loops.frame.run import Run
from cuggino.operators import Flow, emit, forward
from cuggino.stages import Resumes, Waited, resumed_session

_FAILURES = frozenset({"error", "execution_error"})


def is_failure(outcome: DeliverOutcome) -> bool:
    """Return whether the outcome counts as a failure (AUT-056, AUT-060)."""
    return outcome in _FAILURES


class SessionFold:
    """A fold over the events of a session: its last message, its cost, its outcome."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._said: list[AgentMessage] = []
        self.ended: SessionEnded | None = None
        """The end that its program reported; None before, or without one."""
        self.spent = Spending()

    def add(self, event: Event) -> None:
        """Add an event of the agent or its supervision."""
        self.spent = self.spent.add(event)
        if isinstance(event, AgentMessage) and event.parent_tool_use_id is None:
            last = self._said[-1].message_id if self._said else None
            if not event.message_id or event.message_id != last:
                self._said.clear()
            self._said.append(event)
        if isinstance(event, SessionEnded):
            self.ended = event
        elif begins_session(event) or isinstance(event, SystemMessage | AgentMessage):
            self.ended = None  # that was the earlier session, which this one resumes
        if isinstance(event, AgentFellBack):
            self._said.clear()  # the fallback agent has no message yet

    def read(self, session: Observable[Event]) -> Observable[Event]:
        """Drop an error after a good result (AUT-024).

        Add the events of the returned stream to this object as they arrive.
        """
        return session.pipe(ops.catch(self._unless_ended_well))

    def _unless_ended_well(
        self, error: Exception, _session: Observable[Event]
    ) -> Observable[Event]:
        is_good = self.ended is not None and self.ended.outcome == "completed"
        return empty() if is_good else throw(error)

    @property
    def words(self) -> str:
        """The last message of the agent."""
        return "".join(part.text for part in self._said).strip()

    def judged(self, failure: Exception | None) -> CugginoError | None:
        """Return the error of the session, by the result that its program reported.

        `failure` is the error of its stream; one of a custom agent becomes an `AgentFailed`.
        """
        error: CugginoError | None = None
        if failure is not None:
            error = failure if isinstance(failure, CugginoError) else _unknown(failure)
        if isinstance(error, RoleViolation):
            return error
        said = self.ended.outcome if self.ended is not None else None
        limits = Interrupted | QuotaExceeded | BudgetExceeded
        if said != "completed" and isinstance(error, limits):
            return error
        match said:
            case "completed":
                return None  # a failure after a good result is not an error (AUT-024)
            case "quota":
                return QuotaExceeded(self.words or "the usage limit is reached")
            case "budget":
                return BudgetExceeded(self.words or "the agent has spent its budget")
            case _:
                return error

    def outcome(self, error: CugginoError | None) -> DeliverOutcome:
        """Return the outcome, given the error from `judged`."""
        if isinstance(error, Interrupted):
            return "interrupted"
        if isinstance(error, RoleViolation):
            return "error"
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
            case _ as never:
                assert_never(never)

    def ends_the_loop(self, error: CugginoError) -> bool:
        """Return whether every other session would fail the same way."""
        if isinstance(error, BudgetExceeded):
            return self._budget != Budget()  # else it is the agent's own (AUT-055)
        if isinstance(error, RoleViolation):
            return True
        return hits_every_item(error) or not isinstance(error, LlmSessionError | ProcessError)


def _unknown(failure: Exception) -> AgentFailed:
    return AgentFailed(str(failure) or type(failure).__name__, reason="unknown")


class SessionReport(NamedTuple):
    """The end of a session."""

    outcome: DeliverOutcome
    message: str
    """The last message of the agent, or the error."""
    cost_usd: float | None
    cost_estimated: bool
    error: CugginoError | None
    """An error that every further session would have, too; it ends the loop."""
    is_silent: bool
    """True if the agent reported no result, for example because it was killed (AUT-026)."""
    session_id: str | None = None
    """The session, if it can be resumed."""


def end_session(report: SessionReport, ended: Event) -> Flow[None]:
    """Emit the end of the session; raise the error that ends the loop, if there is one.

    A session with such an error has no end behind which a resumed run could continue: its stage
    fails, and is repeated.
    """
    yield from emit(ended)
    if report.error is not None:
        raise report.error


def run_session(
    run: Run,
    options: SpawnOptions,
    accompanied: Callable[[Observable[Event]], Observable[Event]] = lambda events: events,
    *,
    waited: Waited | None = None,
    may_wait: bool = False,
) -> Flow[SessionReport]:
    """Run a supervised session until it ends or is interrupted, and report its end.

    Emits the events of the agent and its supervision, as `accompanied` passes them on. `waited` is
    a session that is resumed after its wait; an agent that `may_wait` is nudged to when it polls.
    """
    fold = SessionFold(run.supervision.budget)
    failure: Exception | None = None
    try:
        resumes: Resumes | None = None
        if waited is None:
            options = yield from run.begin_session(options)
        else:
            options, resumes = yield from resumed_session(run.begin_session, options, waited)
        services, cwd = run.services, options.cwd
        events = run.supervision.session(
            services.agent,
            options,
            read=fold.read,
            left=lambda: services.work_left(cwd),
            resumes=resumes,
            may_wait=may_wait,
        )
        work = accompanied(events.pipe(ops.do_action(fold.add)))
        yield from forward(run.interruption.ending(work))
    except Exception as error:
        failure = error
    judged = fold.judged(failure)
    return SessionReport(
        outcome=fold.outcome(judged),
        message=judged.message if judged is not None else fold.words,
        cost_usd=fold.spent.cost_usd,
        cost_estimated=fold.spent.cost_estimated,
        error=judged if judged is not None and fold.ends_the_loop(judged) else None,
        is_silent=judged is None and fold.ended is None,
        session_id=fold.ended.session_id if fold.ended is not None else None,
    )
