"""The phases of the coding loop (CUG-021)."""

from cuggino.events.base import Event, category_guard


class LoopPhaseEvent(Event, category=True):
    """Category: progress of the coding loop. `iteration` counts from planning to review, from 1."""

    iteration: int


class IterationStart(LoopPhaseEvent):
    """An iteration begins."""

    max_iterations: int


class PlanningStart(LoopPhaseEvent):
    """The planning agent is about to start."""


class ImplementingStart(LoopPhaseEvent):
    """An implementing agent is about to start, after its check command."""


class ReviewingStart(LoopPhaseEvent):
    """The reviewing agent is about to start, after its check command."""


is_loop_phase_event = category_guard(LoopPhaseEvent)
