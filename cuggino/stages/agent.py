"""`agent_stage`: one agent session, which ends with the agent's terminal marker."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reactivex import Observable

from cuggino.agents.base import LlmAgent, SpawnOptions
from cuggino.domain import Spending, most_cautious
from cuggino.errors import LlmSessionError, LoopError
from cuggino.events import (
    Event,
    LlmAgentEvent,
    LlmMarkerEvent,
    LlmTerminalMarkerEvent,
    MessageDelta,
    PingEvent,
    SessionEnded,
    StageCost,
    Steered,
    SupervisionEvent,
    UsageUpdate,
    is_llm_terminal_marker_event,
)
from cuggino.operators import Flow, emit, extract_markers, flow, forward, until_terminal
from cuggino.operators.markers import MarkerTags
from cuggino.stages.endings import contradictions, endings_of, reminder, terminal_tags
from cuggino.stages.sessions import Sessions
from cuggino.stages.supervision import Supervision

LINGER = 30.0
"""Seconds after the terminal marker in which an agent may deliver its result."""


def agent_stage(
    agent: LlmAgent,
    options: SpawnOptions,
    *,
    phase: str,
    tags: MarkerTags,
    on_marker: Callable[[LlmMarkerEvent], None],
    linger: float = LINGER,
    supervision: Supervision | None = None,
) -> Observable[LlmAgentEvent | LlmMarkerEvent | SupervisionEvent]:
    """Spawn the agent, read its markers, and end with its terminal marker as the last event.

    Each marker is passed to `on_marker` as it is emitted: as soon as it is complete, a terminal one
    with its message. A terminal marker counts only at the start of a line of text (`at_line_start`
    of `extract_markers`), and never after an error result. After the terminal marker the agent has
    `linger` seconds to exit (its cost comes with its result), then its processes are terminated. A
    message from a person in that time (`Steered`) voids the terminal markers, and the session
    continues. If terminal markers differ, the most cautious one counts, and `ContradictoryMarkers`
    is emitted. An agent that ends without a terminal marker is asked once more for one, if it can
    resume its session. `StageCost` is emitted before the terminal marker or the error if the cost
    is known.

    `supervision` adds retries, quota waits, timeouts and budgets.

    Errors: `LoopError` of the phase, with the `LlmSessionError` as its cause, or with the message
    of CUG-034 when there was no terminal marker.
    """
    return flow(
        lambda: agent_story(
            agent,
            options,
            phase=phase,
            tags=tags,
            on_marker=on_marker,
            linger=linger,
            supervision=supervision,
        )
    )


def agent_story(
    agent: LlmAgent,
    options: SpawnOptions,
    *,
    phase: str,
    tags: MarkerTags,
    on_marker: Callable[[LlmMarkerEvent], None],
    before_marker: Callable[[LlmMarkerEvent], Iterable[Event]] = lambda _marker: (),
    linger: float = LINGER,
    supervision: Supervision | None = None,
) -> Flow[LlmTerminalMarkerEvent]:
    """Run `agent_stage` within a flow; return its terminal marker.

    The events from `before_marker` are emitted before each marker.
    """
    stage = _AgentStage(
        agent, options, phase, tags, on_marker, before_marker, linger, supervision or Supervision()
    )
    return stage.run()


class _AgentStage:
    def __init__(
        self,
        agent: LlmAgent,
        options: SpawnOptions,
        phase: str,
        tags: MarkerTags,
        on_marker: Callable[[LlmMarkerEvent], None],
        before_marker: Callable[[LlmMarkerEvent], Iterable[Event]],
        linger: float,
        supervision: Supervision,
    ) -> None:
        self._phase = phase
        self._tags = tags
        self._on_marker = on_marker
        self._before_marker = before_marker
        self._linger = linger
        self._supervision = supervision
        self._sessions = Sessions(agent, options, read=self._read, budget=supervision.remaining)
        self._last: Event | None = None
        self._spent = Spending()
        self._duration = 0.0

    def run(self) -> Flow[LlmTerminalMarkerEvent]:
        try:
            last = yield from forward(self._around(self._sessions.first()))
            if not is_llm_terminal_marker_event(last) and self._sessions.can_be_resumed:
                again = self._sessions.resumed(reminder(self._tags))
                last = yield from forward(self._around(again))
        except LlmSessionError as error:
            yield from emit(*self._cost())
            outcome = self._sessions.outcome
            yield from emit(*contradictions(self._phase, self._sessions.endings))
            if is_llm_terminal_marker_event(outcome):  # cut off after its terminal marker
                self._on_marker(outcome)
                yield from emit(*self._before_marker(outcome), outcome)
                return outcome
            raise LoopError(self._phase, error.message, cause=error) from error
        if not is_llm_terminal_marker_event(last):
            yield from emit(*self._cost())
            raise LoopError(self._phase, self._without_marker(), cause=None)
        return last

    def _around(self, session: Observable[Event]) -> Observable[Event]:
        return self._supervision.around(self._sessions, session, looks=[self._look])

    def _read(self, session: Observable[Event]) -> Observable[Event]:
        ending: Callable[[Observable[Event]], Observable[Event]] = until_terminal(
            is_llm_terminal_marker_event,
            linger=self._linger,
            settle=lambda event: isinstance(event, SessionEnded),
            choose=lambda _endings: most_cautious(self._sessions.endings),
            on_terminal=self._note,
            reopen=self._is_told,
        )
        # A terminal marker counts when its message is complete, as a message may be discarded and
        # written again.
        markers = extract_markers(
            self._tags,
            at_line_start=terminal_tags(self._tags),
            at_end=is_llm_terminal_marker_event,
        )
        return session.pipe(markers, ending)

    def _note(self, event: Event) -> None:
        self._sessions.endings += endings_of(event, self._tags)

    def _is_told(self, event: Event) -> bool:
        """Return whether a person has messaged the session; if so, void its terminal markers."""
        is_told = isinstance(event, Steered) and event.to == "session"
        if is_told:
            self._sessions.endings = []
        return is_told

    def _look(self, event: Event) -> Iterable[Event]:
        match event:
            case MessageDelta() | PingEvent():
                return ()
            case LlmMarkerEvent():
                return self._marks(event)
            case UsageUpdate() | SupervisionEvent():
                pass
            case SessionEnded():
                self._duration += event.duration or 0.0
            case _:
                self._last = event
        self._spent = self._spent.add(event)
        return ()

    def _marks(self, event: LlmMarkerEvent) -> Iterable[Event]:
        """Pass the marker on, and emit the cost before a terminal one."""
        self._on_marker(event)
        self._last = event
        before = self._before_marker(event)
        if not is_llm_terminal_marker_event(event):
            return before
        return (*self._cost(), *contradictions(self._phase, self._sessions.endings), *before)

    def _cost(self) -> Iterable[Event]:
        """Yield the cost of the stage, if known."""
        spent, total = self._spent, self._supervision.ledger.spent
        if spent.cost_usd is None and not spent.total_tokens:
            return
        yield StageCost(
            phase=self._phase,
            cost_usd=spent.cost_usd,
            usage=spent.usage,
            duration=self._duration or None,
            total_cost=total.cost_usd,
            total_usage=total.usage,
        )

    def _without_marker(self) -> str:
        match self._last:
            case None:
                return "Agent stream ended without emitting any marker"
            case LlmMarkerEvent():
                return (
                    f"Non-terminal marker received from {self._phase} agent (got: {self._last.tag})"
                )
            case _:
                return (
                    f"Agent stream ended without emitting a marker (last event: {self._last.tag})"
                )
