"""The events of the coding loop (CUG-024), from all their modules."""

from typing import TypeAlias

from cuggino.events.agent import LlmAgentEvent
from cuggino.events.loop import LoopPhaseEvent
from cuggino.events.marker import LlmMarkerEvent
from cuggino.events.supervision import SupervisionEvent

LoopEvent: TypeAlias = LlmAgentEvent | LlmMarkerEvent | LoopPhaseEvent | SupervisionEvent
"""The events of the coding loop (CUG-024)."""
