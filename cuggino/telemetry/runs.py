"""The spans of a run: the differences between its states, each at the time of its event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from cuggino import events as ev
from cuggino.domain import NamedAgent, Substitutes, begins_session
from cuggino.errors import cause_of, error_outcome
from cuggino.runs import RunState
from cuggino.telemetry.agents import SessionSpan
from cuggino.telemetry.kit import Attributes, Kit
from cuggino.telemetry.settings import AgentIdentity
from cuggino.telemetry.texts import plain

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_SIGN_OF_A_SESSION = (ev.PingEvent, ev.QuotaUsed, ev.RateLimited)
_FAILED_SESSIONS = frozenset({"error", "execution_error"})
_NO_STAGES = frozenset({"", "attempts", "preparing", "resumed"})
_PUT_BACK = frozenset({"sent-back", "retry"})
"""Places of items whose next attempt is another span."""
_NOTHING = RunState()
_CUT_OFF: Mapping[type, str] = MappingProxyType(
    {
        ev.AgentNudged: "nudged",
        ev.AgentReplaced: "replaced",
        ev.ApprovalQuestioned: "questioned",
        ev.RoleViolated: "role_violated",
        ev.QuotaWaiting: "quota",
    }
)
"""The errors of sessions that these events cut off; others have a reason, or begin a stage."""
_ENDS: Mapping[tuple[str, type], tuple[str, str]] = MappingProxyType(
    {
        ("item", ev.WatchItemCompleted): ("completed", ""),
        ("item", ev.WatchItemRetained): ("retained", ""),
        ("item", ev.WatchItemRetry): ("retry", "failed"),
        ("item", ev.WatchItemParked): ("parked", "failed"),
        ("item", ev.WatchSentBack): ("sent_back", "failed"),
        ("item", ev.LoopSpecIssue): ("spec_issue", ""),
        ("item", ev.WatchSpecIssueWaiting): ("spec_issue", ""),
        ("stage", ev.WatchLanded): ("landed", ""),
        ("stage", ev.WatchProposed): ("proposed", ""),
        ("stage", ev.WatchAuditFailed): ("", "failed"),
        ("stage", ev.WatchPlaceGone): ("", "worker_lost"),
    }
)
"""The outcomes and errors of items and stages that these events end."""


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
        self._track = partial(_Track, kit, self._root, agents, Substitutes())
        self._state = RunState(kind=run.kind)
        self._own = self._track()
        self._items: dict[str, _Track] = {}
        """The items at work in a watch with several slots."""

    def add(self, event: ev.Event, at: datetime) -> None:
        """Add the next event; earlier processes of the run have their own spans."""
        if isinstance(event, ev.RunResumed):
            return
        at = _aware(at)
        self._state = state = self._state.add(event, at=at)
        is_own = True
        items = {one.item: one for one in state.items if one.place not in _PUT_BACK}
        for name in dict.fromkeys((*self._items, *items)):
            if name not in self._items:
                self._items[name] = self._track()
            item = items.get(name) or self._landed(name)
            if item is not self._items[name].state or name == event.item:
                self._items[name].follow(event, item, at)
                is_own = False
            if item is _NOTHING:
                del self._items[name]
        if is_own:
            self._own.follow(event, state, at)

    def _landed(self, name: str) -> RunState:
        """Return the state of an item that has landed until it is put away."""
        if self._state.watched.items[name].state != "landed":
            return _NOTHING
        before = self._items[name].state
        return RunState(item=name, item_began=before.item_began) if before.place else before

    def end(self, at: datetime, error: Exception | None = None, *, cut_off: bool = False) -> None:
        """End all open spans; `cut_off` if the subscriber disposed before a result."""
        now, state, root = nanoseconds(at), self._state, self._root
        for track in (*self._items.values(), self._own):
            track.end(now)
        outcome = "interrupted" if cut_off else "ended"
        if state.result is not None and state.kind != "watch":
            outcome = state.result.outcome
            root.set_attribute("cuggino.run.exit_code", state.result.exit_code)
            if state.checked is not None:
                root.set_attribute("cuggino.run.checked", state.checked)
        elif error is not None:
            outcome = error_outcome(error)
        root.set_attribute("cuggino.run.outcome", outcome)
        _add_cost(root, state.cost_usd, estimated=state.cost_estimated)
        failure = "failed" if outcome == "failed" else ""
        if error is not None and outcome != "interrupted":
            failure = type(cause_of(error)).__name__
        self._kit.end(root, now, failure)


def _add_cost(span: Span, cost_usd: float | None, *, estimated: bool) -> None:
    if cost_usd is not None:
        span.set_attribute("cuggino.cost_usd", cost_usd)
        if estimated:
            span.set_attribute("cuggino.cost_estimated", True)


class _Level(NamedTuple):
    """A span that a state implies; another one, or none, in the next state has ended it."""

    kind: Literal["item", "stage", "command"]
    name: str
    since: datetime | None


def _levels(state: RunState) -> list[_Level]:
    """Return the open spans of a state, outermost first."""
    levels = [_Level("item", state.item, state.item_began)] if state.item else []
    if state.place == "landing":
        levels.append(_Level("stage", "landing", state.stage_began))
    elif state.role not in _NO_STAGES and not state.stage_outcome:
        levels.append(_Level("stage", state.role, state.stage_began))
    if (command := state.command) is not None:
        levels.append(_Level("command", command.name.lower(), command.since))
    return levels


class _Track:
    """The spans of one agent at a time: those of a run, or of an item in a slot."""

    def __init__(
        self,
        kit: Kit,
        root: Span,
        agent_of: Callable[[str], AgentIdentity],
        substitutes: Substitutes,
    ) -> None:
        self.state = _NOTHING
        self._kit = kit
        self._root = root
        self._agent_of = agent_of
        self._substitutes = substitutes
        self._open: list[tuple[_Level, Span]] = []
        """Outermost first."""
        self._session: SessionSpan | None = None
        self._ready: int | None = None
        """When the next session can begin at the earliest, if it was not announced by a wait."""

    def follow(self, event: ev.Event, state: RunState, at: datetime) -> None:
        """Begin and end the spans in which the next state differs."""
        before, self.state, now = self.state, state, nanoseconds(at)
        if isinstance(event, ev.SessionEnded | ev.LlmTerminalMarkerEvent) or begins_session(event):
            self._end_session(now, event)
        self._change(_levels(state), now, event)
        if state.worker and state.worker != before.worker:
            self._open[0][1].set_attribute("cuggino.worker", plain(state.worker))
        if isinstance(event, ev.LlmAgentEvent) and not isinstance(event, ev.SessionEnded):
            if self._session is None and not isinstance(event, _NO_SIGN_OF_A_SESSION):
                self._begin_session(now, at)
            if self._session is not None:
                self._session.add(event, now)
        if isinstance(event, ev.AgentFellBack):
            self._substitutes.add(event, self._usual(event.role), at)
        self._note(event, before, now)

    def end(self, now: int) -> None:
        self._change([], now)
        self._end_session(now)

    def _change(self, levels: list[_Level], now: int, event: ev.Event | None = None) -> None:
        """End the spans that are over, and begin the new ones."""
        kept = 0
        while kept < min(len(self._open), len(levels)) and self._open[kept][0] == levels[kept]:
            kept += 1
        if kept == len(self._open) == len(levels):
            return
        ended, self._open = self._open[kept:], self._open[:kept]
        if any(level.kind != "command" for level, _ in ended):
            self._end_session(now, event)
        for level, span in reversed(ended):
            attributes, error = self._ending(level, event)
            span.set_attributes(attributes)
            self._kit.end(span, now, error)
        for level in levels[kept:]:
            name = "item" if level.kind == "item" else level.name
            span = self._kit.start(name, self._around, now, self._beginning(level))
            self._open.append((level, span))
        self._set_ready(now)

    def _beginning(self, level: _Level) -> Attributes:
        state = self.state
        if level.kind == "item":
            slot: Attributes = {"cuggino.slot": state.slot} if state.slot else {}
            return {"cuggino.item": plain(level.name), **slot}
        attributes: Attributes = {"cuggino.stage": level.name}
        if level.kind == "stage" and level.name not in ("landing", "audit"):
            unit = "session" if state.kind == "deliver" else "iteration"
            attributes[f"cuggino.{unit}"] = state.iteration
        return attributes

    def _ending(self, level: _Level, event: ev.Event | None) -> tuple[Attributes, str]:
        """Return the attributes and the error of a span that an event ends."""
        match level.kind, event:
            case "command", ev.SetupCommandOutput(exit_code=code) | ev.CheckCommandOutput(
                exit_code=code
            ):
                exit_code: Attributes = {} if code is None else {"process.exit.code": code}
                return exit_code, "exit_code" if code else ""
            case "stage", ev.WatchSentBack(reason=reason):
                outcome, error = "sent_back", plain(reason)
            case "stage", ev.RunResult():
                outcome, error = "", ""
            case "stage", _ if self.state.stage_outcome:
                outcome = self.state.stage_outcome
                error = outcome if outcome in _FAILED_SESSIONS else ""
            case _:
                outcome, error = _ENDS.get((level.kind, type(event)), ("", ""))
        return {f"cuggino.{level.kind}.outcome": outcome} if outcome else {}, error

    def _begin_session(self, now: int, at: datetime) -> None:
        name, model = self._substitutes.of(self._usual(self._stage), at)
        begun = now if self._ready is None else min(self._ready, now)
        agent = AgentIdentity(name=name, model=model)
        self._session = SessionSpan(self._kit, agent, self._stage, self._around, at=begun)

    def _usual(self, role: str) -> NamedAgent:
        """Return the agent that is configured for the role."""
        agent, model = self._agent_of(role), None
        if (sessions := self.state.delivery.sessions) and sessions[-1].instruction == role:
            model = sessions[-1].model
        return NamedAgent(agent.name, model or agent.model)

    def _end_session(self, now: int, event: ev.Event | None = None) -> None:
        """End the session: with its own end, after its verdict, or cut off."""
        match event:
            case _ if self._session is None:
                pass
            case ev.SessionEnded():
                self._session.end(now, event)
            case ev.LlmTerminalMarkerEvent():  # of an agent that lingers
                self._session.end(now, None)
            case _:
                reason = (
                    getattr(event, "reason", "") if isinstance(event, ev.SupervisionEvent) else ""
                )
                error = _CUT_OFF.get(type(event), str(reason)) or "cut_off"
                self._session.end(now, None, plain(error))
        self._session = None
        self._set_ready(now)

    def _set_ready(self, now: int) -> None:
        self._ready = now if self._stage and self.state.wait is None else None

    def _note(self, event: ev.Event, before: RunState, now: int) -> None:
        """Add to a span what is not in the state."""
        name, attributes = event.tag, Attributes()
        match event:
            case ev.CommitPerformed(commit_hash=commit) | ev.CommitSeen(commit_hash=commit):
                name, attributes = "commit", {"cuggino.commit": commit}
            case ev.WatchPlaceGone(worker=worker):
                name, attributes = "worker_lost", {"cuggino.worker": plain(worker)}
            case ev.StageCost():
                if self._stage:
                    _add_cost(self._around, event.cost_usd, estimated=event.cost_estimated)
                return
            case ev.QuotaWaiting() if before.wait is not None and before.wait.reason == "quota":
                return  # repeated every minute
            case ev.SupervisionEvent() if not isinstance(event, ev.SnapshotTaken):
                why = plain(str(getattr(event, "reason", "")))
                attributes = {"cuggino.reason": why} if why else {}
            case _:
                return
        self._around.add_event(name, attributes, now)

    @property
    def _stage(self) -> str:
        """The name of the open stage; "" without one."""
        return next((level.name for level, _ in self._open if level.kind == "stage"), "")

    @property
    def _around(self) -> Span:
        """The span that holds sessions, commands and notes."""
        spans = [span for level, span in self._open if level.kind != "command"]
        return spans[-1] if spans else self._root
