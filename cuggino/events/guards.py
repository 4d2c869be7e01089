"""Type guards: one for each category and union. Each is an `isinstance` with a name."""

from __future__ import annotations

from typing_extensions import TypeIs

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.deliver import DeliverEvent
from cuggino.events.journal import JournalEvent
from cuggino.events.loop import CommandOutputEvent, LoopPhaseEvent, LoopTerminalEvent
from cuggino.events.marker import LlmMarkerEvent, LlmTerminalMarkerEvent
from cuggino.events.plan_build import PlanBuildEvent
from cuggino.events.policy import PolicyEvent
from cuggino.events.watch import WatchLoopEvent


def is_llm_agent_event(event: object) -> TypeIs[LlmAgentEvent]:
    """Said by a running agent."""
    return isinstance(event, LlmAgentEvent)


def is_llm_marker_event(event: object) -> TypeIs[LlmMarkerEvent]:
    """A marker of an agent."""
    return isinstance(event, LlmMarkerEvent)


def is_llm_terminal_marker_event(event: object) -> TypeIs[LlmTerminalMarkerEvent]:
    """A marker that ends its agent's stage."""
    return isinstance(event, LlmTerminalMarkerEvent)


def is_loop_phase_event(event: object) -> TypeIs[LoopPhaseEvent]:
    """The coding loop moved."""
    return isinstance(event, LoopPhaseEvent)


def is_command_output_event(event: object) -> TypeIs[CommandOutputEvent]:
    """A setup or check command has ended."""
    return isinstance(event, CommandOutputEvent)


def is_loop_terminal_event(event: object) -> TypeIs[LoopTerminalEvent]:
    """The last event of a coding loop that ended without an error."""
    return isinstance(event, LoopTerminalEvent)


def is_watch_loop_event(event: object) -> TypeIs[WatchLoopEvent]:
    """The watch moved."""
    return isinstance(event, WatchLoopEvent)


def is_policy_event(event: object) -> TypeIs[PolicyEvent]:
    """A policy acted: a retry, a wait, a budget."""
    return isinstance(event, PolicyEvent)


def is_journal_event(event: object) -> TypeIs[JournalEvent]:
    """Written to the journal of a run, not emitted."""
    return isinstance(event, JournalEvent)


def is_deliver_event(event: object) -> TypeIs[DeliverEvent]:
    """The deliverables loop moved."""
    return isinstance(event, DeliverEvent)


def is_deliver_stream_event(
    event: object,
) -> TypeIs[DeliverEvent | LlmAgentEvent | PolicyEvent]:
    """One of `DeliverStreamEvent`: what the deliverables loop emits."""
    return isinstance(event, DeliverEvent | LlmAgentEvent | PolicyEvent)


def is_plan_build_event(event: object) -> TypeIs[PlanBuildEvent]:
    """The plan/build loop moved."""
    return isinstance(event, PlanBuildEvent)


def is_plan_build_stream_event(
    event: object,
) -> TypeIs[PlanBuildEvent | LlmAgentEvent | PolicyEvent]:
    """One of `PlanBuildStreamEvent`: what the plan/build loop emits."""
    return isinstance(event, PlanBuildEvent | LlmAgentEvent | PolicyEvent)


def is_loop_event(
    event: object,
) -> TypeIs[LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | PolicyEvent]:
    """One of `LoopEvent`: what the coding loop emits."""
    return isinstance(event, LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | PolicyEvent)


def is_watch_event(
    event: object,
) -> TypeIs[LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | PolicyEvent | WatchLoopEvent]:
    """One of `WatchEvent`: what the watch emits."""
    return is_loop_event(event) or isinstance(event, WatchLoopEvent)


def is_printable_event(
    event: object,
) -> TypeIs[
    LlmAgentEvent
    | LlmMarkerEvent
    | LoopPhaseEvent
    | PolicyEvent
    | WatchLoopEvent
    | DeliverEvent
    | PlanBuildEvent
]:
    """One of `PrintableEvent`: what a formatter must know how to show."""
    return is_watch_event(event) or isinstance(event, DeliverEvent | PlanBuildEvent)
