"""Events about the plan of the coding loop."""

from pydantic import Field

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


class HandsStarted(LoopPhaseEvent):
    """Several hands begin to work on the tasks of a plan, each in a clone of the project."""

    hands: int
    """The tasks that are at work at once, at most."""
    tasks: int
    """The tasks of the plan."""
    notes: tuple[str, ...] = ()
    """What counts otherwise than the plan says, such as too many attempts at a task."""


class TaskLeft(LoopPhaseEvent):
    """A task that hands worked on is left undone, and so are those after it."""

    filename: str
    """The name of the task."""
    reason: str


class HandsEnded(LoopPhaseEvent):
    """No task of the plan is at work; what has landed is reviewed next."""

    landed: tuple[str, ...] = ()
    """The names of the tasks that have landed, in the order in which they have."""
    undone: dict[str, str] = Field(default={})
    """The tasks that have not, each with the reason."""
    asking: str = ""
    """The task whose agent asks a person to decide."""
    issue: str = ""
    """The file in `.cuggino/spec-issues/` with the question."""


class SpecsChanged(LoopPhaseEvent):
    """Specifications changed after the latest plan was made; another plan follows."""

    paths: tuple[str, ...]
