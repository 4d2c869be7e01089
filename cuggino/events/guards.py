"""Type guards, one per category."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from typing_extensions import TypeIs

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.base import Event
from cuggino.events.deliver import DeliverEvent
from cuggino.events.journal import JournalEvent
from cuggino.events.loop import CommandOutputEvent, LoopPhaseEvent, LoopTerminalEvent
from cuggino.events.marker import LlmMarkerEvent, LlmTerminalMarkerEvent
from cuggino.events.plan_build import PlanBuildEvent
from cuggino.events.supervision import SupervisionEvent
from cuggino.events.watch import WatchLoopEvent

E = TypeVar("E", bound=Event)


def _guard(category: type[E]) -> Callable[[object], TypeIs[E]]:
    """Return the guard of a category: whether a value is one of its events."""

    def guard(event: object) -> TypeIs[E]:
        return isinstance(event, category)

    return guard


is_llm_agent_event = _guard(LlmAgentEvent)
is_llm_marker_event = _guard(LlmMarkerEvent)
is_llm_terminal_marker_event = _guard(LlmTerminalMarkerEvent)
is_loop_phase_event = _guard(LoopPhaseEvent)
is_command_output_event = _guard(CommandOutputEvent)
is_watch_loop_event = _guard(WatchLoopEvent)
is_supervision_event = _guard(SupervisionEvent)
is_journal_event = _guard(JournalEvent)
is_deliver_event = _guard(DeliverEvent)
is_plan_build_event = _guard(PlanBuildEvent)


def is_loop_terminal_event(event: object) -> TypeIs[LoopTerminalEvent]:
    """Return whether it is the last event of a coding loop that ended without an error."""
    return isinstance(event, LoopTerminalEvent)
