"""The spans of a run: folds its events, each with its time, into spans of stages and items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cuggino.domain import NamedAgent, Spending, Substitutes
from cuggino.errors import BudgetExceeded, Interrupted, LoopError, QuotaExceeded
from cuggino.events import (
    AgentFellBack,
    AgentNudged,
    AgentReplaced,
    AgentRetry,
    ApprovalQuestioned,
    CheckCommandOutput,
    CheckCommandStarted,
    CommandOutputEvent,
    CommandStartedEvent,
    CommitPerformed,
    CommitSeen,
    DeliverSessionEnded,
    DeliverSessionStarted,
    Event,
    ImplementingStart,
    LlmAgentEvent,
    LlmTerminalMarkerEvent,
    PingEvent,
    PlanBuildPhaseStarted,
    PlanBuildSessionEnded,
    PlanningStart,
    QuotaLifted,
    QuotaUsed,
    QuotaWaiting,
    RateLimited,
    ReviewingStart,
    RoleViolated,
    RunResult,
    RunResumed,
    SessionEnded,
    SetupCommandOutput,
    SetupCommandStarted,
    SnapshotTaken,
    StageCost,
    SupervisionEvent,
    WatchAuditEnded,
    WatchAuditFailed,
    WatchAuditInterrupted,
    WatchAuditStarted,
    WatchItemCompleted,
    WatchItemParked,
    WatchItemRetained,
    WatchItemRetry,
    WatchLanded,
    WatchLanding,
    WatchPlaced,
    WatchPlaceGone,
    WatchProcessingItem,
    WatchProposed,
    WatchSentBack,
    checked_of,
)
from cuggino.telemetry.agents import SessionSpan
from cuggino.telemetry.kit import Attributes, Kit
from cuggino.telemetry.settings import AgentIdentity
from cuggino.telemetry.texts import plain

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_SIGN_OF_A_SESSION = (PingEvent, QuotaUsed, RateLimited)
_UNTOLD = (StageCost, RunResumed, SnapshotTaken)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """The run as named by its spans; unknown fields are empty."""

    run_id: str = ""
    kind: str = ""
    agent: str = ""
    resumed: bool = False


def nanoseconds(at: datetime) -> int:
    """Return the time in nanoseconds since the epoch; one without a zone is in UTC."""
    return (_aware(at) - _EPOCH) // timedelta(microseconds=1) * 1000


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


class RunSpans:
    """The span of a run, from its first event to its end, and those inside it."""

    def __init__(
        self,
        kit: Kit,
        run: RunIdentity,
        *,
        agent_of: Callable[[str], AgentIdentity] | None,
        begun: datetime,
    ) -> None:
        self._kit = kit
        workflow = f"cuggino {run.kind}".rstrip()
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_workflow",
            "gen_ai.workflow.name": workflow,
            "cuggino.run.resumed": run.resumed,
        }
        if run.run_id:
            attributes["cuggino.run.id"] = run.run_id
        self._root = kit.start(f"invoke_workflow {workflow}", None, nanoseconds(begun), attributes)
        agents = agent_of or (lambda _role: AgentIdentity(name=run.agent))
        self._own = _Work(kit, self._root, agents)
        self._items: dict[str, _Work] = {}
        """The items of a watch with several slots."""
        self._landing: _Work | None = None
        self._spent = Spending()
        """The spending of this process."""
        self._outcome = ""

    def add(self, event: Event, at: datetime) -> None:
        """Add the next event."""
        now = nanoseconds(at)
        if not isinstance(event, RunResumed):
            self._spent = self._spent.add(event)
        match event:
            case RunResult() if not self._items and not self._own.has_item:
                self._own.end_stage(now)
                self._outcome = event.outcome
                self._root.set_attribute("cuggino.run.exit_code", event.exit_code)
                if (checked := checked_of(event)) is not None:
                    self._root.set_attribute("cuggino.run.checked", checked)
            case WatchProcessingItem(filename=name, slot=slot) if slot:
                self._end_item(name, now)
                work = self._items[name] = _Work(self._kit, self._root, self._own.agent_of)
                work.begin_item(name, now, slot)
            case WatchPlaced(filename=name, worker=worker) if name in self._items:
                self._items[name].place_item(worker)
            case WatchPlaceGone(filename=name, worker=worker) if name in self._items:
                self._items[name].lose_place(worker, now)
            case WatchLanding(filename=name) if name in self._items:
                self._landing = self._items[name]
                self._landing.begin_stage("landing", now, {})
            case WatchProposed(filename=name) if name in self._items:
                self._items[name].end_landing(now, event)
                self._landing = None
            case WatchLanded(filename=name) | WatchSentBack(filename=name) if name in self._items:
                if self._landing is self._items[name]:
                    self._landing = None
                self._items[name].end_landing(now, event)
                if isinstance(event, WatchSentBack):
                    self._end_item(name, now, event)
            case (
                WatchItemCompleted(filename=name)
                | WatchItemRetained(filename=name)
                | WatchItemRetry(filename=name)
                | WatchItemParked(filename=name)
            ) if name in self._items:
                self._end_item(name, now, event)
            case _:
                self._work_of(event).add(event, at, now)

    def end(self, at: datetime, error: Exception | None = None, *, cut_off: bool = False) -> None:
        """End all open spans; `cut_off` if the subscriber disposed before a result."""
        now = nanoseconds(at)
        for name in list(self._items):
            self._end_item(name, now)
        self._own.end_item(now)
        cause = error.cause or error if isinstance(error, LoopError) else error
        outcome = self._outcome or (
            _outcome_of(cause) if cause is not None else "interrupted" if cut_off else "ended"
        )
        self._root.set_attribute("cuggino.run.outcome", outcome)
        if self._spent.cost_usd is not None:
            self._root.set_attribute("cuggino.cost_usd", self._spent.cost_usd)
            if self._spent.cost_estimated:
                self._root.set_attribute("cuggino.cost_estimated", True)
        failure = ""
        if outcome == "failed" or (cause is not None and outcome != "interrupted"):
            failure = type(cause).__name__ if cause is not None else outcome
        self._kit.end(self._root, now, failure)

    def _work_of(self, event: Event) -> _Work:
        """Return the item that an event is about, or the run itself."""
        if not self._items:
            return self._own
        if event.item is not None:
            return self._items.get(event.item, self._own)
        is_command = isinstance(event, CommandStartedEvent | CommandOutputEvent)
        return self._landing if self._landing is not None and is_command else self._own

    def _end_item(self, name: str, now: int, ended: Event | None = None) -> None:
        work = self._items.pop(name, None)
        if work is not None:
            work.end_item(now, ended)
            self._landing = None if work is self._landing else self._landing


class _Work:
    """The spans of one agent at a time: those of a run, or of an item in a slot."""

    def __init__(self, kit: Kit, root: Span, agent_of: Callable[[str], AgentIdentity]) -> None:
        self.agent_of = agent_of
        self._kit = kit
        self._root = root
        self._substitutes = Substitutes()
        self._item: Span | None = None
        self._stage: Span | None = None
        self._command: Span | None = None
        self._session: SessionSpan | None = None
        self._role = ""
        self._model: str | None = None
        self._ready: int | None = None
        """When the next session can begin at the earliest, if it was not announced by a pause."""
        self._waits = False

    @property
    def has_item(self) -> bool:
        """Return whether an item is at work."""
        return self._item is not None

    def add(self, event: Event, at: datetime, now: int) -> None:
        """Add the next event, at the same time in two forms."""
        match event:
            case SessionEnded():
                self._end_session(now, event)
                self._ready = now
            case LlmAgentEvent():
                if self._session is None and not isinstance(event, _NO_SIGN_OF_A_SESSION):
                    self._begin_session(now, at)
                if self._session is not None:
                    self._session.add(event, now)
            case SupervisionEvent():
                if isinstance(event, AgentFellBack):
                    self._substitutes.add(event, self._usual(event.role), _aware(at))
                self._supervised(event, now)
            case LlmTerminalMarkerEvent():
                if self._stage is not None:
                    self._stage.set_attribute("cuggino.stage.outcome", event.tag)
                self._end_session(now, None)  # a lingering session is done
                self.end_stage(now)
            case RunResult():  # that of the item's own run
                self.end_stage(now)
            case WatchProcessingItem(filename=name):
                self.end_item(now)
                self.begin_item(name, now)
            case WatchItemCompleted() | WatchItemRetained() | WatchItemRetry() | WatchItemParked():
                self.end_item(now, event)
            case CommitPerformed(commit_hash=commit) | CommitSeen(commit_hash=commit):
                self._note("commit", now, {"cuggino.commit": commit})
            case _:
                self._staged(event, now)

    def begin_item(self, name: str, now: int, slot: int = 0) -> None:
        """Begin the span of an item."""
        given: Attributes = {"cuggino.item": plain(name)}
        if slot:
            given["cuggino.slot"] = slot
        self._item = self._kit.start("item", self._root, now, given)

    def place_item(self, worker: str) -> None:
        """Name the worker of an item."""
        if self._item is not None:
            self._item.set_attribute("cuggino.worker", plain(worker))

    def lose_place(self, worker: str, now: int) -> None:
        """Record that the item's worker is gone and its stage was cut off."""
        self.end_stage(now, "worker_lost")
        self._note("worker_lost", now, {"cuggino.worker": plain(worker)})

    def end_landing(self, now: int, event: WatchLanded | WatchProposed | WatchSentBack) -> None:
        """End the stage of the landing with its outcome."""
        if self._stage is None:
            return
        match event:
            case WatchSentBack(reason=reason):
                self._stage.set_attribute("cuggino.stage.outcome", "sent_back")
                self.end_stage(now, plain(reason))
            case WatchProposed():
                self._stage.set_attribute("cuggino.stage.outcome", "proposed")
                self.end_stage(now)
            case _:
                self._stage.set_attribute("cuggino.stage.outcome", "landed")
                self.end_stage(now)

    def _staged(self, event: Event, now: int) -> None:
        """Begin and end stages and commands."""
        match event:
            case PlanningStart(iteration=iteration):
                self.begin_stage("planning", now, {"cuggino.iteration": iteration})
            case ImplementingStart(iteration=iteration):
                self.begin_stage("implementing", now, {"cuggino.iteration": iteration})
            case ReviewingStart(iteration=iteration):
                self.begin_stage("reviewing", now, {"cuggino.iteration": iteration})
            case DeliverSessionStarted(instruction=instruction, session=session, model=model):
                self.begin_stage(instruction, now, {"cuggino.session": session}, model)
            case PlanBuildPhaseStarted(phase=phase, iteration=iteration):
                self.begin_stage(phase, now, {"cuggino.iteration": iteration})
            case WatchAuditStarted():
                self.begin_stage("audit", now, {})
            case DeliverSessionEnded(outcome=outcome) | PlanBuildSessionEnded(outcome=outcome):
                if self._stage is not None:
                    self._stage.set_attribute("cuggino.stage.outcome", outcome)
                self.end_stage(now, outcome if outcome in ("error", "execution_error") else "")
            case WatchAuditEnded() | WatchAuditInterrupted():
                self.end_stage(now)
            case WatchAuditFailed():
                self.end_stage(now, "failed")
            case SetupCommandStarted():
                self._begin_command("setup", now)
            case CheckCommandStarted():
                self._begin_command("check", now)
            case SetupCommandOutput(exit_code=code) | CheckCommandOutput(exit_code=code):
                if self._command is not None and code is not None:
                    self._command.set_attribute("process.exit.code", code)
                self._end_command(now, "exit_code" if code else "")
            case _:
                pass

    def _supervised(self, event: SupervisionEvent, now: int) -> None:
        match event:
            case AgentFellBack(reason=reason):
                self._cut_off(now, reason)
            case AgentRetry(reason=reason):
                self._cut_off(now, reason)
                self._ready = None
            case AgentNudged():
                self._cut_off(now, "nudged")
            case AgentReplaced():
                self._cut_off(now, "replaced")
            case ApprovalQuestioned():
                self._cut_off(now, "questioned")
            case RoleViolated():
                self._cut_off(now, "role_violated")
            case QuotaWaiting():
                self._cut_off(now, "quota")
                self._ready = None
                if self._waits:  # repeated every minute
                    return
                self._waits = True
            case QuotaLifted():
                self._waits = False
            case StageCost(cost_usd=float(cost)) if self._stage is not None:
                self._stage.set_attribute("cuggino.cost_usd", cost)
                if event.cost_estimated:
                    self._stage.set_attribute("cuggino.cost_estimated", True)
            case _:
                pass
        if not isinstance(event, _UNTOLD):
            why = str(getattr(event, "reason", ""))
            attributes: Attributes = {"cuggino.reason": plain(why)} if why else {}
            self._note(event.tag, now, attributes)

    def begin_stage(
        self, role: str, now: int, attributes: Attributes, model: str | None = None
    ) -> None:
        self.end_stage(now)
        self._role, self._model, self._ready, self._waits = role, model, now, False
        given: Attributes = {"cuggino.stage": role, **attributes}
        self._stage = self._kit.start(role, self._parent(), now, given)

    def _begin_command(self, name: str, now: int) -> None:
        self._end_command(now)
        self._command = self._kit.start(name, self._parent(), now, {"cuggino.stage": name})

    def _begin_session(self, now: int, at: datetime) -> None:
        self._end_command(now)
        name, model = self._substitutes.of(self._usual(self._role), _aware(at))
        agent = AgentIdentity(name=name, model=model)
        begun = now if self._ready is None else min(self._ready, now)
        self._session = SessionSpan(self._kit, agent, self._role, self._parent(), at=begun)

    def _usual(self, role: str) -> NamedAgent:
        """Return the agent that is configured for the role."""
        agent = self.agent_of(role)
        return NamedAgent(agent.name, (self._model if role == self._role else None) or agent.model)

    def _end_session(self, now: int, ended: SessionEnded | None, error: str = "") -> None:
        if self._session is None:
            return
        self._session.end(now, ended, error)
        self._session = None

    def _cut_off(self, now: int, error: str) -> None:
        self._end_session(now, None, plain(error))
        self._ready = now

    def _end_command(self, now: int, error: str = "") -> None:
        self._end(self._command, now, error)
        if self._command is not None:
            self._command, self._ready = None, now

    def end_stage(self, now: int, error: str = "") -> None:
        self._end_command(now)
        self._end_session(now, None, "cut_off")
        self._end(self._stage, now, error)
        self._stage, self._role, self._model, self._ready = None, "", None, None

    def end_item(self, now: int, ended: Event | None = None) -> None:
        self.end_stage(now)
        if self._item is not None and ended is not None:
            is_back = isinstance(ended, WatchSentBack)
            outcome = "sent_back" if is_back else ended.tag.removeprefix("WatchItem").lower()
            self._item.set_attribute("cuggino.item.outcome", outcome)
        failed = isinstance(ended, WatchItemRetry | WatchItemParked | WatchSentBack)
        self._end(self._item, now, "failed" if failed else "")
        self._item = None

    def _end(self, span: Span | None, now: int, error: str) -> None:
        if span is not None:
            self._kit.end(span, now, error)

    def _note(self, name: str, now: int, attributes: Attributes) -> None:
        self._parent().add_event(name, attributes, now)

    def _parent(self) -> Span:
        return self._stage or self._item or self._root


def _outcome_of(error: Exception) -> str:
    """Return the outcome that the journal gives a run ended by the error."""
    match error:
        case Interrupted():
            return "interrupted"
        case QuotaExceeded():
            return "quota"
        case BudgetExceeded():
            return "budget"
        case _:
            return "failed"
