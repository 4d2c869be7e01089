"""Agents that do not progress, or contradict themselves."""

from typing import Literal

from cuggino.events.supervision import SupervisionEvent


class AgentNudged(SupervisionEvent):
    """An agent was silent, took too long or repeated itself; its session is resumed."""

    idle: float | None = None
    """Seconds without an event; None if the stage timed out."""
    tool: str | None = None
    """The running tool, if any, or the one that was called repeatedly."""
    repeated: int | None = None
    """The number of equal calls of the tool in a row; None for another reason."""


class AgentReplaced(SupervisionEvent):
    """An agent stalled, again after a nudge if it got one; a new agent starts the stage again."""

    idle: float | None = None
    """Seconds without an event; None if the stage timed out."""
    tool: str | None = None
    repeated: int | None = None


class ContradictoryMarkers(SupervisionEvent):
    """An agent ended its stage in several ways; the most cautious one counts.

    In the order of caution: `SPEC_ISSUE`, `REQUEST_CHANGES`, `PROGRESS`, `PLAN_COMPLETE`, `DONE`,
    `NO_MORE_WORK`, `APPROVED`. Emitted before the marker that counts.
    """

    phase: str
    """`planning`, `implementing`, `reviewing`."""
    counted: str
    """The tag that counts, such as `REQUEST_CHANGES`."""
    markers: tuple[tuple[str, str], ...]
    """Tag and content of each terminal marker, in the order in which the
    agent wrote them."""


class NoProgress(SupervisionEvent):
    """Agents work, but nothing changes or earlier states return."""

    kind: Literal["unchanged", "oscillating"]
    agents: int
    """Implementing agents in a row."""
    action: Literal["replan", "stop"]
