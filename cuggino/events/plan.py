"""Events about the plan of the coding loop."""

from cuggino.events.loop import LoopPhaseEvent


class PlanWritten(LoopPhaseEvent):
    """The planning agent has written a plan."""

    text: str
    """The plan as Markdown, cut if it is very long."""


class TaskLimitReached(LoopPhaseEvent):
    """`maxTasksPerPlan` agents worked on one plan without completing it; the review follows."""

    max_tasks: int


class SpecsChanged(LoopPhaseEvent):
    """Specifications changed after the latest plan was made; another plan follows."""

    paths: tuple[str, ...]
