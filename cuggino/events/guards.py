"""Type guards, one per category and union."""

from __future__ import annotations

from typing_extensions import TypeIs

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.deliver import DeliverEvent
from cuggino.events.journal import JournalEvent
from cuggino.events.loop import CommandOutputEvent, LoopPhaseEvent, LoopTerminalEvent
from cuggino.events.marker import LlmMarkerEvent, LlmTerminalMarkerEvent
from cuggino.events.plan_build import PlanBuildEvent
from cuggino.events.supervision import SupervisionEvent
from cuggino.events.watch import WatchLoopEvent


def is_llm_agent_event(event: object) -> TypeIs[LlmAgentEvent]:
    """Return whether it is an event of a running agent."""
    return isinstance(event, LlmAgentEvent)


def is_llm_marker_event(event: object) -> TypeIs[LlmMarkerEvent]:
    """Return whether it is a marker of an agent."""
    return isinstance(event, LlmMarkerEvent)


def is_llm_terminal_marker_event(event: object) -> TypeIs[LlmTerminalMarkerEvent]:
    """Return whether it is a marker that ends its agent's stage."""
    return isinstance(event, LlmTerminalMarkerEvent)


def is_loop_phase_event(event: object) -> TypeIs[LoopPhaseEvent]:
    """Return whether it reports progress of the coding loop."""
    return isinstance(event, LoopPhaseEvent)


def is_command_output_event(event: object) -> TypeIs[CommandOutputEvent]:
    """Return whether it is the output of a setup or check command."""
    return isinstance(event, CommandOutputEvent)


def is_loop_terminal_event(event: object) -> TypeIs[LoopTerminalEvent]:
    """Return whether it is the last event of a coding loop that ended without an error."""
    return isinstance(event, LoopTerminalEvent)


def is_watch_loop_event(event: object) -> TypeIs[WatchLoopEvent]:
    """Return whether it reports progress of the watch."""
    return isinstance(event, WatchLoopEvent)


def is_supervision_event(event: object) -> TypeIs[SupervisionEvent]:
    """Return whether it reports a retry, a wait, a budget or another act of supervision."""
    return isinstance(event, SupervisionEvent)


def is_journal_event(event: object) -> TypeIs[JournalEvent]:
    """Return whether it is written to the journal of a run and not emitted."""
    return isinstance(event, JournalEvent)


def is_deliver_event(event: object) -> TypeIs[DeliverEvent]:
    """Return whether it reports progress of the deliverables loop."""
    return isinstance(event, DeliverEvent)


def is_deliver_stream_event(
    event: object,
) -> TypeIs[DeliverEvent | LlmAgentEvent | SupervisionEvent]:
    """Return whether it is a `DeliverStreamEvent`."""
    return isinstance(event, DeliverEvent | LlmAgentEvent | SupervisionEvent)


def is_plan_build_event(event: object) -> TypeIs[PlanBuildEvent]:
    """Return whether it reports progress of the plan/build loop."""
    return isinstance(event, PlanBuildEvent)


def is_plan_build_stream_event(
    event: object,
) -> TypeIs[PlanBuildEvent | LlmAgentEvent | SupervisionEvent]:
    """Return whether it is a `PlanBuildStreamEvent`."""
    return isinstance(event, PlanBuildEvent | LlmAgentEvent | SupervisionEvent)


def is_loop_event(
    event: object,
) -> TypeIs[LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | SupervisionEvent]:
    """Return whether it is a `LoopEvent`."""
    return isinstance(event, LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | SupervisionEvent)


def is_watch_event(
    event: object,
) -> TypeIs[LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | SupervisionEvent | WatchLoopEvent]:
    """Return whether it is a `WatchEvent`."""
    return is_loop_event(event) or isinstance(event, WatchLoopEvent)


def is_printable_event(
    event: object,
) -> TypeIs[
    LlmAgentEvent
    | LlmMarkerEvent
    | LoopPhaseEvent
    | SupervisionEvent
    | WatchLoopEvent
    | DeliverEvent
    | PlanBuildEvent
]:
    """Return whether it is a `PrintableEvent`, which every formatter must support."""
    return is_watch_event(event) or isinstance(event, DeliverEvent | PlanBuildEvent)
