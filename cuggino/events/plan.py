"""Events about the plan of the coding loop."""

from cuggino.events.loop import LoopPhaseEvent


class PlanWritten(LoopPhaseEvent):
    """The planning agent has written a plan."""

    text: str
    """The plan as Markdown, cut if it is very long."""


class ImprovementsKept(LoopPhaseEvent):
    """A review has improvements that no specification demands; they are kept for the user."""

    findings: tuple[str, ...]
    """The improvements of the review."""
    filenames: tuple[str, ...] = ()
    """Names of the files in `.cuggino/tbd/` with those that were not stored before."""
    approves: bool = False
    """True if the review requested changes for nothing else, so that it counts as an approval."""


class TaskLimitReached(LoopPhaseEvent):
    """`maxTasksPerPlan` agents worked on one plan without completing it; the review follows."""

    max_tasks: int


class SpecsChanged(LoopPhaseEvent):
    """Specifications changed after the latest plan was made; another plan follows."""

    paths: tuple[str, ...]
